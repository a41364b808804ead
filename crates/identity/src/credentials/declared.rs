//! What a node tells callers about the credentials it takes: the card's security schemes, and the challenges of a refusal.

use std::collections::BTreeMap;

use chancery_protocol::{
    ApiKeyScheme, HttpAuthScheme, MutualTlsScheme, OpenIdConnectScheme, SecurityRequirement, SecurityScheme, StringList,
};
use http::HeaderValue;

use super::authenticator::{AuthenticationMode, ClosedNode};
use super::{Authenticator, CredentialRefusal, RefusalKind};

impl Authenticator {
    /// What a card declares: exactly what this node accepts now, each alone enough. Signed requests have no kind of
    /// scheme in a card.
    pub fn schemes(&self) -> (BTreeMap<String, SecurityScheme>, Vec<SecurityRequirement>) {
        let AuthenticationMode::Closed(closed) = &self.0 else { return Default::default() };
        let schemes = closed.schemes();
        let alone = |name: &String| SecurityRequirement { schemes: [(name.clone(), StringList::default())].into() };
        let requirements = schemes.keys().map(alone).collect();
        (schemes, requirements)
    }

    /// The values of `WWW-Authenticate` for an answer with this refusal; none if other credentials would not help.
    pub fn challenges(&self, refusal: &CredentialRefusal) -> Vec<HeaderValue> {
        let AuthenticationMode::Closed(closed) = &self.0 else { return Vec::new() };
        let mut challenges = vec![match refusal.kind {
            RefusalKind::NotAllowed | RefusalKind::Unavailable => return Vec::new(),
            RefusalKind::Missing => HeaderValue::from_static("Bearer realm=\"chancery\""),
            _ => HeaderValue::from_static("Bearer realm=\"chancery\", error=\"invalid_token\""),
        }];
        if closed.takes_keys() {
            challenges.push(HeaderValue::from_static("ApiKey realm=\"chancery\", header=\"X-API-Key\""));
        }
        if closed.signatures.is_some() {
            challenges.push(HeaderValue::from_static("Signature realm=\"chancery\", alg=\"ed25519\""));
        }
        challenges
    }
}

impl ClosedNode {
    /// Keys can be given to callers at any time; a node that takes nothing else is waiting for just that.
    fn takes_keys(&self) -> bool {
        self.callers.load().any_has_a_key()
            || (self.tokens.issuers.is_empty() && !self.client_certificates && self.signatures.is_none())
    }

    fn schemes(&self) -> BTreeMap<String, SecurityScheme> {
        let mut schemes = BTreeMap::new();
        let issuers = &self.tokens.issuers;
        if self.takes_keys() {
            let scheme = ApiKeyScheme { description: None, location: "header".to_owned(), name: "X-API-Key".to_owned() };
            schemes.insert("apiKey".to_owned(), SecurityScheme::ApiKey(scheme));
        }
        if self.takes_keys() || !issuers.is_empty() {
            let bearer_format = (!issuers.is_empty()).then(|| "JWT".to_owned());
            let scheme = HttpAuthScheme { description: None, scheme: "Bearer".to_owned(), bearer_format };
            schemes.insert("bearer".to_owned(), SecurityScheme::HttpAuth(scheme));
        }
        for issuer in issuers.iter() {
            if let Some(open_id_connect_url) = issuer.discovery_url() {
                let scheme = OpenIdConnectScheme { description: None, open_id_connect_url };
                schemes.insert(format!("oidc-{}", issuer.name), SecurityScheme::OpenIdConnect(scheme));
            }
        }
        if self.client_certificates {
            schemes.insert("mutualTls".to_owned(), SecurityScheme::MutualTls(MutualTlsScheme::default()));
        }
        schemes
    }
}
