//! Round trips through real bytes, and the faults that reading names.

mod faults;
mod properties;
mod samples;
mod v0_3;
mod v1;

use prost::Message;

/// The message as its bytes say it, which is what the other side sees.
fn through_bytes<M: Message + Default>(message: M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}
