//! The record and its bundles: what is written is canonical, linked and signed, and no change to it goes unnoticed.

mod bundles;
mod clock;
mod cutting;
mod damage;
mod format;
mod house;
mod limits;
mod packets;
mod tampering;
mod unsigned;
mod writing;
