//! The headers of one attempt: who we are, what the receiver asked to be shown, and the signatures of now.

use chancery_core::notify::{Letter, Try};
use chancery_core::push::{OpenSecrets, PushProfile, Registration};
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

const AGENT: &str = concat!("chancery/", env!("CARGO_PKG_VERSION"), " (+a2a-push)");

/// Names a registration's scheme can have when its credentials are a secret to sign with, and are never sent.
const SIGNING_SCHEMES: [&str; 2] = ["StandardWebhooks", "HMAC-SHA256"];

/// A value that can be no header is a fault of the registration, found before anything is sent.
#[derive(Debug)]
pub(super) struct Unsendable(pub(super) &'static str);

pub(super) struct Headers(HeaderMap);

impl Headers {
    pub(super) fn of(
        letter: &Letter,
        registration: &Registration,
        how: Try,
        tracestate: Option<&str>,
    ) -> Result<Self, Unsendable> {
        let mut headers = Self(HeaderMap::with_capacity(24));
        for (name, value) in &letter.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unsendable("the name of a header"))?;
            headers.put(name, value)?;
        }
        headers.put(USER_AGENT, AGENT)?;
        headers.put(HeaderName::from_static("a2a-event-attempt"), &how.attempt.to_string())?;
        if how.replay {
            headers.put(HeaderName::from_static("a2a-event-replay"), "1")?;
        }
        let (trace, span) = (registration.trace, uuid::Uuid::now_v7().as_u64_pair().1);
        headers.put(HeaderName::from_static("traceparent"), &format!("00-{trace}-{span:016x}-01"))?;
        if let Some(state) = tracestate {
            headers.put(HeaderName::from_static("tracestate"), state)?;
        }
        Ok(headers)
    }

    pub(super) fn put(&mut self, name: HeaderName, value: &str) -> Result<(), Unsendable> {
        let value = HeaderValue::from_str(value).map_err(|_| Unsendable("the value of a header"))?;
        self.0.insert(name, value);
        Ok(())
    }

    pub(super) fn put_secret(&mut self, name: HeaderName, value: &str) -> Result<(), Unsendable> {
        let mut value = HeaderValue::from_str(value).map_err(|_| Unsendable("a secret"))?;
        value.set_sensitive(true);
        self.0.insert(name, value);
        Ok(())
    }

    /// The token under both of its names, for there is no agreement on one.
    pub(super) fn token(&mut self, secrets: &OpenSecrets) -> Result<(), Unsendable> {
        let Some(token) = secrets.token.as_ref().and_then(|token| token.expose_text()) else { return Ok(()) };
        self.put_secret(HeaderName::from_static("x-a2a-notification-token"), token)?;
        self.put_secret(HeaderName::from_static("a2a-notification-token"), token)
    }

    pub(super) fn authorization(&mut self, scheme: &str, credentials: &str) -> Result<(), Unsendable> {
        self.put_secret(AUTHORIZATION, &format!("{} {credentials}", canonical(scheme)))
    }

    pub(super) fn into_map(self) -> HeaderMap {
        self.0
    }
}

/// Schemes are the same in every case, but not every receiver knows that.
fn canonical(scheme: &str) -> &str {
    ["Bearer", "Basic"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme)).unwrap_or(scheme)
}

/// What a registration's scheme means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use<'a> {
    Nothing,
    /// Shown to the receiver.
    Show {
        scheme: &'a str,
        credentials: &'a str,
    },
    /// Signed with, and never shown.
    Sign {
        secret: &'a str,
    },
    /// A token of our own is made for each attempt.
    Mint,
}

pub(super) fn scheme_of<'a>(registration: &'a Registration, secrets: &'a OpenSecrets) -> Use<'a> {
    let credentials = secrets.credentials.as_ref().and_then(|credentials| credentials.expose_text());
    match (registration.scheme.as_deref(), credentials) {
        (Some(scheme), Some(secret)) if is_signing_scheme(scheme) => Use::Sign { secret },
        (Some(scheme), Some(credentials)) => Use::Show { scheme, credentials },
        (Some(scheme), None) if scheme.eq_ignore_ascii_case("Bearer") => Use::Mint,
        _ => Use::Nothing,
    }
}

pub(super) fn is_signing_scheme(scheme: &str) -> bool {
    SIGNING_SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

/// Whether the body alone is signed with the token.
pub(super) fn signs_body(registration: &Registration, everywhere: bool) -> bool {
    everywhere || registration.profile == PushProfile::Original
}
