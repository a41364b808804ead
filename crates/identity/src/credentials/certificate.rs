//! Client certificates: the names a caller is known by, and the names a certificate carries.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use chancery_protocol::Timestamp;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::certificate_fields::{AlternativeName, CertificateFields};
use super::{CredentialRefusal, RefusalKind, hex};
use crate::SealKey;

/// One name of a certificate. The common name is not accepted: it does not say what kind of name it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateName {
    /// A URI among its alternative names, compared exactly.
    Uri(String),
    /// A DNS name among its alternative names, in lower case, never a pattern.
    Dns(String),
    /// SHA-256 of the whole certificate.
    Sha256([u8; 32]),
}

impl FromStr for CertificateName {
    type Err = &'static str;

    /// `spiffe://…`, `uri:URI`, `dns:NAME` or `sha256:HEX`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("spiffe://") && text.len() > "spiffe://".len() {
            Ok(Self::Uri(text.to_owned()))
        } else if let Some(uri) = text.strip_prefix("uri:").filter(|uri| uri.contains(':')) {
            Ok(Self::Uri(uri.to_owned()))
        } else if let Some(name) = text.strip_prefix("dns:").filter(|name| !name.is_empty()) {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if name.bytes().all(letter) { Ok(Self::Dns(name.to_ascii_lowercase())) } else { Err("a DNS name has no wildcard") }
        } else if let Some(print) = text.strip_prefix("sha256:") {
            // Tools print fingerprints with colons.
            hex::read(&print.replace(':', "")).map(Self::Sha256).ok_or("a fingerprint is 64 hex digits")
        } else {
            Err("a certificate name is spiffe://…, uri:URI, dns:NAME or sha256:HEX")
        }
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(uri) if uri.starts_with("spiffe://") => f.write_str(uri),
            Self::Uri(uri) => write!(f, "uri:{uri}"),
            Self::Dns(name) => write!(f, "dns:{name}"),
            Self::Sha256(print) => write!(f, "sha256:{}", hex::HexBytes(print)),
        }
    }
}

impl fmt::Debug for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CertificateName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CertificateName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// The DNS names and addresses that a server certificate is for, as they stand in it. Nothing of one that cannot be read.
pub fn server_names(der: &[u8]) -> Vec<String> {
    let Some(certificate) = CertificateFields::read(der) else { return Vec::new() };
    let name = |name: &AlternativeName<'_>| match name {
        AlternativeName::Dns(name) => Some((*name).to_owned()),
        AlternativeName::Address(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|address| IpAddr::from(address).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|address| IpAddr::from(address).to_string()),
            _ => None,
        },
        AlternativeName::Uri(_) | AlternativeName::Other => None,
    };
    certificate.names.iter().take(MOST_NAMES).filter_map(name).collect()
}

/// What a presented certificate says, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateFacts {
    pub names: Vec<CertificateName>,
    not_before: i64,
    not_after: i64,
}

/// The most alternative names of a certificate.
const MOST_NAMES: usize = 100;

impl CertificateFacts {
    /// Whether the chain holds is decided by the TLS library before a certificate comes here.
    pub(super) fn read(der: &[u8]) -> Result<Self, CredentialRefusal> {
        let malformed = || CredentialRefusal::new(RefusalKind::Malformed, "the client certificate cannot be read");
        let certificate = CertificateFields::read(der).ok_or_else(malformed)?;
        let mut names = vec![CertificateName::Sha256(SealKey::digest(der))];
        for name in certificate.names.iter().take(MOST_NAMES) {
            match name {
                AlternativeName::Uri(uri) => names.push(CertificateName::Uri((*uri).to_owned())),
                AlternativeName::Dns(name) => names.push(CertificateName::Dns(name.to_ascii_lowercase())),
                AlternativeName::Address(_) | AlternativeName::Other => {}
            }
        }
        Ok(Self { names, not_before: certificate.not_before, not_after: certificate.not_after })
    }

    /// Again, although TLS looked when the connection was made: connections live longer than certificates may.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), CredentialRefusal> {
        let now = now.micros().div_euclid(1_000_000);
        if now < self.not_before {
            return Err(CredentialRefusal::new(RefusalKind::ClockSkew, "the client certificate is not valid yet"));
        }
        if now > self.not_after {
            return Err(CredentialRefusal::new(RefusalKind::Expired, "the client certificate has expired"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_they_are_printed() {
        let print = "ab".repeat(32);
        for (given, printed) in [
            ("spiffe://acme/ns/ci", "spiffe://acme/ns/ci"),
            ("uri:spiffe://acme/x", "spiffe://acme/x"),
            ("uri:urn:acme:ci", "uri:urn:acme:ci"),
            ("dns:CI.Acme.Example", "dns:ci.acme.example"),
            (&format!("sha256:{print}"), &format!("sha256:{print}")),
            (&format!("sha256:{}AB", "AB:".repeat(31)), &format!("sha256:{print}")),
        ] {
            let name: CertificateName = given.parse().unwrap();
            assert_eq!(name.to_string(), printed);
            assert_eq!(printed.parse(), Ok(name));
        }
        for bad in ["", "ci", "dns:", "dns:*.acme.example", "sha256:ab", "spiffe://", "uri:", "uri:x", "cn:ci"] {
            assert!(bad.parse::<CertificateName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_are_malformed() {
        for garbage in [&b""[..], b"garbage", &[0x30, 0x82, 0xff, 0xff]] {
            assert_eq!(CertificateFacts::read(garbage).unwrap_err().kind, RefusalKind::Malformed);
        }
    }
}
