//! The flags that force a version and a binding, where the card is not to decide.

use chancery::protocol::{Binding, Version};
use chancery_outbound::WantedInterface;

use super::Failure;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct InterfaceFlags {
    /// Use this binding instead of the card's choice: JSONRPC, HTTP+JSON, GRPC or SWP
    #[arg(long, value_name = "BINDING", value_parser = binding)]
    pub(super) binding: Option<Binding>,
    /// Use this version instead of the card's choice: 1.0, 0.3 or original
    #[arg(long = "a2a-version", value_name = "VERSION", value_parser = version)]
    pub(super) version: Option<Version>,
}

impl InterfaceFlags {
    pub(super) fn wanted(self) -> Result<WantedInterface, Failure> {
        let Self { binding, version } = self;
        if version == Some(Version::Original) && binding.is_some_and(|binding| binding != Binding::JsonRpc) {
            let reason = "the original protocol exists over JSON-RPC only; leave out --binding or use --binding JSONRPC";
            return Err(Failure::Usage(reason.to_owned()));
        }
        Ok(WantedInterface { binding, version })
    }
}

/// In any case, and by the other names that are in use.
pub(super) fn binding(text: &str) -> Result<Binding, &'static str> {
    match text.to_ascii_uppercase().as_str() {
        "JSONRPC" | "JSON-RPC" => Ok(Binding::JsonRpc),
        "HTTP+JSON" | "REST" => Ok(Binding::Rest),
        "GRPC" => Ok(Binding::Grpc),
        "SWP" => Ok(Binding::Swp),
        _ => Err("it is JSONRPC, HTTP+JSON, GRPC or SWP"),
    }
}

pub(super) fn version(text: &str) -> Result<Version, &'static str> {
    match text {
        "1.0" | "1" => Ok(Version::V1_0),
        "0.3" => Ok(Version::V0_3),
        "original" => Ok(Version::Original),
        _ => Err("it is 1.0, 0.3 or original"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_and_versions_are_known_by_their_names_and_nothing_else_is() {
        assert_eq!(binding("http+json"), Ok(Binding::Rest));
        assert_eq!(binding("grpc"), Ok(Binding::Grpc));
        assert!(binding("soap").is_err());
        assert_eq!(version("original"), Ok(Version::Original));
        assert!(version("2.0").is_err() && version("").is_err());
    }

    #[test]
    fn the_original_protocol_goes_with_json_rpc_alone() {
        let wanted = |binding| InterfaceFlags { binding, version: Some(Version::Original) }.wanted();
        assert!(wanted(None).is_ok() && wanted(Some(Binding::JsonRpc)).is_ok());
        assert!(matches!(wanted(Some(Binding::Grpc)), Err(Failure::Usage(_))));
    }
}
