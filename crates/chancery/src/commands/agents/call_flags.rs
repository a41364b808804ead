//! The flags that set how the node calls an agent. They override its card.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chancery::config::{BindingSetting, CallSettings};
use chancery::protocol::Version;
use chancery_outbound::remote::{LineageSetting, StreamMode};

#[derive(Clone, clap::Args)]
pub(super) struct CallFlags {
    /// The URL to call instead of the one on its card
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// JSONRPC, HTTP+JSON, GRPC or SWP [default: the binding on its card]
    #[arg(long, value_name = "BINDING", value_parser = word::<BindingSetting>)]
    binding: Option<BindingSetting>,
    /// 1.0, 0.3 or original [default: the version on its card]
    #[arg(long = "a2a-version", value_name = "VERSION", value_parser = word::<Version>)]
    version: Option<Version>,
    /// auto, never or always: whether calls are streams
    #[arg(long, value_name = "WHEN", value_parser = word::<StreamMode>)]
    stream: Option<StreamMode>,
    /// auto, header or metadata: where lineage is sent
    #[arg(long, value_name = "WHERE", value_parser = word::<LineageSetting>)]
    lineage: Option<LineageSetting>,
    /// A header that is sent with every call, as NAME=VALUE; can be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair)]
    headers: Vec<(String, String)>,
    /// The same, by the variable of the node's environment that has the value
    #[arg(long = "header-env", value_name = "NAME=VARIABLE", value_parser = pair)]
    headers_env: Vec<(String, String)>,
    /// The timeout of a call
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// An input mode to show on its card instead of its own; can be given several times
    #[arg(long = "input-mode", value_name = "TYPE")]
    input_modes: Vec<String>,
    /// A file on the node's machine with its card, which is then never fetched
    #[arg(long, value_name = "FILE")]
    card_file: Option<PathBuf>,
    /// Reject cards and answers that deviate from their version
    #[arg(long)]
    strict: bool,
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|fault| fault.to_string())
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or("it is NAME=VALUE")
}

impl CallFlags {
    pub(super) fn settings(self) -> CallSettings {
        CallSettings {
            card_file: self.card_file,
            address: self.address,
            binding: self.binding,
            version: self.version,
            stream: self.stream.unwrap_or_default(),
            lineage: self.lineage.unwrap_or_default(),
            headers: BTreeMap::from_iter(self.headers),
            headers_env: BTreeMap::from_iter(self.headers_env),
            timeout_ms: self.timeout_ms,
            input_modes: (!self.input_modes.is_empty()).then_some(self.input_modes),
            strict: self.strict,
        }
    }
}
