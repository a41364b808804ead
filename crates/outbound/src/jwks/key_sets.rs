//! The issuers' key sets for the verification of tokens.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_identity::credentials::{Issuer, KeySet, KeySetFault, KeySets};
use url::Url;

use super::{JwksCache, JwksError};

#[async_trait]
impl KeySets for JwksCache {
    async fn key_set(&self, issuer: &Issuer, refresh: bool) -> Result<Arc<KeySet>, KeySetFault> {
        let unreachable = |fault: JwksError| KeySetFault::Unreachable(format!("the keys of {}: {fault}", issuer.name));
        let url = match &issuer.jwks_url {
            Some(url) => Url::parse(url).map_err(|fault| KeySetFault::Malformed(format!("jwks_url: {fault}")))?,
            None => self.discover(&issuer.issuer).await.map_err(unreachable)?,
        };
        self.key_document(&url, refresh).await.map_err(unreachable)?.key_set()
    }
}
