//! One server that is called: its address, how long to wait for it, and how much of it to read.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{RequestBuilder, Response, StatusCode, Url, header, redirect};

use crate::error::CallError;
use crate::terms::Terms;
use crate::trust::{Asked, client_config};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// More than this is read of no answer.
const MOST_BYTES: usize = 256 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) http: reqwest::Client,
    pub(crate) url: Url,
    pub(crate) answer_within: Duration,
    pub(crate) terms: Terms,
    asked: Asked,
}

impl Peer {
    /// A server by its URL, with and without a slash at the end. An answer may take `answer_within`; a stream may take
    /// as long as it likes.
    pub fn new(url: &str, answer_within: Duration) -> Result<Self, CallError> {
        Self::with_terms(url, answer_within, Terms::default())
    }

    /// The same for a caller that shows who it is, or believes other servers than the system does.
    pub fn with_terms(url: &str, answer_within: Duration, terms: Terms) -> Result<Self, CallError> {
        let bad = || CallError::BadUrl { url: url.to_owned() };
        let parsed = Url::parse(url.trim_end_matches('/')).map_err(|_| bad())?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(bad());
        }
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("chancery/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .redirect(redirect::Policy::none());
        if is_loopback(&parsed) {
            // A proxy's loopback is another machine's.
            http = http.no_proxy();
        }
        let asked = Asked::default();
        if parsed.scheme() == "https" {
            let unusable = |fault| CallError::Credentials { reason: format!("TLS cannot be set up: {fault}") };
            http = http.tls_backend_preconfigured(client_config(&terms, &asked).map_err(unusable)?);
        }
        let http = http.build().map_err(|source| CallError::Setup { source })?;
        Ok(Self { http, url: parsed, answer_within, terms, asked })
    }

    /// Whether this is a server on the same machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// Whether what goes there can be read on the way.
    pub fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The URL with a path added to it; segments may hold any characters.
    pub(crate) fn at<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Sends a request and reads its whole answer, in time.
    pub(crate) async fn ask(&self, url: &Url, request: RequestBuilder) -> Result<(StatusCode, String), CallError> {
        let sent = request.timeout(self.answer_within).send().await;
        let response = sent.map_err(|error| self.explain(CallError::unreachable(url, &error)))?;
        read(url, response).await
    }

    /// Adds to a failure what may be behind it.
    pub(crate) fn explain(&self, error: CallError) -> CallError {
        match error {
            CallError::Unreachable { url, reason } if self.asked.in_vain() => {
                CallError::Unreachable { url, reason: format!("{reason}; it asks for a certificate, and none was shown") }
            }
            error => error,
        }
    }
}

/// What an answer to a call that was not let in says.
pub(crate) fn turned_away(peer: &Peer, status: StatusCode, message: &str) -> Option<CallError> {
    let turned = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let away =
        || CallError::TurnedAway { status: status.as_u16(), message: message.to_owned(), shown: peer.terms.shows_something() };
    turned.then(away)
}

/// Reads a whole body as text.
pub(crate) async fn read(url: &Url, mut response: Response) -> Result<(StatusCode, String), CallError> {
    let status = response.status();
    if let Some(elsewhere) = response.headers().get(header::LOCATION).filter(|_| status.is_redirection()) {
        let elsewhere = String::from_utf8_lossy(elsewhere.as_bytes()).into_owned();
        return Err(CallError::not_understood(url, format!("it redirects to {elsewhere}; use that address")));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| CallError::unreachable(url, &error))? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(CallError::not_understood(url, format!("more than {MOST_BYTES} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(body).map_err(|_| CallError::not_understood(url, "not UTF-8"))?;
    Ok((status, text))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(url: &str) -> Result<Peer, CallError> {
        Peer::new(url, Duration::from_secs(1))
    }

    #[test]
    fn segments_are_added_whatever_they_hold() {
        for url in ["http://h/a", "http://h/a/"] {
            assert_eq!(peer(url).unwrap().at(["b", "c/d ?"]).as_str(), "http://h/a/b/c%2Fd%20%3F");
        }
        assert_eq!(peer("http://h").unwrap().at(["x"]).as_str(), "http://h/x");
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for url in ["", "h:1", "ftp://h", "127.0.0.1:7420"] {
            assert!(matches!(peer(url), Err(CallError::BadUrl { .. })), "{url}");
        }
    }

    #[test]
    fn the_loopback_is_known_by_all_its_names() {
        for (url, loopback) in [
            ("http://localhost:1", true),
            ("http://127.0.0.9", true),
            ("http://[::1]:1", true),
            ("http://example.org", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), loopback, "{url}");
        }
    }
}
