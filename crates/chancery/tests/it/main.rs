//! Stories told to the built server and the built command line, a file per story.

mod bad_configs;
mod certificates;
mod counts;
mod line;
mod patience;
mod server;
mod wire_client;
mod workshop;

mod adr;
mod agents;
mod callers;
mod card_signatures;
mod cli;
mod config;
mod config_commands;
mod config_reload;
mod crash;
mod credentials;
mod demo;
mod doors;
mod gateway;
mod keys;
mod limits;
mod mount;
mod own_certificate;
mod probes;
mod published;
mod scenarios;
mod secrets;
mod serve;
mod tenancy;
mod tls;
