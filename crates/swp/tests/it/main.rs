//! SWP from outside the crate: properties, and the vectors of `fixtures`.

mod limits;
mod properties;
mod vectors;
