//! The `kind` that tells 0.3 results and events apart.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::form::Form;
use crate::json::peer::from_peer;
use chancery_protocol::Error;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

impl Kind {
    /// Returns the tag, unless the form has a wrapper that says the same.
    pub(super) fn in_form<F: Form>(self) -> Option<Self> {
        F::HAS_KIND.then_some(self)
    }

    /// The kind of a peer's result. Peers that leave the tag out are known by what only one kind has.
    pub(super) fn peek(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Peek {
            kind: Option<Kind>,
            message_id: Option<IgnoredAny>,
            artifact: Option<IgnoredAny>,
            task_id: Option<IgnoredAny>,
        }

        let peek: Peek = from_peer(text)?;
        Ok(match (peek.kind, peek.message_id, peek.artifact, peek.task_id) {
            (Some(kind), ..) => kind,
            (None, Some(_), ..) => Self::Message,
            (None, None, Some(_), _) => Self::ArtifactUpdate,
            (None, None, None, Some(_)) => Self::StatusUpdate,
            (None, None, None, None) => Self::Task,
        })
    }
}
