//! The protobuf forms of the protocol.
