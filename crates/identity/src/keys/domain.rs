//! What a key may sign. Each use has keys of its own, and no two uses ever sign the same bytes.
//!
//! The second half holds even if an operator gives one key for two uses, because the signed texts differ. A
//! card is signed as `BASE64URL.BASE64URL` (one dot) or as JSON that opens with a brace. A push is signed as
//! `ID.SECONDS.BODY` with an id of letters, digits, `_` and `-`: two dots and no brace before them. It can
//! also be a JWT, whose header names another type than that of a card. A request is signed with the key of
//! cards, as lines that open with a quotation mark (RFC 9421). The node's own formats open with a domain that
//! has spaces and ends in a zero byte. None of the others can contain that.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The use of a key. A key has one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyUse {
    /// Signatures of cards.
    Cards,
    /// Signatures of hop tokens.
    HopTokens,
    /// Signatures of push notifications.
    Push,
    /// Signatures of checkpoints of the record.
    Receipts,
    /// Signatures of grants for the memory.
    MemoryGrants,
}

impl KeyUse {
    /// Every use.
    pub const ALL: [Self; 5] = [Self::Cards, Self::HopTokens, Self::Push, Self::Receipts, Self::MemoryGrants];

    /// Returns the name of the use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cards => "cards",
            Self::HopTokens => "hop-tokens",
            Self::Push => "push",
            Self::Receipts => "receipts",
            Self::MemoryGrants => "memory-grants",
        }
    }
}

impl fmt::Display for KeyUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KeyUse {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|one| one.as_str() == text)
            .ok_or("a key is for cards, hop-tokens, push, receipts or memory-grants")
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A use as a type, so that a key for one cannot be handed to another.
pub trait Domain: sealed::Sealed + Send + Sync + 'static {
    /// The use of the keys.
    const USE: KeyUse;
}

/// A use whose format is ours, so that what is signed can begin with its domain.
pub trait OwnFormat: Domain {
    /// The bytes before each signed text.
    const PREFIX: &'static [u8];
}

macro_rules! domain {
    ($(#[$note:meta])* $name:ident $(, $prefix:literal)?) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl Domain for $name {
            const USE: KeyUse = KeyUse::$name;
        }
        $(impl OwnFormat for $name {
            const PREFIX: &'static [u8] = $prefix;
        })?
    };
}

domain!(
    /// Agent cards. The agent id comes from the Ed25519 key of this use.
    Cards
);
domain!(
    /// Tokens that carry a call's lineage from hop to hop.
    HopTokens,
    b"chancery hop token v1\0"
);
domain!(
    /// Notifications to webhooks.
    Push
);
domain!(
    /// Receipts and evidence.
    Receipts,
    b"chancery receipt v1\0"
);
domain!(
    /// Grants that open shared memory.
    MemoryGrants,
    b"chancery memory grant v1\0"
);
