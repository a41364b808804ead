//! The client side of the protocol: any operation, to an agent of any version, over any binding, through the guard.

mod answer;
mod conditions;
mod credentials;
mod error;
mod events;
mod fold;
mod gate;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_absent.rs"]
mod grpc;
mod head;
mod http;
mod interface;
mod limits;
mod reading;
mod sse;
#[cfg(feature = "swp")]
pub(crate) mod swp;
#[cfg(not(feature = "swp"))]
#[path = "swp_absent.rs"]
pub(crate) mod swp;
mod swp_terms;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Binding, Error, ErrorKind, Reply, Request, Version};
use tokio::time::{Instant, sleep_until};

pub use conditions::CallConditions;
pub use credentials::AgentCredentials;
pub use error::{ClientError, NotUnderstood, Transport, WasSent};
pub use events::{EventStream, StreamedEvent, UnreadableEvent};
pub use interface::{Interface, place_of_operations};
pub use limits::{ClientLimits, RateLimit};
pub use reading::ReadingTerms;

use crate::guard::Guard;
use crate::remote::AgentNotes;
use gate::CallGate;
use grpc::GrpcAgent;
use http::{HttpAgent, Outgoing};
use swp::SwpAgent;
pub use swp_terms::SwpTerms;

/// One agent at one of its interfaces. Cheap to clone; clones share the connections and the limits.
#[derive(Clone, Debug)]
pub struct AgentClient {
    shared: Arc<Shared>,
    reading: ReadingTerms,
}

#[derive(Debug)]
struct Shared {
    interface: Interface,
    limits: ClientLimits,
    gate: CallGate,
    agent: Agent,
}

#[derive(Debug)]
enum Agent {
    Http(Box<HttpAgent>),
    Grpc(Box<GrpcAgent>),
    Swp(SwpAgent),
}

impl AgentClient {
    /// Nothing is sent yet, but an address that may not be called is refused here.
    pub fn new(guard: &Guard, interface: Interface, limits: ClientLimits) -> Result<Self, ClientError> {
        let guard = guard.connecting_within(limits.connect());
        let agent = match (interface.binding, interface.version) {
            (Binding::Rest | Binding::Grpc | Binding::Swp, Version::Original) => {
                let message = "the original protocol is spoken over JSON-RPC only";
                return Err(ClientError::NotAsked(Error::new(ErrorKind::VersionNotSupported, message)));
            }
            (Binding::Grpc, _) => Agent::Grpc(Box::new(GrpcAgent::new(&guard, &interface, &limits)?)),
            (Binding::Swp, _) => return Self::over_swp(&guard, interface, limits, &SwpTerms::default()),
            (Binding::JsonRpc | Binding::Rest, _) => Agent::Http(Box::new(HttpAgent::new(guard, &interface, &limits)?)),
        };
        Ok(Self {
            shared: Arc::new(Shared { gate: CallGate::new(&limits), interface, limits, agent }),
            reading: ReadingTerms::default(),
        })
    }

    /// The same for an SWP peer of which more is known.
    pub fn over_swp(guard: &Guard, interface: Interface, limits: ClientLimits, terms: &SwpTerms) -> Result<Self, ClientError> {
        let guard = guard.connecting_within(limits.connect());
        let agent = Agent::Swp(SwpAgent::new(&guard, &interface, &limits, terms)?);
        Ok(Self {
            shared: Arc::new(Shared { gate: CallGate::new(&limits), interface, limits, agent }),
            reading: ReadingTerms::default(),
        })
    }

    /// The same, whose deviations are counted, or rejected if `is_strict` says so. Over gRPC and SWP there is nothing to overlook.
    #[must_use]
    pub fn reading_by(self, notes: Arc<AgentNotes>, is_strict: bool) -> Self {
        Self { reading: ReadingTerms { notes: Some(notes), is_strict }, ..self }
    }

    /// Returns the interface that the client calls.
    pub fn interface(&self) -> &Interface {
        &self.shared.interface
    }

    /// Returns the limits.
    pub fn limits(&self) -> &ClientLimits {
        &self.shared.limits
    }

    /// Asks for an operation that has one answer.
    pub async fn call(&self, request: &Request, conditions: &CallConditions) -> Result<Reply, ClientError> {
        if request.operation().streams() {
            return Err(not_asked(ErrorKind::InvalidRequest, "the answer to this operation is a stream"));
        }
        let shared = &*self.shared;
        let until = Instant::now() + conditions.deadline().unwrap_or(shared.limits.read());
        let request = &interface::addressed(request, &shared.interface);
        let headers = &conditions.headers(shared.interface.version).map_err(ClientError::NotAsked)?;
        let outgoing = self.outgoing(headers, conditions)?;
        let _place = shared.gate.enter(until).await?;
        self.trying(until, |left| async move {
            match &shared.agent {
                Agent::Http(agent) => agent.call(request, outgoing, left, &self.reading).await,
                Agent::Grpc(agent) => Box::pin(agent.call(request, headers, left)).await,
                Agent::Swp(agent) => Box::pin(agent.call(request, conditions, left)).await,
            }
        })
        .await
    }

    /// Asks for an operation whose answer is a stream of events.
    pub async fn stream(&self, request: &Request, conditions: &CallConditions) -> Result<EventStream, ClientError> {
        if !request.operation().streams() {
            return Err(not_asked(ErrorKind::InvalidRequest, "this operation has one answer and no stream"));
        }
        let shared = &*self.shared;
        let ends_at = conditions.deadline().map(|deadline| Instant::now() + deadline);
        let silent_at = Instant::now() + shared.limits.read();
        let until = ends_at.map_or(silent_at, |ends_at| ends_at.min(silent_at));
        let request = &interface::addressed(request, &shared.interface);
        let headers = &conditions.headers(shared.interface.version).map_err(ClientError::NotAsked)?;
        let outgoing = self.outgoing(headers, conditions)?;
        let stream_place = shared.gate.open_stream(until).await?;
        let _place = shared.gate.enter(until).await?;
        let source = self
            .trying(until, |left| async move {
                match &shared.agent {
                    Agent::Http(agent) => agent.stream(request, outgoing, left, &self.reading).await,
                    Agent::Grpc(agent) => Box::pin(agent.stream(request, headers, left)).await,
                    Agent::Swp(agent) => Box::pin(agent.stream(request, conditions, left)).await,
                }
            })
            .await?;
        Ok(EventStream::new(source, ends_at, stream_place))
    }

    /// A signature covers the bytes of an HTTP body, which gRPC and SWP do not show before they send it.
    fn outgoing<'a>(&self, headers: &'a ::http::HeaderMap, conditions: &'a CallConditions) -> Result<Outgoing<'a>, ClientError> {
        match (&conditions.signer, &self.shared.agent) {
            (Some(_), Agent::Grpc(_) | Agent::Swp(_)) => {
                Err(not_asked(ErrorKind::UnsupportedOperation, "calls are signed over JSON-RPC and HTTP+JSON only"))
            }
            (signer, _) => Ok(Outgoing { headers, signer: signer.as_ref() }),
        }
    }

    /// Again only what cannot have arrived, so that nothing is ever done twice.
    async fn trying<T, F>(&self, until: Instant, attempt: impl Fn(Duration) -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let limits = &self.shared.limits;
        let mut tried = 0;
        loop {
            let fault = match attempt(until.saturating_duration_since(Instant::now())).await {
                Err(fault) if fault.is_passing() && tried < limits.retries => fault,
                outcome => return outcome,
            };
            let next = Instant::now() + limits.retry_pause(tried);
            if next >= until {
                return Err(fault);
            }
            tracing::debug!(url = self.shared.interface.url, tried, "cannot reach the agent, trying again: {fault}");
            sleep_until(next).await;
            tried += 1;
        }
    }
}

/// A new id for a message.
pub fn new_message_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn not_asked(kind: ErrorKind, message: &'static str) -> ClientError {
    ClientError::NotAsked(Error::new(kind, message))
}
