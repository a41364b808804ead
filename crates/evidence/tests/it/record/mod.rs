//! The record and its bundles: what is written is canonical, linked and signed, and no change to it goes unnoticed.

mod bundles;
mod clock;
mod cutting;
mod damage;
mod delegations;
mod format;
mod limits;
mod listed_record;
mod manifests;
mod packets;
mod tampering;
mod unsigned;
mod writing;
