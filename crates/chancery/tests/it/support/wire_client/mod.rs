//! A client of every binding and version, as thin as the codecs allow: requests of the model in, replies, events and
//! refusals out.

mod events;
mod grpc;
mod http;
mod raw;
mod refusal;
pub(crate) mod swp;

use chancery_protocol::{Binding, Reply, Request, Version};

pub(crate) use self::events::{EventStream, Seen};
pub(crate) use self::raw::{RawAnswer, RawCall, RawClient};
pub(crate) use self::refusal::Refusal;

/// One way to speak to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Combination {
    pub(crate) version: Version,
    pub(crate) binding: Binding,
}

impl Combination {
    pub(crate) const ALL: [Self; 7] = [
        Self { version: Version::V1_0, binding: Binding::JsonRpc },
        Self { version: Version::V1_0, binding: Binding::Rest },
        Self { version: Version::V1_0, binding: Binding::Grpc },
        Self { version: Version::V0_3, binding: Binding::JsonRpc },
        Self { version: Version::V0_3, binding: Binding::Rest },
        Self { version: Version::V0_3, binding: Binding::Grpc },
        Self { version: Version::Original, binding: Binding::JsonRpc },
    ];

    /// The slim wire, which cannot say all that the others can.
    pub(crate) const SWP: Self = Self { version: Version::V1_0, binding: Binding::Swp };

    pub(crate) fn binding_name(self) -> &'static str {
        match self.binding {
            Binding::JsonRpc => "json-rpc",
            Binding::Rest => "rest",
            Binding::Grpc => "grpc",
            Binding::Swp => "swp",
        }
    }

    pub(crate) fn name(self) -> String {
        format!("{}-{}", self.binding_name(), self.version)
    }

    /// Whether a word of a scenario means this one: a version, a binding, or both.
    pub(crate) fn is(self, word: &str) -> bool {
        word == self.version.to_string() || word == self.binding_name() || word == self.name()
    }
}

/// What goes into headers, or gRPC metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) last_event_id: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) api_key: Option<String>,
    pub(crate) hop_token: Option<String>,
}

impl Conditions {
    fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let id = self.last_event_id.as_deref().map(|id| ("last-event-id", id));
        let others =
            [("idempotency-key", &self.idempotency_key), ("x-api-key", &self.api_key), ("chancery-hop-token", &self.hop_token)];
        id.into_iter().chain(others.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))))
    }
}

#[derive(Clone)]
pub(crate) struct WireClient {
    pub(crate) combination: Combination,
    http: http::HttpClient,
    grpc: grpc::GrpcClient,
    swp: swp::SwpClient,
}

impl WireClient {
    pub(crate) fn new(url: &str, combination: Combination) -> Self {
        let http = match combination.binding {
            Binding::Swp => Combination { binding: Binding::JsonRpc, ..combination },
            _ => combination,
        };
        let http = http::HttpClient::new(url, http);
        let (grpc, swp) = (grpc::GrpcClient::new(url, combination.version), swp::SwpClient::new(url, http.clone()));
        Self { combination, http, grpc, swp }
    }

    pub(crate) async fn call(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        match self.combination.binding {
            Binding::Grpc => self.grpc.call(request, conditions).await,
            Binding::Swp => self.swp.call(request, conditions).await,
            Binding::JsonRpc | Binding::Rest => self.http.call(request, conditions).await,
        }
    }

    pub(crate) async fn stream(&self, request: &Request, conditions: &Conditions) -> Result<EventStream, Refusal> {
        match self.combination.binding {
            Binding::Grpc => self.grpc.stream(request, conditions).await,
            Binding::Swp => self.swp.stream(request, conditions).await,
            Binding::JsonRpc | Binding::Rest => self.http.stream(request, conditions).await,
        }
    }

    /// Calls something that no version has.
    pub(crate) async fn call_nothing(&self) -> Refusal {
        match self.combination.binding {
            Binding::Grpc => self.grpc.call_nothing().await,
            Binding::Swp => self.swp.call_nothing().await,
            Binding::JsonRpc | Binding::Rest => self.http.call_nothing().await,
        }
    }
}
