//! Who and how: what a transport read becomes a call context. The version and the tenant of a call are decided here and nowhere else.

use std::sync::Arc;

use chancery_identity::credentials::Known;
use chancery_protocol::{AgentName, Binding, CallContext, Error, ErrorKind, IdentityProof, PeerConnection, TraceId, Version};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::origin::ConnectionOrigin;
use crate::signposts::{Signposts, Spot};

const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
const A2A_EXTENSIONS: &str = "a2a-extensions";
const X_A2A_EXTENSIONS: &str = "x-a2a-extensions";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const LAST_EVENT_ID: &str = "last-event-id";
const A2A_TENANT: &str = "a2a-tenant";
/// Brought back by agents, to show which task they work on.
const HOP_TOKEN: &str = "chancery-hop-token";
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is read. By the W3C's text every system forwards 512 bytes of it, and many
/// forward more.
pub(crate) const LONGEST_TRACESTATE: usize = 4_096;

/// The longest tenant a call may name on a node without authentication.
const LONGEST_TENANT: usize = 64;

/// What the caller said about the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedVersion {
    Nothing,
    For(Version),
}

impl RequestedVersion {
    /// From the header, or the query parameter of the same name. Only major and minor count.
    pub(crate) fn of(headers: &HeaderMap, query: Option<&str>) -> Result<Self, Error> {
        let header = headers.get(A2A_VERSION).map(|value| value.to_str().unwrap_or("?"));
        let text = header.or_else(|| query.and_then(version_in_query)).unwrap_or_default().trim();
        let mut numbers = text.split('.');
        match (numbers.next(), numbers.next()) {
            (Some(""), None) => Ok(Self::Nothing),
            (Some("1"), Some("0")) => Ok(Self::For(Version::V1_0)),
            (Some("0"), Some("3")) => Ok(Self::For(Version::V0_3)),
            _ => {
                Err(Error::new(ErrorKind::VersionNotSupported, format!("A2A version {text:?} is not supported; use 1.0 or 0.3"))
                    .with_fact("supported", "1.0, 0.3"))
            }
        }
    }

    /// The version a method or path belongs to must be the one that was asked for. None asked for means 0.3; the
    /// original protocol knows no version header, its method names stand for it.
    pub(crate) fn agree(self, version: Version, what: &str) -> Result<(), Error> {
        let agrees = match (self, version) {
            (Self::Nothing, Version::V0_3 | Version::Original) => true,
            (Self::Nothing, Version::V1_0) => false,
            (Self::For(asked), Version::Original) => asked == Version::V0_3,
            (Self::For(asked), version) => asked == version,
        };
        if agrees {
            return Ok(());
        }
        let asked = match self {
            Self::Nothing => "no A2A-Version, which means 0.3".to_owned(),
            Self::For(asked) => format!("A2A-Version {asked}"),
        };
        Err(Error::new(ErrorKind::VersionNotSupported, format!("{what} belongs to A2A {version}, but the call has {asked}")))
    }

    /// The version to answer in when the call itself could not be understood.
    pub(crate) fn or_0_3(self) -> Version {
        match self {
            Self::For(version) => version,
            Self::Nothing => Version::V0_3,
        }
    }
}

fn version_in_query(query: &str) -> Option<&str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case("a2a-version")))
        .map(|(_, version)| version)
}

/// How a call is to be made, as its transport read it. All of it may be left out.
#[derive(Debug, Default)]
pub(crate) struct CallHead {
    pub(crate) extensions: Vec<String>,
    pub(crate) idempotency_key: Option<Arc<str>>,
    pub(crate) last_event_id: Option<u64>,
    pub(crate) hop_token: Option<Arc<str>>,
    /// The trace of the caller and its span in it.
    pub(crate) trace: Option<(TraceId, u64)>,
    pub(crate) tracestate: Option<Arc<str>>,
    /// The tenant that the head names.
    pub(crate) tenant: Option<String>,
}

impl CallHead {
    /// Reads the headers of a request.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Error> {
        let lines = HeadLines::of(headers);
        let last_event_id = match text(lines.last_event_id, LAST_EVENT_ID)? {
            None | Some("") => None,
            Some(id) => Some(
                id.trim()
                    .parse()
                    .map_err(|_| Error::invalid_field("Last-Event-ID", "must be an event id that this node sent"))?,
            ),
        };
        Ok(Self { last_event_id, ..Self::of_lines(&lines)? })
    }

    /// The same for clients whose `Last-Event-ID` is not one that this node sent.
    pub(crate) fn without_cursor(headers: &HeaderMap) -> Result<Self, Error> {
        Self::of_lines(&HeadLines::of(headers))
    }

    fn of_lines(lines: &HeadLines<'_>) -> Result<Self, Error> {
        let idempotency_key = match text(lines.idempotency_key, IDEMPOTENCY_KEY)? {
            Some("") => return Err(Error::invalid_field("Idempotency-Key", "must not be empty")),
            key => key.map(Arc::from),
        };
        let hop_token = text(lines.hop_token, HOP_TOKEN)?.filter(|token| !token.is_empty()).map(Arc::from);
        let tenant = match lines.tenant.map(|value| value.to_str()) {
            None => None,
            Some(Ok(tenant)) => Some(tenant.to_owned()),
            Some(Err(_)) => return Err(Error::invalid_field("A2A-Tenant", "must be visible ASCII")),
        };
        Ok(Self {
            extensions: extensions(lines),
            idempotency_key,
            last_event_id: None,
            hop_token,
            trace: text(lines.traceparent, TRACEPARENT).ok().flatten().and_then(TraceId::with_span),
            tracestate: tracestate(&lines.tracestate),
            tenant,
        })
    }
}

/// The lines of a request's head that say how a call is to be made. One pass finds them: looking up each name costs
/// more, and most requests have none of them.
#[derive(Default)]
struct HeadLines<'a> {
    idempotency_key: Option<&'a HeaderValue>,
    last_event_id: Option<&'a HeaderValue>,
    tenant: Option<&'a HeaderValue>,
    hop_token: Option<&'a HeaderValue>,
    traceparent: Option<&'a HeaderValue>,
    tracestate: Vec<&'a HeaderValue>,
    extensions: Vec<&'a HeaderValue>,
    x_extensions: Vec<&'a HeaderValue>,
}

impl<'a> HeadLines<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let mut lines = Self::default();
        for (name, value) in headers {
            let (several, first) = match name.as_str() {
                A2A_EXTENSIONS => (Some(&mut lines.extensions), None),
                X_A2A_EXTENSIONS => (Some(&mut lines.x_extensions), None),
                TRACESTATE => (Some(&mut lines.tracestate), None),
                IDEMPOTENCY_KEY => (None, Some(&mut lines.idempotency_key)),
                LAST_EVENT_ID => (None, Some(&mut lines.last_event_id)),
                A2A_TENANT => (None, Some(&mut lines.tenant)),
                HOP_TOKEN => (None, Some(&mut lines.hop_token)),
                TRACEPARENT => (None, Some(&mut lines.traceparent)),
                _ => continue,
            };
            if let Some(several) = several {
                several.push(value);
            }
            if let Some(first) = first {
                first.get_or_insert(value);
            }
        }
        lines
    }
}

fn text<'a>(line: Option<&'a HeaderValue>, name: &'static str) -> Result<Option<&'a str>, Error> {
    match line.map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Error::invalid_field(name, "must be visible ASCII")),
    }
}

/// The tenants that a call names beside its head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NamedTenants<'a> {
    pub(crate) in_path: Option<&'a str>,
    pub(crate) in_body: Option<&'a str>,
}

/// What is known before the payload is read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) agent: Option<AgentName>,
    /// The agent whose own address the call came to.
    pub(crate) via: Option<AgentName>,
    pub(crate) known: Known,
    /// The connection of a caller that no list has.
    pub(crate) unlisted_at: Option<PeerConnection>,
}

impl Draft {
    /// A call that this caller makes at this spot.
    pub(crate) fn new(spot: Spot, known: Known, origin: &ConnectionOrigin) -> Self {
        let unlisted_at = origin.of_unlisted(&known);
        Self { agent: spot.agent, via: spot.via, known, unlisted_at }
    }

    /// The context of a call that was read: its version is known, and its tenant is settled here. There is no other way from a
    /// transport to a `CallContext`.
    pub(crate) fn context(
        self,
        head: CallHead,
        named: NamedTenants<'_>,
        signposts: &Signposts,
        binding: Binding,
        version: Version,
    ) -> Result<CallContext, Error> {
        let CallHead { extensions, idempotency_key, last_event_id, hop_token, trace: given, tracestate, tenant } = head;
        // It belongs to the trace it came with: without one it says nothing.
        let tracestate = given.and(tracestate);
        let (trace, span) = given.map_or_else(|| (chancery_core::new_trace_id(), None), |(trace, span)| (trace, Some(span)));
        let mut context = CallContext {
            version,
            wrapped: false,
            binding,
            caller: self.known.caller,
            standing: self.known.standing,
            agent: self.agent,
            extensions,
            idempotency_key,
            last_event_id,
            trace,
            span,
            tracestate,
            hop_token,
            within: None,
            via: self.via,
            unlisted_at: self.unlisted_at,
        };
        settle_tenant(&mut context, signposts, tenant.as_deref(), named)?;
        Ok(context)
    }
}

/// A call's tenant is its credentials'. Every other source of a tenant must name the same. On a node without
/// authentication a tenant is only a name, and calls may name any. A name that leads to an agent only selects
/// the agent of a call at the root: the caller stays the same.
fn settle_tenant(
    context: &mut CallContext,
    signposts: &Signposts,
    in_header: Option<&str>,
    NamedTenants { in_path, in_body }: NamedTenants<'_>,
) -> Result<(), Error> {
    let mut named = [in_path, in_body, in_header].into_iter().flatten().filter(|tenant| !tenant.is_empty());
    let Some(tenant) = named.next() else { return Ok(()) };
    if named.any(|other| other != tenant) {
        return Err(Error::invalid_field("tenant", "differs between path, body and header"));
    }
    // Signatures do not cover that header: whoever carries a signed call could lead it to another agent.
    let is_certain = context.standing.proof != IdentityProof::Signature || in_path.is_some() || in_body.is_some();
    if context.agent.is_none()
        && is_certain
        && let Some(agent) = signposts.tenants.get(tenant)
    {
        context.agent = Some(agent.clone());
        return Ok(());
    }
    match context.standing.proof {
        IdentityProof::None if tenant.len() > LONGEST_TENANT || tenant.chars().any(char::is_control) => {
            Err(Error::invalid_field("tenant", "is no name of a tenant"))
        }
        IdentityProof::None => {
            context.caller.tenant = tenant.into();
            Ok(())
        }
        _ if *context.caller.tenant == *tenant => Ok(()),
        _ => Err(Error::invalid_field("tenant", "is not the tenant of these credentials")),
    }
}

/// All lines of it are one list. The service reads its own member and forwards as much of the others as every
/// system does.
fn tracestate(lines: &[&HeaderValue]) -> Option<Arc<str>> {
    let lines: Vec<&str> = lines.iter().filter_map(|line| line.to_str().ok()).collect();
    let state = lines.join(",");
    (1..=LONGEST_TRACESTATE).contains(&state.len()).then(|| state.into())
}

fn extensions(lines: &HeadLines<'_>) -> Vec<String> {
    let values = lines.extensions.iter().chain(&lines.x_extensions);
    let uris = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    uris.map(str::trim).filter(|uri| !uri.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Caller, CallerStanding};

    /// Where a call at the root ends up that names the tenant `lab` in its body or its header: at an agent, and as whose.
    fn settled(proof: IdentityProof, in_body: Option<&str>, in_header: Option<&str>) -> Option<(Option<String>, String)> {
        let signposts = Signposts { tenants: [("lab".into(), "research".into())].into(), ..Signposts::default() };
        let standing = Arc::new(CallerStanding { proof, ..CallerStanding::default() });
        let known = Known { caller: Caller::new("red", "caller"), standing };
        let mut headers = HeaderMap::new();
        headers.extend(in_header.map(|tenant| (HeaderName::from_static(A2A_TENANT), tenant.parse().unwrap())));
        let (draft, named) =
            (Draft { agent: None, via: None, known, unlisted_at: None }, NamedTenants { in_body, in_path: None });
        let head = CallHead::read(&headers).unwrap();
        let context = draft.context(head, named, &signposts, Binding::JsonRpc, Version::V1_0).ok()?;
        Some((context.agent.map(|agent| agent.to_string()), context.caller.tenant.to_string()))
    }

    #[test]
    fn a_tenant_that_leads_to_an_agent_changes_nothing_about_the_caller() {
        let at_research = Some((Some("research".to_owned()), "red".to_owned()));
        for proof in [IdentityProof::None, IdentityProof::ApiKey, IdentityProof::Token, IdentityProof::Certificate] {
            assert_eq!(settled(proof, Some("lab"), None), at_research, "{proof:?}");
            assert_eq!(settled(proof, None, Some("lab")), at_research, "{proof:?}");
            assert_eq!(settled(proof, Some("lab"), Some("red")), None, "{proof:?}: two names that differ");
        }
        assert_eq!(settled(IdentityProof::Signature, Some("lab"), None), at_research);
        assert_eq!(settled(IdentityProof::Signature, Some("lab"), Some("lab")), at_research);
        assert_eq!(settled(IdentityProof::Signature, None, Some("lab")), None, "anybody on the way can have added it");
        assert_eq!(settled(IdentityProof::ApiKey, Some("red"), None), Some((None, "red".to_owned())));
        assert_eq!(settled(IdentityProof::ApiKey, Some("blue"), None), None);
    }

    fn asked(header: Option<&str>, query: Option<&str>) -> Result<RequestedVersion, ErrorKind> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert("a2a-version", header.parse().unwrap());
        }
        RequestedVersion::of(&headers, query).map_err(|error| error.kind)
    }

    #[test]
    fn the_version_is_the_headers_then_the_querys_and_nothing_else() {
        assert_eq!(asked(None, None), Ok(RequestedVersion::Nothing));
        assert_eq!(asked(Some(""), None), Ok(RequestedVersion::Nothing));
        assert_eq!(asked(Some("1.0"), None), Ok(RequestedVersion::For(Version::V1_0)));
        assert_eq!(asked(Some("1.0.1"), None), Ok(RequestedVersion::For(Version::V1_0)));
        assert_eq!(asked(Some("0.3.0"), None), Ok(RequestedVersion::For(Version::V0_3)));
        assert_eq!(asked(None, Some("x=1&a2a-version=1.0")), Ok(RequestedVersion::For(Version::V1_0)));
        assert_eq!(asked(Some("0.3"), Some("A2A-Version=1.0")), Ok(RequestedVersion::For(Version::V0_3)));
        for unknown in ["99.0", "1.1", "1", "2.0", "abc", "0.2"] {
            assert_eq!(asked(Some(unknown), None), Err(ErrorKind::VersionNotSupported), "{unknown}");
        }
    }

    #[test]
    fn a_method_of_another_version_is_refused_as_such() {
        use Version::{Original, V0_3, V1_0};
        let cases = [
            (RequestedVersion::Nothing, V1_0, false),
            (RequestedVersion::Nothing, V0_3, true),
            (RequestedVersion::Nothing, Original, true),
            (RequestedVersion::For(V1_0), V1_0, true),
            (RequestedVersion::For(V1_0), V0_3, false),
            (RequestedVersion::For(V1_0), Original, false),
            (RequestedVersion::For(V0_3), V0_3, true),
            (RequestedVersion::For(V0_3), Original, true),
            (RequestedVersion::For(V0_3), V1_0, false),
        ];
        for (asked, version, agrees) in cases {
            assert_eq!(asked.agree(version, "m").is_ok(), agrees, "{asked:?} {version}");
        }
    }
}
