//! SWP from outside the crate: properties, and the vectors of `fixtures/swp`.

mod properties;
mod vectors;
