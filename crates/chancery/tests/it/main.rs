//! Stories told to the built server and the built command line, a file per story.

mod counts;
mod patience;
mod server;
mod workshop;

mod cli;
mod config;
mod crash;
mod limits;
mod mount;
mod serve;
mod scenarios;
mod wire_client;
