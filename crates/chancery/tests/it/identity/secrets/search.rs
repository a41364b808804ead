//! Looks for secrets in whatever a node left behind, in every form somebody might have written them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A secret by what it is, and the bytes it comes as.
pub(super) struct Secret {
    pub(super) what: String,
    forms: Vec<String>,
}

/// Bytes as text, one character each, so that they can be searched fast.
pub(super) fn readable(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

impl Secret {
    pub(super) fn new(what: impl Into<String>, bytes: &[u8]) -> Self {
        assert!(bytes.len() >= 16, "too short to be found for sure");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let decimal = bytes.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut forms = vec![readable(bytes), hex.to_uppercase(), hex, decimal.join(", "), decimal.join(",")];
        for offset in 0..3 {
            forms.extend([&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|engine| inside(engine, bytes, offset)));
        }
        Self { what: what.into(), forms }
    }

    /// Whether it is in what [`readable`] made.
    pub(super) fn is_in(&self, haystack: &str) -> bool {
        self.forms.iter().any(|form| haystack.contains(form))
    }
}

/// The base64 of the bytes where they stand inside something longer, this far from a group of three: without the characters
/// that also depend on what is around them.
fn inside(engine: &impl base64::Engine, bytes: &[u8], offset: usize) -> String {
    let text = engine.encode([&vec![0; offset], bytes].concat());
    let (first, last) = ((offset * 8).div_ceil(6), (offset + bytes.len()) * 8 / 6);
    text[first..last].to_owned()
}

#[test]
fn a_secret_is_found_in_every_form_and_a_similar_one_is_not() {
    let bytes: Vec<u8> = (100..140).collect();
    let secret = Secret::new("it", &bytes);
    let whole = [b"before".as_slice(), &bytes, b"after!"].concat();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for padding in 0..3 {
        let around = &whole[padding..];
        assert!(secret.is_in(&STANDARD_NO_PAD.encode(around)) && secret.is_in(&URL_SAFE_NO_PAD.encode(around)));
    }
    assert!(secret.is_in(&readable(&whole)) && secret.is_in(&format!("x{hex}x")) && secret.is_in(&format!("{bytes:?}")));
    let mut other = whole;
    other[20] ^= 1;
    assert!(!secret.is_in(&readable(&other)) && !secret.is_in(&STANDARD_NO_PAD.encode(&other)));
}
