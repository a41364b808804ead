//! Cards that show an agent at one of its addresses, so that it is called there and nowhere else.

use chancery_protocol::{Binding, Version};
use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted};
use crate::support::wire_client::Combination;

/// Cards that list one interface of an agent, each at a path of its own.
pub(crate) async fn cards_of(back: &str) -> Scripted {
    let back = back.to_owned();
    Scripted::start(|_| {
        move |asked: &Asked| {
            let listed = Combination::ALL.into_iter().find(|back| asked.path == path(*back));
            listed.map_or_else(|| Script::page(404, "text/plain", ""), |listed| Script::json(&only(listed, &back)))
        }
    })
    .await
}

pub(crate) fn path(back: Combination) -> String {
    format!("/{}.json", back.name())
}

/// A card in the shape of its version, with one address on it.
fn only(back: Combination, url: &str) -> Value {
    let binding = match back.binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::Rest => "HTTP+JSON",
        Binding::Grpc => "GRPC",
        Binding::Swp => chancery_wire::swp::BINDING,
    };
    let url = if back.binding == Binding::Grpc { url.trim_start_matches("http://") } else { url };
    let mut card = json!({
        "name": "Conformance", "description": "Behind one address.", "version": "1", "capabilities": { "streaming": true },
        "defaultInputModes": ["*/*"], "defaultOutputModes": ["*/*"],
        "skills": [{ "id": "s", "name": "S", "description": "Does it.", "tags": ["test"] }],
    });
    match back.version {
        Version::V1_0 => {
            card["capabilities"]["extendedAgentCard"] = json!(true);
            card["supportedInterfaces"] = json!([{ "url": url, "protocolBinding": binding, "protocolVersion": "1.0" }]);
        }
        Version::V0_3 => {
            card["supportsAuthenticatedExtendedCard"] = json!(true);
            card["protocolVersion"] = json!("0.3.0");
            card["preferredTransport"] = json!(binding);
            card["url"] = json!(url);
        }
        Version::Original => {
            card["url"] = json!(url);
            card["authentication"] = json!({ "schemes": [] });
        }
    }
    card
}
