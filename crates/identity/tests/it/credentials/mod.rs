//! Each kind of credential, accepted once and refused for every reason there is.

mod api_keys;
mod certificates;
mod combinations;
mod declared;
mod garbage;
mod signatures;
mod signing;
mod test_issuer;
mod tokens;

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_identity::credentials::{
    ApiKeyRecord, Authenticator, CallerRecord, Callers, Checks, CredentialRefusal, KeyHash, Known, RefusalKind, RequestFacts,
};
use chancery_protocol::Timestamp;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A moment in 2027; no test reads the clock.
const NOW_S: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn now() -> Timestamp {
    at(NOW_S)
}

fn callers(records: Vec<CallerRecord>) -> Arc<ArcSwap<Callers>> {
    Arc::new(ArcSwap::from_pointee(Callers::new(records).unwrap()))
}

fn with_key(name: &str, key: &str) -> CallerRecord {
    let mut record = CallerRecord::new(name);
    record.keys.push(ApiKeyRecord { hash: KeyHash::of(key), made_at: at(0), expires_at: None });
    record
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn bearer(credential: &str) -> HeaderMap {
    headers(&[("authorization", &format!("Bearer {credential}"))])
}

/// Both steps, as a door takes them.
async fn ask(
    authenticator: &Authenticator,
    headers: &HeaderMap,
    certificate: Option<&[u8]>,
    now: Timestamp,
) -> Result<Known, RefusalKind> {
    let request = RequestFacts { method: &Method::POST, path_and_query: "/", headers, body: b"", meant_for: None };
    ask_with(authenticator, &request, certificate, now).await.map_err(|refusal| refusal.kind)
}

async fn ask_with(
    authenticator: &Authenticator,
    request: &RequestFacts<'_>,
    certificate: Option<&[u8]>,
    now: Timestamp,
) -> Result<Known, CredentialRefusal> {
    let presented = authenticator.present(request.headers, certificate)?;
    authenticator.check(&presented, request, now).await
}

/// `TENANT/NAME` of whom it is.
fn who(known: Result<Known, RefusalKind>) -> Result<String, RefusalKind> {
    known.map(|known| format!("{}/{}", known.caller.tenant, known.caller.name))
}

fn only_keys(records: Vec<CallerRecord>) -> Authenticator {
    Authenticator::new(Checks::new(callers(records)))
}
