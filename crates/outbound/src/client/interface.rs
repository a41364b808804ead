//! Which of an agent's addresses is called, and in which language.

use chancery_protocol::{AgentCard, AgentInterface, Binding, Operation, Request, Version};

/// One address of an agent and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// As the card has it. For gRPC that may be `host:port`.
    pub url: String,
    /// The binding.
    pub binding: Binding,
    /// The A2A version.
    pub version: Version,
    /// Repeated in every request to this address, where the version has a place for it.
    pub tenant: Option<String>,
}

impl Interface {
    /// The first interface in the card's own order that is spoken here.
    pub fn choose(card: &AgentCard, can: &[(Version, Binding)]) -> Option<Self> {
        Self::spoken(card).find(|one| can.contains(&(one.version, one.binding)))
    }

    /// Every interface of a card that an agent client speaks, in the card's own order.
    pub fn spoken(card: &AgentCard) -> impl Iterator<Item = Self> {
        card.supported_interfaces.iter().filter_map(Self::read)
    }

    /// Everything an agent client speaks over HTTP. SWP is beside it, because it can say less.
    pub const ALL: [(Version, Binding); 7] = [
        (Version::V1_0, Binding::JsonRpc),
        (Version::V1_0, Binding::Rest),
        (Version::V1_0, Binding::Grpc),
        (Version::V0_3, Binding::JsonRpc),
        (Version::V0_3, Binding::Rest),
        (Version::V0_3, Binding::Grpc),
        (Version::Original, Binding::JsonRpc),
    ];

    /// The binding of a card's entry, in any spelling that is met. `None` if no client here speaks it.
    pub fn binding_of(listed: &AgentInterface) -> Option<Binding> {
        match listed.protocol_binding.trim().to_ascii_uppercase().as_str() {
            _ if listed.protocol_binding == chancery_wire::swp::BINDING => cfg!(feature = "swp").then_some(Binding::Swp),
            "SWP" => cfg!(feature = "swp").then_some(Binding::Swp),
            // What 0.3 takes an entry without one for.
            "" | "JSONRPC" | "JSON-RPC" | "JSON_RPC" => Some(Binding::JsonRpc),
            "HTTP+JSON" | "HTTP_JSON" | "REST" => Some(Binding::Rest),
            "GRPC" => cfg!(feature = "grpc").then_some(Binding::Grpc),
            _ => None,
        }
    }

    /// The version that a text names, by major and minor number; a patch changes nothing on the wire.
    pub fn version_of(text: &str) -> Option<Version> {
        let mut numbers = text.trim().trim_start_matches(['v', 'V']).split('.');
        match (numbers.next()?, numbers.next().unwrap_or("0")) {
            ("1", "0") => Some(Version::V1_0),
            // The methods and shapes of 0.2 that are still met are those of 0.3.
            ("0", "3" | "2") => Some(Version::V0_3),
            ("0", "1") => Some(Version::Original),
            _ => None,
        }
    }

    fn read(listed: &AgentInterface) -> Option<Self> {
        Some(Self {
            url: listed.url.clone(),
            binding: Self::binding_of(listed)?,
            version: Self::version_of(&listed.protocol_version)?,
            tenant: listed.tenant.clone(),
        })
    }
}

/// The place that a URL of one operation is at, such as `…/v1` of `…/v1/message:stream`: some frameworks list that for their
/// agent. `None` for any other URL.
pub fn place_of_operations(url: &str) -> Option<&str> {
    ["/message:stream", "/message:send"].iter().find_map(|operation| url.strip_suffix(operation))
}

/// The URL of an operation at such a place. `None` for those that have none there.
pub(super) fn operation_url(place: &str, operation: Operation) -> Option<String> {
    let name = match operation {
        Operation::SendMessage => "message:send",
        Operation::StreamMessage => "message:stream",
        Operation::GetTask => "tasks:get",
        Operation::CancelTask => "tasks:cancel",
        _ => return None,
    };
    Some(format!("{place}/{name}"))
}

/// The request for this address: with the tenant of the interface, independent of the caller's tenant.
pub(super) fn addressed(request: &Request, interface: &Interface) -> Request {
    let mut request = request.clone();
    let tenant = match &mut request {
        Request::SendMessage(send) | Request::StreamMessage(send) => {
            if let Some(config) = &mut send.configuration.task_push_notification_config {
                config.tenant.clone_from(&interface.tenant);
            }
            &mut send.tenant
        }
        Request::GetTask(get) => &mut get.tenant,
        Request::ListTasks(list) => &mut list.tenant,
        Request::CancelTask(cancel) => &mut cancel.tenant,
        Request::SubscribeToTask(subscribe) => &mut subscribe.tenant,
        Request::CreatePushConfig(config) => &mut config.tenant,
        Request::GetPushConfig(which) | Request::DeletePushConfig(which) => &mut which.tenant,
        Request::ListPushConfigs(list) => &mut list.tenant,
        Request::GetExtendedCard(get) => &mut get.tenant,
    };
    tenant.clone_from(&interface.tenant);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(listed: &[(&str, &str, &str)]) -> AgentCard {
        let interface = |(url, binding, version): &(&str, &str, &str)| AgentInterface {
            url: (*url).to_owned(),
            protocol_binding: (*binding).to_owned(),
            tenant: Some("acme".to_owned()),
            protocol_version: (*version).to_owned(),
        };
        AgentCard { supported_interfaces: listed.iter().map(interface).collect(), ..AgentCard::default() }
    }

    #[test]
    fn the_first_of_the_cards_interfaces_that_is_spoken_is_chosen() {
        let card = card(&[
            ("https://a/future", "JSONRPC", "2.0"),
            ("https://a/own", "https://example.org/binding", "1.0"),
            ("a:443", "GRPC", "1.0"),
            ("https://a/rest", "HTTP+JSON", "0.3.0"),
            ("https://a/rpc", "JSONRPC", "1.0.1"),
        ]);
        let chosen = |can: &[(Version, Binding)]| Interface::choose(&card, can).map(|one| one.url);
        assert_eq!(chosen(&Interface::ALL).as_deref(), Some("a:443"));
        assert_eq!(
            chosen(&[(Version::V1_0, Binding::JsonRpc), (Version::V0_3, Binding::Rest)]).as_deref(),
            Some("https://a/rest")
        );
        assert_eq!(chosen(&[(Version::V1_0, Binding::JsonRpc)]).as_deref(), Some("https://a/rpc"));
        assert_eq!(chosen(&[(Version::Original, Binding::JsonRpc)]), None);
        assert_eq!(Interface::choose(&card, &Interface::ALL).and_then(|one| one.tenant).as_deref(), Some("acme"));
    }

    #[test]
    fn versions_are_told_by_major_and_minor() {
        for (text, expected) in [
            ("1.0", Some(Version::V1_0)),
            ("1.0.1", Some(Version::V1_0)),
            ("1", Some(Version::V1_0)),
            ("v1.0", Some(Version::V1_0)),
            ("0.3.0", Some(Version::V0_3)),
            ("0.2.6", Some(Version::V0_3)),
            ("0.1", Some(Version::Original)),
            ("1.1", None),
            ("0.30", None),
            ("", None),
        ] {
            assert_eq!(Interface::version_of(text), expected, "{text}");
        }
    }
}
