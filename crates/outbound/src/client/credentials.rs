//! What we show an agent to say who we are. Never printed.

use std::fmt;

use crate::terms::ClientCertificate;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

/// The credentials for calls of one agent.
#[derive(Clone, Default)]
pub enum AgentCredentials {
    /// No credentials.
    #[default]
    None,
    /// A key in a header of its own, `X-API-Key` unless the card names another.
    ApiKey { header: HeaderName, key: SecretString },
    /// A token in `Authorization`.
    Bearer(SecretString),
    /// Headers from a provider for this one call, such as a signature's.
    Headers(Vec<(HeaderName, SecretString)>),
    /// Shown while a channel is secured, over SWP.
    Certificate(ClientCertificate),
}

impl AgentCredentials {
    /// Makes credentials of an API key.
    pub fn api_key(key: impl Into<String>) -> Self {
        Self::ApiKey { header: chancery_identity::credentials::API_KEY_HEADER, key: SecretString::from(key.into()) }
    }

    /// Makes credentials of a bearer token.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::Bearer(SecretString::from(token.into()))
    }

    /// Returns the client certificate, if the credentials have one.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        match self {
            Self::Certificate(certificate) => Some(certificate),
            _ => None,
        }
    }

    /// `false` if one of them cannot stand in a header.
    pub(crate) fn write(&self, headers: &mut HeaderMap) -> bool {
        match self {
            Self::None | Self::Certificate(_) => true,
            Self::ApiKey { header, key } => insert(headers, header, key.expose_secret()),
            Self::Bearer(token) => insert(headers, &AUTHORIZATION, &format!("Bearer {}", token.expose_secret())),
            Self::Headers(given) => given.iter().all(|(name, value)| insert(headers, name, value.expose_secret())),
        }
    }
}

fn insert(headers: &mut HeaderMap, name: &HeaderName, value: &str) -> bool {
    let Ok(mut value) = HeaderValue::from_str(value) else { return false };
    value.set_sensitive(true);
    headers.insert(name, value);
    true
}

impl fmt::Debug for AgentCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "Credentials(none)",
            _ => "Credentials(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_them_is_ever_printed() {
        let header = HeaderName::from_static("x-signature");
        for credentials in [
            AgentCredentials::api_key("hush-1"),
            AgentCredentials::bearer("hush-2"),
            AgentCredentials::Headers(vec![(header, SecretString::from("hush-3"))]),
        ] {
            let mut headers = HeaderMap::new();
            assert!(credentials.write(&mut headers));
            assert!(headers.values().any(|value| value.as_bytes().ends_with(b"hush-1") || value.len() > 5));
            assert!(!format!("{credentials:?} {headers:?}").contains("hush"));
        }
    }

    #[test]
    fn a_secret_that_is_no_header_is_refused() {
        assert!(!AgentCredentials::bearer("a\nb").write(&mut HeaderMap::new()));
    }
}
