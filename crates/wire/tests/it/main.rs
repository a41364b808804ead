//! Every codec from outside the crate: exact bytes, properties, and readers that meet anything.

mod any_model;
mod samples;

mod artifact_kinds;
mod card_roundtrip;
mod compliance_0_3;
mod frameworks;
mod golden;
mod no_panic;
mod notifications;
mod push_bodies;
mod round_trip;
mod swp;
mod tolerant;
mod tolerant_cards;
mod tolerant_properties;
mod unknown_members;
