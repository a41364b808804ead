//! Keys and the seals made with them.
