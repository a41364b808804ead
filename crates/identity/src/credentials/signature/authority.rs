//! The names a node is called by: what a signed request must have been meant for.

use std::str::FromStr;

/// Scheme and authority as signatures cover them: lower case, without the default port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    pub(super) scheme: &'static str,
    pub(super) host_and_port: String,
}

impl FromStr for Authority {
    type Err = &'static str;

    /// `https://HOST[:PORT]`, `http://HOST[:PORT]`, or only `HOST[:PORT]`, which means https.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let (scheme, rest) = match lower.split_once("://") {
            None => ("https", lower.as_str()),
            Some(("https", rest)) => ("https", rest),
            Some(("http", rest)) => ("http", rest),
            Some(_) => return Err("an authority is reached by http or https"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: http::uri::Authority = rest.parse().map_err(|_| "an authority is HOST or HOST:PORT")?;
        if authority.host().is_empty() || rest.contains('@') {
            return Err("an authority is HOST or HOST:PORT");
        }
        let default_port = if scheme == "https" { 443 } else { 80 };
        let host = authority.host();
        let host_and_port = match authority.port_u16() {
            Some(port) if port != default_port => format!("{host}:{port}"),
            None if rest != host => return Err("a port is a number up to 65535"),
            _ => host.to_owned(),
        };
        Ok(Self { scheme, host_and_port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_lower_case_and_without_its_default_port() {
        for (given, scheme, expected) in [
            ("Node.Example", "https", "node.example"),
            ("node.example:443", "https", "node.example"),
            ("node.example:80", "https", "node.example:80"),
            ("http://node.example:80/", "http", "node.example"),
            ("http://127.0.0.1:8080", "http", "127.0.0.1:8080"),
            ("https://[::1]:8443", "https", "[::1]:8443"),
        ] {
            let authority: Authority = given.parse().unwrap();
            assert_eq!((authority.scheme, authority.host_and_port.as_str()), (scheme, expected), "{given}");
        }
        for bad in ["", "ftp://x", "a b", "user@node", "node/path", "node:99999", "https://"] {
            assert!(bad.parse::<Authority>().is_err(), "{bad}");
        }
    }
}
