//! Starting, configuring, operating and embedding a node.

pub(crate) mod adr;
pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod config_commands;
pub(crate) mod config_reload;
pub(crate) mod config_start;
pub(crate) mod demo;
pub(crate) mod documents;
pub(crate) mod dropped_node;
pub(crate) mod facade;
pub(crate) mod mount;
pub(crate) mod operator_api;
pub(crate) mod probes;
pub(crate) mod readme_tour;
pub(crate) mod run_documents;
pub(crate) mod serve;
