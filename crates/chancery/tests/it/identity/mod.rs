//! Who callers and nodes are: credentials, keys, certificates, tenants, secrets.

pub(crate) mod callers;
pub(crate) mod card_signatures;
pub(crate) mod credentials;
pub(crate) mod keys;
pub(crate) mod own_certificate;
pub(crate) mod published;
pub(crate) mod secrets;
pub(crate) mod tenancy;
pub(crate) mod tls;
