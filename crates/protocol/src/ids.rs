//! Identifiers as types of their own, cheap to clone because every event and record carries them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The first control character of a text. Ids and names have none: they are shown on terminals, in logs and in headers, where
/// such a character can end a line or hide what comes after it.
pub fn control_character(text: &str) -> Option<char> {
    // Nearly all ids and names are printable ASCII, which needs no look at single characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    text.chars().find(|character| character.is_control())
}

/// Reads text into its place at once, without a string in between.
struct Text;

impl Visitor<'_> for Text {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

id!(
    /// A task, named by the server that made it.
    TaskId
);
id!(
    /// A conversation: tasks and messages that belong together.
    ContextId
);
id!(
    /// A message id, chosen by the author of the message. Repeats are legal.
    MessageId
);
id!(
    /// An artifact within one task.
    ArtifactId
);
