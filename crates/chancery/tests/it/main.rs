//! Stories told to the built server and the built command line, a file per story.
#![allow(clippy::disallowed_methods, reason = "tests start tasks as they like, and wait for them")]

mod doors;
mod evidence;
mod gateway;
mod governance;
mod identity;
mod limits;
mod memory;
mod operating;
mod push;
mod streams;
mod support;
mod swp;
mod tasks;
