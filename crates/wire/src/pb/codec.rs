//! Protobuf messages on a gRPC call, with bytes that are no such message reported as what they are: a fault of the sender.

use std::marker::PhantomData;
use std::sync::Arc;

use chancery_protocol::Version;
use prost::{DecodeError, Message, Name};
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

use super::decode_error;
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
