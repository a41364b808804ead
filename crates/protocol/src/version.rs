//! The versions and bindings of the protocol that a call can come in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version of the A2A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Version {
    /// Version 1.0.
    #[serde(rename = "1.0")]
    V1_0,
    /// Version 0.3.
    #[serde(rename = "0.3")]
    V0_3,
    /// The first published protocol, with `tasks/send` and task ids chosen by the client.
    #[serde(rename = "original")]
    Original,
}

impl Version {
    /// Returns the text, such as `1.0`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
            Self::Original => "original",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the caller that made a task writes and reads JSON: as one of the versions says, or as a mixture that is out there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The JSON form of a version.
    Plain(Version),
    /// The methods, states and roles of 0.3, with the wrapper and the parts of 1.0: what fasta2a speaks.
    Wrapped0_3,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 4] =
        [Self::Plain(Version::V1_0), Self::Plain(Version::V0_3), Self::Plain(Version::Original), Self::Wrapped0_3];

    /// Returns the text, such as `0.3-wrapped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain(version) => version.as_str(),
            Self::Wrapped0_3 => "0.3-wrapped",
        }
    }

    /// The version it is a dialect of.
    pub const fn version(self) -> Version {
        match self {
            Self::Plain(version) => version,
            Self::Wrapped0_3 => Version::V0_3,
        }
    }
}

impl From<Version> for Dialect {
    fn from(version: Version) -> Self {
        Self::Plain(version)
    }
}

/// A transport of the A2A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// JSON-RPC over HTTP.
    JsonRpc,
    /// HTTP with JSON bodies and a path for each operation.
    Rest,
    /// gRPC.
    Grpc,
    /// SWP's A2A profile.
    Swp,
}

impl Binding {
    /// Returns the name on a card, such as `JSONRPC`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::Swp => "SWP",
        }
    }
}
