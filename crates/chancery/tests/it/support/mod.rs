//! What the stories share: servers, clients, certificates, waiting.

pub(crate) mod bad_configs;
pub(crate) mod bare_service;
pub(crate) mod certificates;
pub(crate) mod counts;
pub(crate) mod delegating_node;
pub(crate) mod line;
pub(crate) mod patience;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod server;
pub(crate) mod wire_client;
