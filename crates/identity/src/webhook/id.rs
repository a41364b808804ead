//! The id of a delivery: whom it is for, which lane it belongs to, and which entries it carries.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{Context, SHA256};

/// What is hashed before the URL of a receiver.
const AUDIENCE_DOMAIN: &[u8] = b"a2a-push-aud/1\n";

/// Sixteen hex digits for the URL of a receiver, exactly as it was registered.
pub fn audience(url: &str) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(AUDIENCE_DOMAIN);
    digest.update(url.as_bytes());
    digest.finish().as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which entries a delivery carries. With it in the id, one id is always one sequence of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carries {
    /// The entry of its number.
    Entry,
    /// Pieces of an artifact from that entry on, put together.
    MergedFrom(u64),
    /// The task as it was after the entry of its number.
    Snapshot,
}

/// `msg_{audience}_{lane}_{seq}`, with `-m{from}` or `-s` behind it for what is not a single entry, and `-r{n}` if it is sent under a
/// new id on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookId {
    pub audience: String,
    pub lane: u64,
    pub seq: u64,
    pub carries: Carries,
    pub resent: Option<u64>,
}

impl WebhookId {
    pub fn new(url: &str, lane: u64, seq: u64, carries: Carries) -> Self {
        Self { audience: audience(url), lane, seq, carries, resent: None }
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "msg_{}_{}_{}", self.audience, self.lane, self.seq)?;
        match self.carries {
            Carries::Entry => {}
            Carries::MergedFrom(from) => write!(f, "-m{from}")?,
            Carries::Snapshot => f.write_str("-s")?,
        }
        self.resent.map_or(Ok(()), |times| write!(f, "-r{times}"))
    }
}

impl FromStr for WebhookId {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        let mut parts = text.strip_prefix("msg_").ok_or(NotOurs)?.splitn(3, '_');
        let mut part = || parts.next().ok_or(NotOurs);
        let (audience, lane, rest) = (part()?, part()?, part()?);
        if audience.len() != 16 || !audience.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(NotOurs);
        }
        let mut suffixes = rest.split('-');
        let seq = suffixes.next().ok_or(NotOurs)?;
        let (mut carries, mut resent) = (Carries::Entry, None);
        for (place, suffix) in suffixes.enumerate() {
            match (place, suffix.as_bytes().first()) {
                (0, Some(b's')) if suffix.len() == 1 => carries = Carries::Snapshot,
                (0, Some(b'm')) => carries = Carries::MergedFrom(number(&suffix[1..])?),
                (0 | 1, Some(b'r')) if resent.is_none() => resent = Some(number(&suffix[1..])?),
                _ => return Err(NotOurs),
            }
        }
        Ok(Self { audience: audience.to_owned(), lane: number(lane)?, seq: number(seq)?, carries, resent })
    }
}

/// An id of another sender, or a made-up one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a notification id of this node")]
pub struct NotOurs;

/// Only as it is written: no sign, no zeros before it.
fn number(text: &str) -> Result<u64, NotOurs> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(NotOurs);
    }
    text.parse().map_err(|_| NotOurs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://hooks.example.com/a2a?x=1";

    #[test]
    fn an_audience_is_the_beginning_of_a_hash_that_anybody_can_make() {
        // printf 'a2a-push-aud/1\nhttps://hooks.example.com/a2a?x=1' | sha256sum
        assert_eq!(audience(URL), "1f85f8e5c3f03e4d");
        assert_ne!(audience(URL), audience("https://hooks.example.com/a2a?x=2"));
    }

    #[test]
    fn an_id_says_what_it_was_made_of() {
        let audience = audience(URL);
        let written = |carries, resent| WebhookId { resent, ..WebhookId::new(URL, 7, 42, carries) }.to_string();
        assert_eq!(written(Carries::Entry, None), format!("msg_{audience}_7_42"));
        assert_eq!(written(Carries::MergedFrom(40), None), format!("msg_{audience}_7_42-m40"));
        assert_eq!(written(Carries::Snapshot, Some(3)), format!("msg_{audience}_7_42-s-r3"));
        for carries in [Carries::Entry, Carries::MergedFrom(1), Carries::Snapshot] {
            for resent in [None, Some(0), Some(u64::MAX)] {
                let id = WebhookId { resent, ..WebhookId::new(URL, u64::MAX, 0, carries) };
                assert_eq!(id.to_string().parse(), Ok(id.clone()));
                assert!(id.to_string().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            }
        }
    }

    #[test]
    fn what_only_looks_like_one_is_not_an_id_of_ours() {
        for bad in [
            "",
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            "msg_ff07d19b7a4b0bd4_7",
            "msg_ff07d19b7a4b0bd4_7_",
            "msg_FF07D19B7A4B0BD4_7_42",
            "msg_ff07d19b7a4b0bd_7_42",
            "msg_ff07d19b7a4b0bd4_+7_42",
            "msg_ff07d19b7a4b0bd4_07_42",
            "msg_ff07d19b7a4b0bd4_7_42_1",
            "msg_ff07d19b7a4b0bd4_7_42-",
            "msg_ff07d19b7a4b0bd4_7_42-x1",
            "msg_ff07d19b7a4b0bd4_7_42-s1",
            "msg_ff07d19b7a4b0bd4_7_42-r1-s",
            "msg_ff07d19b7a4b0bd4_7_42-r1-r1",
            "msg_ff07d19b7a4b0bd4_7_18446744073709551616",
        ] {
            assert_eq!(bad.parse::<WebhookId>(), Err(NotOurs), "{bad}");
        }
    }
}
