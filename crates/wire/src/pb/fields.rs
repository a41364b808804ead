//! What reading a protobuf field can find wrong, with a path to it in the schema's own names.

use chancery_protocol::{Error, ErrorKind, Json, Metadata, Role, TaskId, TaskState, Timestamp};
use prost_types::{Struct, Value};

use super::structs;

/// Puts a fault below the field that holds it. Only a fault costs anything.
pub(super) trait Within {
    fn within(self, field: &str) -> Self;
}

impl<T> Within for Result<T, Error> {
    fn within(self, field: &str) -> Self {
        self.map_err(|error| match error.violations.first() {
            Some(fault) => Error { kind: error.kind, ..Error::invalid_field(join(field, &fault.field), &*fault.description) },
            None => error,
        })
    }
}

fn join(outer: &str, inner: &str) -> String {
    match inner.as_bytes().first() {
        None => outer.to_owned(),
        Some(b'[') => format!("{outer}{inner}"),
        Some(_) => format!("{outer}.{inner}"),
    }
}

pub(super) fn required<T>(value: Option<T>, field: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::invalid_field(field, "is required"))
}

/// A string that must say something. Protobuf does not tell an empty one from an absent one.
pub(super) fn text<T: From<String>>(text: String, field: &str) -> Result<T, Error> {
    optional(text).ok_or_else(|| Error::invalid_field(field, "is required"))
}

pub(super) fn optional<T: From<String>>(text: String) -> Option<T> {
    (!text.is_empty()).then(|| T::from(text))
}

/// Returns the text of a field that only one of the schemas has, if the sender has set it.
pub(super) fn first_text<T: From<String>, const N: usize>(texts: [String; N]) -> Option<T> {
    texts.into_iter().find_map(optional)
}

/// Returns the task ids of a field that only one of the schemas has.
pub(super) fn task_ids<const N: usize>(ids: [Vec<String>; N]) -> Vec<TaskId> {
    ids.into_iter().flatten().map(TaskId::from).collect()
}

/// An absent text is an empty one on the wire.
pub(super) fn or_empty<T: ToString>(text: Option<&T>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// Numbers without presence: zero is unset.
pub(super) fn non_zero(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

pub(super) fn list<P, M>(items: Vec<P>, field: &str, read: impl Fn(P) -> Result<M, Error>) -> Result<Vec<M>, Error> {
    let read = |(index, item)| read(item).map_err(|fault| (index, fault));
    items
        .into_iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()
        .or_else(|(index, fault): (usize, Error)| Err(fault).within(&format!("{field}[{index}]")))
}

pub(super) fn metadata(object: Option<Struct>, field: &str) -> Result<Option<Metadata>, Error> {
    object.as_ref().map(structs::to_metadata).transpose().within(field)
}

pub(super) fn to_metadata(metadata: Option<&Metadata>) -> Option<Struct> {
    metadata.map(structs::to_struct)
}

pub(super) fn json(value: &Value, field: &str) -> Result<Json, Error> {
    structs::to_json(value).within(field)
}

pub(super) fn role(number: i32, field: &str) -> Result<Role, Error> {
    match number {
        1 => Ok(Role::User),
        2 => Ok(Role::Agent),
        0 => Err(Error::invalid_field(field, "is required")),
        other => Err(Error::invalid_field(field, format!("{other} is not a role"))),
    }
}

pub(super) fn to_role(role: Role) -> i32 {
    match role {
        Role::User => 1,
        Role::Agent => 2,
    }
}

pub(super) fn state(number: i32, field: &str) -> Result<TaskState, Error> {
    TaskState::from_number(number.into()).ok_or_else(|| Error::invalid_field(field, format!("{number} is not a task state")))
}

const MICROS: i64 = 1_000_000;

/// Finer than microseconds is dropped.
pub(super) fn timestamp(time: prost_types::Timestamp, field: &str) -> Result<Timestamp, Error> {
    // The years 1 to 9999, which is what RFC 3339 can write.
    const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
    if !SECONDS.contains(&time.seconds) || !(0..1_000_000_000).contains(&time.nanos) {
        return Err(Error::invalid_field(field, "is not a time of the years 1 to 9999"));
    }
    Ok(Timestamp::from_micros(time.seconds * MICROS + i64::from(time.nanos / 1000)))
}

pub(super) fn to_timestamp(time: Timestamp) -> prost_types::Timestamp {
    let nanos = time.micros().rem_euclid(MICROS) * 1000;
    // Less than a second always fits.
    prost_types::Timestamp { seconds: time.micros().div_euclid(MICROS), nanos: i32::try_from(nanos).unwrap_or_default() }
}

/// A peer's fault is not the caller's.
pub(super) fn of_peer<T>(read: Result<T, Error>) -> Result<T, Error> {
    read.map_err(|error| Error { kind: ErrorKind::InvalidAgentResponse, ..error })
}

/// The service answered with another kind of reply than the operation has. Only a defect of ours can do that.
pub(super) fn other_reply() -> Error {
    Error::new(ErrorKind::Internal, "the reply does not belong to the operation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_carries_the_whole_path_to_it() {
        let inner = list(vec![1, 0], "parts", |n| if n == 0 { Err(Error::invalid_field("", "has no content")) } else { Ok(n) });
        let fault = inner.within("message").unwrap_err();
        assert_eq!(fault.violations[0].field, "message.parts[1]");
        assert_eq!(fault.to_string(), "message.parts[1]: has no content");
    }

    #[test]
    fn times_before_1970_and_at_both_ends_come_back() {
        for micros in [-1, -1_500_000, 0, 1, 1_763_200_000_123_456, -62_135_596_800 * MICROS, 253_402_300_799 * MICROS] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(timestamp(to_timestamp(time), "timestamp").unwrap(), time);
        }
    }

    #[test]
    fn times_no_calendar_has_are_refused() {
        for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (253_402_300_800, 0), (0, -1), (0, 1_000_000_000)] {
            let fault = timestamp(prost_types::Timestamp { seconds, nanos }, "timestamp").unwrap_err();
            assert_eq!(fault.violations[0].field, "timestamp");
        }
    }

    #[test]
    fn states_and_roles_have_the_numbers_of_the_schema() {
        for known in TaskState::ALL {
            assert_eq!(state(known.number(), "state").unwrap(), known);
        }
        assert!(state(9, "state").is_err() && state(-1, "state").is_err());
        assert_eq!(role(to_role(Role::User), "role").unwrap(), Role::User);
        assert_eq!(role(to_role(Role::Agent), "role").unwrap(), Role::Agent);
        assert_eq!(role(0, "role").unwrap_err().violations[0].description, "is required");
        assert_eq!(role(3, "role").unwrap_err().violations[0].description, "3 is not a role");
    }
}
