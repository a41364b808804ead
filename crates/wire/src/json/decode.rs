//! Typed reading of JSON with faults that name the field.

use chancery_protocol::objects::Objects;
use chancery_protocol::{Error, ErrorKind, FieldViolation};
use serde::de::DeserializeOwned;

/// Reads `text` as `T`. The slow reader that tracks paths runs only after the fast one has failed.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Objects(&mut reader)).and_then(|read| reader.end().map(|()| read));
    read.map_err(|_| fault::<T>(text))
}

fn fault<T: DeserializeOwned>(text: &str) -> Error {
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(Objects(&mut reader)) {
        Ok(_) => Error::new(ErrorKind::InvalidParams, "trailing characters after the request"),
        Err(fault) => field_fault(&fault.path().to_string(), &fault.inner().to_string()),
    }
}

/// The path of a missing member is that of its parent; the member's own name is in serde's message.
fn field_fault(path: &str, message: &str) -> Error {
    let description = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    let missing = description.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let field = match (path, missing) {
        ("." | "", Some(member)) => member.to_owned(),
        (path, Some(member)) => format!("{path}.{member}"),
        ("." | "", None) => "params".to_owned(),
        (path, None) => path.to_owned(),
    };
    let description = if missing.is_some() { "is required" } else { description };
    let violation = FieldViolation { field, description: description.to_owned() };
    let message = format!("{}: {}", violation.field, violation.description);
    Error { violations: vec![violation], ..Error::new(ErrorKind::InvalidParams, message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::SendMessage;

    #[test]
    fn faults_name_the_field() {
        let cases = [
            ("{}", "message", "is required"),
            (r#"{"message":{"messageId":"m","parts":[]}}"#, "message.role", "is required"),
            (r#"{"message":{"messageId":"m","role":"user","parts":[]}}"#, "message.role", "user"),
            (r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{}]}}"#, "message.parts[1]", "exactly one"),
            (r#"{"message":{"messageId":7,"role":"ROLE_USER","parts":[]}}"#, "message.messageId", "invalid type"),
            (r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[],"metadata":3}}"#, "message.metadata", "object"),
            (r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[]},"configuration":[]}"#, "configuration", "an object"),
            (r#"{"message":["m",null,null,"ROLE_USER",[]]}"#, "message", "an object"),
            ("[]", "params", "an object"),
        ];
        for (text, field, description) in cases {
            let error = from_json::<SendMessage>(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            assert_eq!(error.violations[0].field, field, "{text}");
            assert!(error.violations[0].description.contains(description), "{text}: {error}");
        }
    }
}
