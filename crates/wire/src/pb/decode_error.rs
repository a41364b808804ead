//! Describes the fault of bytes that are not a message of the protocol.

use chancery_protocol::{Error, ErrorKind};
use prost::DecodeError;

/// The fault as the caller may see it. prost names the field it stopped at from the inside out, each with its message.
pub fn decode_error(fault: &DecodeError) -> Error {
    let text = fault.to_string();
    let mut steps: Vec<&str> = text.split(": ").skip(1).collect();
    let named = steps.iter().take_while(|step| is_field(step)).count();
    let description = steps.split_off(named).join(": ");
    let path: Vec<&str> = steps.iter().rev().filter_map(|step| step.split_once('.')).map(|(_, field)| field).collect();
    if path.is_empty() {
        return Error::new(ErrorKind::InvalidParams, format!("the bytes are no message of the service: {description}"));
    }
    Error::invalid_field(path.join("."), description)
}

fn is_field(step: &str) -> bool {
    step.split_once('.').is_some_and(|(message, field)| {
        let word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word(message) && word(field)
    })
}
