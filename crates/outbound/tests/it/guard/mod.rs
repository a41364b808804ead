//! The guarded way out against hostile URLs, names, receivers and networks. Nothing leaves the machine.

mod allowances;
mod environment;
mod evil_receivers;
mod fakes;
mod hostile_urls;
mod http2;
mod jwks;
mod limits;
mod oracle;
mod proxy;
mod rebinding;
mod receiver;
mod redirects;
mod telling;
mod tls;
mod tricks;
