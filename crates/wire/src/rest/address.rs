//! The table the other way round, for a client: where an operation is asked for, and what of its params goes where.

use std::collections::BTreeMap;

use chancery_protocol::{Error, ErrorKind, Request, Version};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::RawValue;

use super::{ROUTES, Verb};

/// What one segment of a path or one part of a query may hold as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where a request goes, below the interface's URL.
#[derive(Debug, PartialEq, Eq)]
pub struct Address {
    pub verb: Verb,
    /// Path and query, with a leading slash.
    pub path: String,
    /// What is left of the params; nothing where the verb has no body.
    pub body: Option<String>,
}

/// The address of a request whose params are `params`, the object a codec wrote for it.
pub fn address(version: Version, request: &Request, params: &str) -> Result<Address, Error> {
    let operation = request.operation();
    let route = ROUTES.iter().find(|route| route.version == version && route.operation == operation);
    let Some(route) = route else {
        return Err(Error::new(ErrorKind::UnsupportedOperation, format!("version {version} has no path for {operation:?}")));
    };
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(params).map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))?;
    members.remove("tenant");
    let (task, config) = names(request);
    let mut path = String::new();
    if let Some(tenant) = request.tenant().filter(|_| version == Version::V1_0) {
        path.push_str(&format!("/{}", encoded(tenant)));
    }
    for segment in route.path.split('/').skip(1) {
        path.push('/');
        let Some((name, custom_verb)) = segment.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            path.push_str(segment);
            continue;
        };
        // The task is the first capture of a path, the configuration the second.
        let is_task = segment_is_task(route.path, segment);
        let value = if is_task { task } else { config };
        let value = value.filter(|value| !value.is_empty()).ok_or_else(|| Error::invalid_field(name, "is required"))?;
        let segment = format!("{}{custom_verb}", encoded(value));
        if matches!(segment.as_str(), "." | "..") {
            // However it is written, it would be a step in the path.
            return Err(Error::invalid_field(name, "cannot stand in a path"));
        }
        path.push_str(&segment);
        // Bodies of 1.0 are whole messages, as its SDKs post them; the proto of 0.3 has no such members.
        if route.verb != Verb::Post || version == Version::V0_3 {
            members.remove(if is_task && version == Version::V0_3 { "id" } else { name });
        }
    }
    if route.verb == Verb::Post {
        let body = serde_json::to_string(&members).map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))?;
        return Ok(Address { verb: route.verb, path, body: Some(body) });
    }
    for (index, (name, value)) in members.iter().enumerate() {
        let value = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
        let separator = if index == 0 { '?' } else { '&' };
        path.push_str(&format!("{separator}{}={}", encoded(name), encoded(&value)));
    }
    Ok(Address { verb: route.verb, path, body: None })
}

fn segment_is_task(path: &str, segment: &str) -> bool {
    path.split('/').find(|part| part.starts_with('{')) == Some(segment)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// The task and the push configuration that a request names.
fn names(request: &Request) -> (Option<&str>, Option<&str>) {
    match request {
        Request::GetTask(get) => (Some(get.id.as_str()), None),
        Request::CancelTask(cancel) => (Some(cancel.id.as_str()), None),
        Request::SubscribeToTask(subscribe) => (Some(subscribe.id.as_str()), None),
        Request::CreatePushConfig(config) => (config.task_id.as_ref().map(|id| id.as_str()), None),
        Request::GetPushConfig(which) | Request::DeletePushConfig(which) => (Some(which.task_id.as_str()), which.id.as_deref()),
        Request::ListPushConfigs(list) => (Some(list.task_id.as_str()), None),
        Request::SendMessage(_) | Request::StreamMessage(_) | Request::ListTasks(_) | Request::GetExtendedCard(_) => (None, None),
    }
}
