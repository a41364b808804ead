//! Checks which key addresses (`jku`) a card may name: otherwise the forger of a card could also choose its
//! keys.

use std::net::IpAddr;

use http::Uri;

#[derive(PartialEq, Eq)]
struct Origin {
    https: bool,
    host: String,
    port: u16,
}

impl Origin {
    fn of(url: &str) -> Option<Self> {
        // Characters that readers of addresses disagree about.
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'@' | b'#')) {
            return None;
        }
        let uri: Uri = url.parse().ok()?;
        let https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        // A port that is there but is none is not the default port.
        let authority = uri.authority()?.as_str();
        let port = match uri.port_u16() {
            Some(port) => port,
            None if authority.len() == host.len() => {
                if https {
                    443
                } else {
                    80
                }
            }
            None => return None,
        };
        Some(Self { https, host, port })
    }

    fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.map_or(self.host == "localhost", |address| address.is_loopback())
    }
}

/// Whether keys may be fetched from there: from where the card came from, or from an origin that is allowed by configuration. Over
/// https; over http only on the loopback interface, and only for a card that itself came from there.
pub fn jku_allowed(jku: &str, card_url: Option<&str>, allowed_origins: &[String]) -> bool {
    let Some(jku) = Origin::of(jku) else { return false };
    let card = card_url.and_then(Origin::of);
    let local_card = card.as_ref().is_some_and(Origin::is_loopback);
    let plain_is_fine = jku.is_loopback() && local_card;
    if !jku.https && !plain_is_fine {
        return false;
    }
    card.as_ref() == Some(&jku) || allowed_origins.iter().any(|allowed| Origin::of(allowed).as_ref() == Some(&jku))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_cards_origin_or_an_allowed_one() {
        let allowed = ["https://keys.example".to_owned(), "http://plain.example".to_owned()];
        let from = |jku: &str, card: &str| jku_allowed(jku, Some(card), &allowed);
        let card = "https://Agent.example/.well-known/agent-card.json";
        for good in [
            "https://agent.example/.well-known/jwks.json",
            "https://AGENT.example:443/jwks",
            "https://agent.example?set=1",
            "https://keys.example/any",
        ] {
            assert!(from(good, card), "{good}");
        }
        for bad in [
            "http://agent.example/jwks",
            "https://agent.example:8443/jwks",
            "https://agent.example.evil/jwks",
            "https://evil.example/jwks",
            "https://agent.example@evil.example/jwks",
            "https://user@agent.example/jwks",
            "https://agent.example\\@evil.example/",
            "https://evil.example#agent.example",
            "https://agent.example:/jwks",
            "https://agent.example:99999/jwks",
            "http://plain.example/jwks",
            "http://127.0.0.1/jwks",
            "https://127.0.0.1/jwks",
            "//agent.example/jwks",
            "/jwks",
            "file:///etc/passwd",
            "ftp://agent.example/",
            "https://agent.example /jwks",
            "https://agént.example/jwks",
            "",
        ] {
            assert!(!from(bad, card), "{bad}");
        }
    }

    #[test]
    fn plain_http_is_for_cards_from_the_loopback_interface() {
        let from = |jku: &str, card: &str| jku_allowed(jku, Some(card), &["http://localhost:9".to_owned()]);
        assert!(from("http://127.0.0.1:8080/jwks", "http://127.0.0.1:8080/card"));
        assert!(from("http://[::1]:8080/jwks", "http://[::1]:8080/card"));
        assert!(from("http://localhost:9/jwks", "http://127.0.0.1:8080/card"));
        assert!(!from("http://127.0.0.1:8081/jwks", "http://127.0.0.1:8080/card"));
        assert!(!from("http://localhost:9/jwks", "https://agent.example/card"));
        assert!(!from("http://agent.example/jwks", "http://agent.example/card"));
        assert!(!jku_allowed("https://agent.example/jwks", None, &[]));
    }
}
