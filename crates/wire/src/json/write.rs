//! Writing straight from the model into a buffer, without a copy of it in between.

use serde::{Serialize, Serializer};

/// A list whose items are written through a view of each.
pub(crate) struct Each<'a, T, V>(pub &'a [T], pub fn(&'a T) -> V);

impl<T, V: Serialize> Serialize for Each<'_, T, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(self.1))
    }
}

impl<'a, T, V> Each<'a, T, V> {
    /// Nothing for an empty list, so that the member is left out.
    pub(crate) fn some(items: &'a [T], view: fn(&'a T) -> V) -> Option<Self> {
        (!items.is_empty()).then_some(Self(items, view))
    }
}

/// Adds `value` to `out` as JSON.
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Our own types always serialise; should one ever not, what follows must still be JSON.
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
