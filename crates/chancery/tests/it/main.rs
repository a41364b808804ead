//! Stories told to the built server and the built command line, a file per story.

mod counts;
mod patience;
mod server;

mod cli;
mod config;
mod crash;
mod mount;
mod serve;
