//! Which door a request goes through, and what all doors share: settings, rate limits, the service behind them.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use chancery_core::{Agents, Answer, Chancery};
use chancery_identity::KeyRing;
use chancery_identity::cards::CardFault;
use chancery_identity::credentials::Authenticator;
use chancery_protocol::{CallContext, Error, ErrorKind, Operation, Request as Call, Version};
use chancery_wire::JsonLimits;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use http_body_util::{Empty, Full};
use tokio::time::Instant;

use crate::authenticate::{PendingAuth, Rejection};
use crate::card::{Headerless, PublishedCards};
use crate::context::Draft;
use crate::grpc::GrpcDoors;
use crate::hosts::HostCheck;
use crate::limits::InboundLimits;
use crate::origin::ConnectionOrigin;
use crate::own_hosts::OwnHosts;
use crate::rates::Rates;
use crate::reading::ReadBody;
use crate::refused_names::RefusedNames;
use crate::response::{self, DoorBody, DoorResponse};
use crate::shared_events::SharedEvents;
use crate::signposts::{Signposts, Spot};
use crate::swp_settings::SwpSettings;
use crate::{body, catalog, listening, offloaded_parts, rest};

/// What the doors need to know beside the service.
#[derive(Debug)]
pub struct DoorSettings {
    /// The address of this node for callers. Links use it, and cards unless a client requests them at another
    /// own host of the node.
    pub public_url: String,
    /// The address the node listens at: with the loopback spellings of it, these are the own hosts.
    pub listen: IpAddr,
    /// More hosts that the node answers to, and whose web pages may call it: names, or addresses.
    pub hosts: Vec<String>,
    /// Whether a node without authentication answers to every host.
    pub every_host: bool,
    /// Whether the listener speaks TLS.
    pub tls: bool,
    pub headerless: Headerless,
    pub limits: InboundLimits,
    pub json: JsonLimits,
    /// The admin API, which asks for the operator's token itself. Without it nothing is served there.
    pub admin_routes: Option<axum::Router>,
    /// Who callers are.
    pub authenticator: Authenticator,
    /// Hosts and tenants that lead to agents.
    pub signposts: Arc<Signposts>,
    /// What SWP peers are held to.
    pub swp: SwpSettings,
}

/// Every way into one control plane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Doors(pub(crate) Arc<DoorsInner>);

#[derive(Debug)]
pub(crate) struct DoorsInner {
    chancery: Chancery,
    settings: DoorSettings,
    published: PublishedCards,
    grpc: GrpcDoors,
    rates: Rates,
    hosts: HostCheck,
    refused_names: RefusedNames,
    shared_events: Arc<SharedEvents>,
}

impl Doors {
    /// Fails only if an agent's card cannot be signed.
    pub fn new(chancery: Chancery, settings: DoorSettings, keys: &KeyRing) -> Result<Self, CardFault> {
        let (rates, agents) = (Rates::new(&settings.limits), chancery.agents());
        Self::with(chancery, settings, &agents, keys, rates, RefusedNames::default())
    }

    /// The doors of the same node with other settings, showing these agents. Rates that stay the same go on being counted.
    pub fn renewed(&self, settings: DoorSettings, agents: &Agents, keys: &KeyRing) -> Result<Self, CardFault> {
        let rates = self.0.rates.renewed(&settings.limits);
        Self::with(self.0.chancery.clone(), settings, agents, keys, rates, self.0.refused_names.clone())
    }

    fn with(
        chancery: Chancery,
        settings: DoorSettings,
        agents: &Agents,
        keys: &KeyRing,
        rates: Rates,
        refused_names: RefusedNames,
    ) -> Result<Self, CardFault> {
        let own = OwnHosts::new(&settings.public_url, settings.listen, settings.tls);
        let published = PublishedCards::new(settings.headerless, own);
        published.renew(agents, &settings.signposts, keys, &settings.authenticator, chancery.now())?;
        let shared_events = Arc::<SharedEvents>::default();
        let signposts = Arc::clone(&settings.signposts);
        let shared = Arc::clone(&shared_events);
        let grpc = GrpcDoors::new(chancery.clone(), published.clone(), signposts, shared, &settings.limits);
        let hosts = HostCheck::new(&settings);
        let inner = DoorsInner { chancery, settings, published, grpc, rates, hosts, refused_names, shared_events };
        Ok(Self(Arc::new(inner)))
    }

    pub fn authenticator(&self) -> &Authenticator {
        &self.settings().authenticator
    }

    /// Whether requests to hosts that are not the node's own are refused.
    pub fn refuses_other_hosts(&self) -> bool {
        self.0.hosts.refuses_others()
    }

    /// What these doors were opened with.
    pub fn settings(&self) -> &DoorSettings {
        &self.0.settings
    }

    pub(crate) fn chancery(&self) -> &Chancery {
        &self.0.chancery
    }

    pub(crate) fn refused_names(&self) -> &RefusedNames {
        &self.0.refused_names
    }

    /// The service, for calls whose transport can answer late.
    pub(crate) async fn call_until(&self, context: &CallContext, call: Call, deadline: Option<Instant>) -> Result<Answer, Error> {
        let operation = call.operation();
        let answer = self.0.chancery.call_until(context, call, deadline).await;
        note(context, operation, &answer);
        answer
    }

    /// One request, whichever door it is for. No browser takes an answer for anything but what it says it is.
    pub async fn handle<B>(&self, request: Request<B>, origin: &ConnectionOrigin) -> http::Response<DoorBody>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
        let client = self.settings().limits.trusted_proxies.client(origin.address, request.headers());
        let forwarded = client.map(|client| ConnectionOrigin { address: Some(client), ..origin.clone() });
        let origin = forwarded.as_ref().unwrap_or(origin);
        let answer = self.handle_at_door(request, origin, is_grpc).await;
        if is_grpc { answer } else { response::unsniffed(answer) }
    }

    /// The door that most calls take is the short way through; the others are boxed, so that their size does not weigh on it.
    async fn handle_at_door<B>(&self, request: Request<B>, origin: &ConnectionOrigin, is_grpc: bool) -> DoorResponse
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let (head, body) = request.into_parts();
        if let Err(error) = self.0.hosts.check(&head) {
            return Box::pin(self.misaddressed(&head, origin, body, is_grpc, error)).await;
        }
        if is_grpc {
            return Box::pin(self.grpc(head, origin, body)).await;
        }
        match self.spot_of(&head) {
            Ok((spot, "" | "/")) => self.root(&head, spot, origin, body).await,
            // Some frameworks' clients post here, below the URL that they were given, whatever the card says.
            Ok((spot, "/a2a")) if head.method == Method::POST => Box::pin(self.root(&head, spot, origin, body)).await,
            Ok((spot, path)) => {
                if let Some(card) = self.card(&head, &spot, path) {
                    return card;
                }
                let path = path.to_owned();
                Box::pin(self.elsewhere(head, spot, &path, origin, body)).await
            }
            Err(error) => response::rest_error(&error, Version::V1_0),
        }
    }

    /// Everything that has a path.
    async fn elsewhere<B>(&self, head: Parts, spot: Spot, path: &str, origin: &ConnectionOrigin, body: B) -> DoorResponse
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        if let Some(response) = self.health(&head, path).await {
            return response;
        }
        let at_root = spot.agent.is_none();
        if at_root && spot.via.is_none() && (path == "/admin" || path.starts_with("/admin/")) {
            return self.admin(Request::from_parts(head, body)).await;
        }
        if at_root && catalog::is_catalog(&head, path) {
            let base = self.base_of(&head, &spot);
            return match self.enter(&head, spot, origin, Empty::new()).await {
                Ok((draft, _)) => self.catalog(&head, &draft.known, base.as_ref()),
                Err(away) => refuse_rest(away, Version::V1_0),
            };
        }
        if let (true, Some((task, digest))) = (at_root, offloaded_parts::named(&head, path)) {
            return match self.enter(&head, spot, origin, Empty::new()).await {
                Ok((draft, _)) => self.serve_offloaded_part(&head, &draft.known, task, digest).await,
                Err(away) => refuse_rest(away, Version::V1_0),
            };
        }
        if listening::is_listening(&head, path) {
            return match self.enter(&head, spot, origin, Empty::new()).await {
                Ok((draft, _)) => self.listening(&head, draft),
                Err(away) => refuse_rest(away, Version::Original),
            };
        }
        let call = match rest::lookup(&head.method, path) {
            Ok(call) => call,
            Err(response) => return *response,
        };
        let version = call.version;
        match self.enter(&head, spot, origin, body).await {
            Ok((draft, mut body)) => {
                let room = body.take_room();
                Box::pin(room.during(self.rest(&head, draft, call, &body))).await
            }
            Err(away) => refuse_rest(away, version),
        }
    }

    async fn grpc<B>(&self, mut head: Parts, origin: &ConnectionOrigin, body: B) -> DoorResponse
    where
        B: Body<Data = Bytes> + Unpin,
    {
        match self.enter_grpc(&head, origin, body).await {
            Ok((known, body)) => {
                head.extensions.insert(origin.of_unlisted(&known));
                head.extensions.insert(known);
                let mut spot = self.settings().signposts.spot_of_host(&head);
                // Calls for the extended card are the only ones that say where the agent is.
                if head.uri.path().ends_with("Card") {
                    spot.base = self.0.published.base_of(&head);
                }
                head.extensions.insert(spot);
                let (bytes, room) = body.into_parts();
                Box::pin(room.during(self.0.grpc.call(Request::from_parts(head, Full::new(bytes))))).await
            }
            Err(away) => {
                let refused = GrpcDoors::refuse(&away.error, head.uri.path());
                away.challenge(refused)
            }
        }
    }

    async fn root<B>(&self, head: &Parts, spot: Spot, origin: &ConnectionOrigin, body: B) -> DoorResponse
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if head.method != Method::POST {
            let error =
                Error::new(ErrorKind::InvalidRequest, "POST a JSON-RPC call here; the card is at /.well-known/agent-card.json");
            let mut response = response::rest_error(&error, Version::V1_0);
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(http::header::ALLOW, http::HeaderValue::from_static("POST"));
            return response;
        }
        let pending = match self.authenticate_head(head, origin).await {
            Ok(pending) => pending,
            Err(away) => return Box::pin(self.reject_json_rpc(head, body, origin, away)).await,
        };
        let mut body = match self.read_body(body, 0, &pending, origin).await {
            Ok(body) => body,
            Err(error) => return response::json_rpc_error(&error, Version::V1_0, "null"),
        };
        let known = match pending {
            PendingAuth::Known(known) => known,
            signed => match Box::pin(self.authenticate_body(signed, head, &body, origin)).await {
                Ok(known) => known,
                Err(away) => return self.reject_read(head, &body, away),
            },
        };
        match body::check_content(head, &body) {
            Ok(()) => {
                let room = body.take_room();
                let answer = self.json_rpc(head, Draft::new(spot, known, origin), &body);
                // Boxed where there is room to hold, so that most calls have no room for it.
                if room.is_empty() { answer.await } else { Box::pin(room.during(answer)).await }
            }
            Err(error) => response::json_rpc_error(&error, Version::V1_0, "null"),
        }
    }

    /// What a call passes before it is understood: rate limits, credentials, its body under its limits.
    async fn enter<B>(&self, head: &Parts, spot: Spot, origin: &ConnectionOrigin, body: B) -> Result<(Draft, ReadBody), Rejection>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let pending = match self.authenticate_head(head, origin).await {
            Ok(pending) => pending,
            Err(away) => {
                self.peek(body, origin).await;
                return Err(away);
            }
        };
        let body = self.read_body(body, 0, &pending, origin).await?;
        let known = self.authenticate_body(pending, head, &body, origin).await?;
        body::check_content(head, &body)?;
        Ok((Draft::new(spot, known, origin), body))
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    pub(crate) fn shared_events(&self) -> &Arc<SharedEvents> {
        &self.0.shared_events
    }

    pub(crate) fn published(&self) -> &PublishedCards {
        &self.0.published
    }

    /// The extended card as it is served to a call that may see it.
    pub(crate) fn extended_card(&self, head: &Parts, context: &CallContext) -> Result<Bytes, Error> {
        let host = self.settings().signposts.spot_of_host(head).host;
        let spot = Spot { agent: context.agent.clone(), host, via: context.via.clone(), base: None };
        let spot = Spot { base: self.base_of(head, &spot), ..spot };
        let gone = || Error::new(ErrorKind::Internal, "the extended card was not rendered");
        self.0.published.extended(&spot, context.version, context.binding).ok_or_else(gone)
    }

    /// Renders cards and public keys again, with the current keys.
    pub fn publish(&self, keys: &KeyRing) -> Result<(), CardFault> {
        let DoorsInner { chancery, settings, .. } = &*self.0;
        self.0.published.renew(&chancery.agents(), &settings.signposts, keys, &settings.authenticator, chancery.now())
    }

    fn card(&self, head: &Parts, spot: &Spot, path: &str) -> Option<DoorResponse> {
        if head.method != Method::GET && head.method != Method::HEAD {
            return None;
        }
        let published = &self.0.published;
        let spot_of_card = || Spot { base: self.base_of(head, spot), ..spot.clone() };
        match path {
            "/.well-known/agent-card.json" => Some(published.current(&spot_of_card(), head)),
            "/.well-known/agent.json" => Some(published.original(&spot_of_card(), head)),
            "/.well-known/jwks.json" if spot.agent.is_none() || spot.host.is_some() => Some(published.jwks(head)),
            _ => None,
        }
    }

    async fn admin<B>(&self, request: Request<B>) -> DoorResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        use tower::ServiceExt as _;
        let Some(admin) = self.0.settings.admin_routes.clone() else {
            return response::rest_error(
                &Error::new(ErrorKind::MethodNotFound, "the admin API is off: no token is set"),
                Version::V1_0,
            );
        };
        match admin.oneshot(request.map(axum::body::Body::new)).await {
            Ok(response) => response.map(DoorBody::from),
            Err(never) => match never {},
        }
    }
}

/// The service, with what goes wrong inside it logged once.
#[cfg(feature = "grpc")]
pub(crate) async fn answer(chancery: &Chancery, context: &CallContext, call: Call) -> Result<Answer, Error> {
    let operation = call.operation();
    let answer = chancery.call_until(context, call, None).await;
    note(context, operation, &answer);
    answer
}

/// What the service answered, for the log.
pub(crate) fn note(context: &CallContext, operation: Operation, answer: &Result<Answer, Error>) {
    match answer {
        Ok(_) => tracing::debug!(trace = %context.trace, ?operation, version = %context.version, "answered a call"),
        Err(error) if error.kind == ErrorKind::Internal => {
            tracing::error!(trace = %context.trace, ?operation, version = %context.version, error = %error, "a call failed");
        }
        Err(error) => {
            tracing::debug!(trace = %context.trace, ?operation, version = %context.version, kind = ?error.kind, error = %error, "refused a call")
        }
    }
}

fn refuse_rest(away: Rejection, version: Version) -> DoorResponse {
    let response = response::rest_error(&away.error, version);
    away.challenge(response)
}
