//! Encodes a large event once for all its readers: in one version and form the payload is the same for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use chancery_core::{AnswerPermit, LogEntry, task_state};
use chancery_protocol::{TaskEvent, TaskId};
use chancery_wire::Payload;

/// Smaller ones are encoded faster than they are found.
const SHARED_FROM: u64 = 16 * 1024;
/// What stands around the content of a large event.
const AROUND: usize = 4 * 1024;

/// The large events that at least one reader is receiving.
#[derive(Debug, Default)]
pub(crate) struct SharedEvents(Mutex<HashMap<EventKey, Weak<SharedEvent>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventKey {
    task: TaskId,
    seq: u64,
    /// A picture of the task after that entry, and not the entry.
    snapshot: bool,
    form: EventForm,
}

/// How an event is written: readers share what is written in the same form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventForm {
    /// The codec or the protobuf package.
    pub(crate) codec: &'static str,
    /// With references to large parts in place of the parts.
    pub(crate) references: bool,
    /// As an event that the stream goes on after.
    pub(crate) stays_open: bool,
}

/// The payloads of one event. Each reader that receives them holds it.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    key: EventKey,
    events: Weak<SharedEvents>,
    payloads: Vec<Payload>,
    _permit: Option<Arc<AnswerPermit>>,
}

/// One payload of a shared event.
#[derive(Debug)]
pub(crate) struct SharedPayload {
    event: Arc<SharedEvent>,
    at: usize,
}

impl AsRef<[u8]> for SharedPayload {
    fn as_ref(&self) -> &[u8] {
        self.event.payloads[self.at].bytes()
    }
}

impl SharedEvent {
    /// Each payload with what is needed to write a frame around it.
    pub(crate) fn payloads(self: &Arc<Self>) -> impl Iterator<Item = (&Payload, SharedPayload)> {
        self.payloads.iter().enumerate().map(|(at, payload)| (payload, SharedPayload { event: Arc::clone(self), at }))
    }
}

impl SharedEvents {
    fn lock(&self) -> MutexGuard<'_, HashMap<EventKey, Weak<SharedEvent>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The event in this form, if it is large enough to be shared. The first reader encodes it, into payloads
    /// that `encode` makes from about so many bytes. It counts as that caller's until its last reader has
    /// received it.
    pub(crate) fn encoded(
        self: &Arc<Self>,
        task: &TaskId,
        entry: &LogEntry,
        form: &EventForm,
        permit: Option<&Arc<AnswerPermit>>,
        encode: impl FnOnce(usize) -> Vec<Payload>,
    ) -> Option<Arc<SharedEvent>> {
        let weight = match &entry.event {
            TaskEvent::Created(task) => task_state::task_weight(task),
            event => task_state::weight(event),
        };
        if weight < SHARED_FROM {
            return None;
        }
        let snapshot = matches!(entry.event, TaskEvent::Created(_));
        let key = EventKey { task: task.clone(), seq: entry.seq, snapshot, form: form.clone() };
        if let Some(known) = self.lock().get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        let payloads = encode(usize::try_from(weight).unwrap_or(0) + AROUND);
        let (events, permit) = (Arc::downgrade(self), permit.cloned());
        let event = Arc::new(SharedEvent { key: key.clone(), events, payloads, _permit: permit });
        self.lock().insert(key, Arc::downgrade(&event));
        Some(event)
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        let Some(events) = self.events.upgrade() else { return };
        let mut events = events.lock();
        // Somebody may have encoded it anew meanwhile.
        if events.get(&self.key).is_some_and(|event| event.strong_count() == 0) {
            events.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Message, Role, StatusChange, TaskState, TaskStatus, Timestamp, Unknown};

    fn entry(seq: u64, bytes: usize) -> LogEntry {
        let message = Some(Arc::new(Message::text(Role::Agent, "m", "x".repeat(bytes))));
        let status = TaskStatus { state: TaskState::Working, message, timestamp: None, unknown: Unknown::none() };
        let event = TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() });
        LogEntry { seq, at: Timestamp::from_micros(0), event }
    }

    #[test]
    fn readers_of_one_event_in_one_form_share_its_bytes_until_the_last_of_them_has_them() {
        let events = Arc::new(SharedEvents::default());
        let encoded = |seq, bytes, codec| {
            let form = EventForm { codec, references: false, stays_open: false };
            events.encoded(&"t".into(), &entry(seq, bytes), &form, None, |bytes| vec![Payload::whole(vec![0; bytes])])
        };
        assert!(encoded(1, 10, "1.0").is_none(), "a small one is not shared");
        let first = encoded(1, 20_000, "1.0").unwrap();
        assert!(Arc::ptr_eq(&first, &encoded(1, 20_000, "1.0").unwrap()));
        assert!(!Arc::ptr_eq(&first, &encoded(2, 20_000, "1.0").unwrap()), "another event");
        assert!(!Arc::ptr_eq(&first, &encoded(1, 20_000, "0.3").unwrap()), "another version");
        let (_, piece) = first.payloads().next().unwrap();
        drop(first);
        assert_eq!(events.lock().len(), 1, "who is still being sent it keeps it");
        assert!(piece.as_ref().len() > 20_000);
        drop(piece);
        assert!(events.lock().is_empty());
    }
}
