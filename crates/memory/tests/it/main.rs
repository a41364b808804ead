//! Tiers, grants and buckets from outside the crate.

mod common;

mod bucket;
mod grants;
mod tier;
