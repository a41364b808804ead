//! What goes with a call beside its content: headers over HTTP, metadata over gRPC.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Error, TraceId, Version};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::AgentCredentials;
use crate::terms::RequestSigner;

/// The conditions of one call: trace, credentials, lineage and deadline.
#[derive(Clone, Debug)]
pub struct CallConditions {
    /// Goes out as `traceparent`.
    pub trace: TraceId,
    /// The span id beside it; without one, a new one each time.
    pub span: Option<u64>,
    /// Goes out beside it, as it came.
    pub tracestate: Option<Arc<str>>,
    /// Protocol extensions asked for.
    pub extensions: Vec<String>,
    /// The credentials of the call.
    pub credentials: AgentCredentials,
    /// Signs each request of the call, over JSON-RPC and HTTP+JSON.
    pub signer: Option<RequestSigner>,
    /// More headers, which the operator set for this agent.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Same key, same task, at agents that know it.
    pub idempotency_key: Option<String>,
    /// Names the task that the call is for, readable by the issuer of the token.
    pub hop_token: Option<Arc<str>>,
    /// The id of the last event already heard of the task that is subscribed to.
    pub last_event_id: Option<String>,
    /// How long the whole call may take, waiting and tries included; of a stream, up to its last event. Without it, an
    /// answer has the time that silence may last, and a stream any time.
    pub deadline: Option<Duration>,
}

/// Room for these and for what every request has, so that the map is not grown later.
const MOST_HEADERS: usize = 12;
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

impl CallConditions {
    /// Makes conditions with this trace and nothing else.
    pub fn new(trace: TraceId) -> Self {
        Self {
            trace,
            span: None,
            tracestate: None,
            extensions: Vec::new(),
            credentials: AgentCredentials::None,
            signer: None,
            headers: Vec::new(),
            idempotency_key: None,
            hop_token: None,
            last_event_id: None,
            deadline: None,
        }
    }

    /// Never so far off that it cannot be added to a time.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.min(LONGEST))
    }

    /// The trace, and the span of this call in it.
    pub(super) fn traceparent(&self) -> String {
        let span = self.span.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1.max(1));
        format!("00-{}-{span:016x}-01", self.trace)
    }

    /// As the version wants them.
    pub(super) fn headers(&self, version: Version) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::with_capacity(MOST_HEADERS);
        let mut put = |name: &'static str, value: &str| match HeaderValue::from_str(value) {
            Ok(value) => {
                headers.insert(HeaderName::from_static(name), value);
                Ok(())
            }
            Err(_) => Err(Error::invalid_field(name, "cannot stand in a header")),
        };
        put("traceparent", &self.traceparent())?;
        if let Some(state) = &self.tracestate {
            put("tracestate", state)?;
        }
        if let Some(token) = &self.hop_token {
            put("chancery-hop-token", token)?;
        }
        let extensions = self.extensions.join(",");
        match version {
            Version::V1_0 => put("a2a-version", "1.0")?,
            // Agents of 0.3 ignore it; agents of both want it.
            Version::V0_3 => put("a2a-version", "0.3")?,
            Version::Original => {}
        }
        match version {
            _ if extensions.is_empty() => {}
            Version::V1_0 => put("a2a-extensions", &extensions)?,
            Version::V0_3 => put("x-a2a-extensions", &extensions)?,
            Version::Original => {}
        }
        if let Some(key) = &self.idempotency_key {
            put("idempotency-key", key)?;
        }
        if let Some(id) = &self.last_event_id {
            put("last-event-id", id)?;
        }
        // Before the credentials, which count where both name one header.
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        match self.credentials.write(&mut headers) {
            true => Ok(headers),
            false => Err(Error::invalid_field("credentials", "cannot stand in a header")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version) -> Vec<(String, String)> {
        let conditions = CallConditions {
            extensions: vec!["https://a/x".to_owned(), "https://b/y".to_owned()],
            idempotency_key: Some("k".to_owned()),
            last_event_id: Some("7".to_owned()),
            ..CallConditions::new(TraceId(0xabc))
        };
        let headers = conditions.headers(version).unwrap();
        let mut written: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        written.retain(|(name, _)| name != "traceparent");
        written.sort();
        written
    }

    #[test]
    fn each_version_gets_the_headers_it_knows() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let rest = [pair("idempotency-key", "k"), pair("last-event-id", "7")];
        let both = "https://a/x,https://b/y";
        let newer = [&[pair("a2a-extensions", both), pair("a2a-version", "1.0")], &rest[..]].concat();
        assert_eq!(written(Version::V1_0), newer);
        let older = [&[pair("a2a-version", "0.3")], &rest[..], &[pair("x-a2a-extensions", both)]].concat();
        assert_eq!(written(Version::V0_3), older);
        assert_eq!(written(Version::Original), rest);
    }

    #[test]
    fn the_trace_goes_on_under_the_span_it_was_given_or_a_new_one_each_time() {
        let conditions = CallConditions::new(TraceId(0xabc));
        let (one, other) = (conditions.traceparent(), conditions.traceparent());
        assert_eq!(TraceId::from_traceparent(&one), Some(TraceId(0xabc)));
        assert_ne!(one, other);
        let given = CallConditions { span: Some(7), ..conditions };
        assert_eq!(TraceId::with_span(&given.traceparent()), Some((TraceId(0xabc), 7)));
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_named() {
        let broken = CallConditions { idempotency_key: Some("a\r\nb: c".to_owned()), ..CallConditions::new(TraceId(1)) };
        assert_eq!(broken.headers(Version::V1_0).unwrap_err().violations[0].field, "idempotency-key");
    }
}
