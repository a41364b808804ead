//! Protobuf messages on a gRPC call, with bytes that are no such message reported as what they are: a fault of the sender.

use std::marker::PhantomData;
use std::sync::Arc;

use chancery_protocol::{Error, ErrorKind, Version};
use prost::{DecodeError, Message, Name};
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

use crate::errors;

/// What the generated stubs use. tonic's own codec calls unreadable bytes an internal error of the reader.
#[derive(Clone, Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Name + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Reader<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        Reader(PhantomData)
    }
}

#[derive(Clone, Debug)]
pub struct Reader<U>(PhantomData<U>);

impl<U: Message + Default + Name> Decoder for Reader<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(|fault| unreadable(fault, version_of(U::PACKAGE)))
    }
}

fn version_of(package: &str) -> Version {
    match package {
        "a2a.v1" => Version::V0_3,
        _ => Version::V1_0,
    }
}

/// A client tells a reply it could not read from a status its peer sent by the source, which no status from the wire has.
fn unreadable(fault: DecodeError, version: Version) -> Status {
    let mut status = errors::grpc(&decode_error(&fault), version);
    status.set_source(Arc::new(fault));
    status
}

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
