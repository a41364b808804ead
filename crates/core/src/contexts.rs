//! Context ids of this node carry a mark of their owner, so that no other caller can continue the
//! conversation.
//!
//! A context belongs to its owner, like a task. The same id of two owners is two contexts, so a caller may
//! use any name of its own. An id in the node's form is valid only for the owner that it was made for. The
//! answer to another caller does not depend on whether the id exists. The mark replaces random bits of the
//! id. So no store lookup is needed, and the answer stays the same after the context's tasks are deleted.

use chancery_protocol::{Caller, ContextId, Error};
use uuid::Uuid;

use crate::Seal;

const PURPOSE: &str = "context";
/// Where the mark begins in the sixteen bytes.
const MARK_AT: usize = 12;
/// The version of ids whose content is their maker's own business (RFC 9562).
const OURS: usize = 8;

/// Ordered by time like every id made here.
pub(crate) fn fresh(seal: &dyn Seal, owner: &Caller) -> ContextId {
    let mut bytes = *Uuid::now_v7().as_bytes();
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    let mark = mark(seal, owner, &bytes);
    bytes[MARK_AT..].copy_from_slice(&mark);
    let mut buffer = Uuid::encode_buffer();
    let text: &str = Uuid::from_bytes(bytes).hyphenated().encode_lower(&mut buffer);
    ContextId::from(text)
}

/// Refuses an id that the node made, or seems to have made, for another owner.
pub(crate) fn check(seal: &dyn Seal, owner: &Caller, id: &ContextId) -> Result<(), Error> {
    let Ok(uuid) = Uuid::try_parse(id.as_str()) else { return Ok(()) };
    let bytes = uuid.as_bytes();
    if uuid.get_version_num() != OURS || bytes[MARK_AT..] == mark(seal, owner, bytes) {
        return Ok(());
    }
    Err(Error::invalid_field("message.contextId", "is not a context of this caller; leave it out to start a new one"))
}

fn mark(seal: &dyn Seal, owner: &Caller, bytes: &[u8; 16]) -> [u8; 4] {
    let mut content = Vec::with_capacity(MARK_AT + size_of::<u64>() + owner.tenant.len() + owner.name.len());
    content.extend_from_slice(&bytes[..MARK_AT]);
    content.extend_from_slice(&(owner.tenant.len() as u64).to_be_bytes());
    content.extend_from_slice(owner.tenant.as_bytes());
    content.extend_from_slice(owner.name.as_bytes());
    let [a, b, c, d, ..] = seal.mark(PURPOSE, &content);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    #[test]
    fn a_context_is_good_only_in_the_hands_it_was_made_for() {
        let (me, other) = (Caller::new("t", "me"), Caller::new("t", "other"));
        let mine = fresh(&Marks, &me);
        assert_eq!(check(&Marks, &me, &mine), Ok(()));
        for stranger in [other, Caller::new("tm", "e"), Caller::new("u", "me")] {
            assert!(check(&Marks, &stranger, &mine).is_err(), "{stranger:?}");
        }
    }

    #[test]
    fn names_of_a_callers_own_choosing_are_fine_and_made_up_ids_of_ours_are_not() {
        let me = Caller::new("t", "me");
        for own in ["session-1", "", "0190163d-8694-739b-aea5-966c26f8ad90", "6f1c1e52-51b3-4b56-93a1-0d3ed2ff0a2c"] {
            assert_eq!(check(&Marks, &me, &own.into()), Ok(()), "{own}");
        }
        let made_up = check(&Marks, &me, &"0190163d-8694-839b-aea5-966c26f8ad90".into()).unwrap_err();
        let of_another = check(&Marks, &me, &fresh(&Marks, &Caller::new("t", "x"))).unwrap_err();
        assert_eq!(made_up, of_another, "whether it ever was one does not show");
    }

    #[test]
    fn a_thousand_contexts_of_one_moment_are_a_thousand_contexts() {
        let owner = Caller::new("t", "me");
        let made: std::collections::BTreeSet<_> = (0..1000).map(|_| fresh(&Marks, &owner)).collect();
        assert_eq!(made.len(), 1000);
    }

    /// Marks without a secret; good enough to tell contents apart.
    #[derive(Debug)]
    struct Marks;

    impl Seal for Marks {
        fn seal(&self, _purpose: &str, _content: &[u8]) -> String {
            String::new()
        }

        fn open(&self, _purpose: &str, _token: &str) -> Option<Vec<u8>> {
            None
        }

        fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
            let mut hasher = DefaultHasher::new();
            (purpose, content).hash(&mut hasher);
            let mut mark = [0; 32];
            mark[..8].copy_from_slice(&hasher.finish().to_be_bytes());
            mark
        }

        fn digest(&self, content: &[u8]) -> [u8; 32] {
            self.mark("digest", content)
        }
    }
}
