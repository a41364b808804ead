//! The REST table for a client: the address of an operation, and the place of each parameter.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::{Found, find};
    use chancery_protocol::{CancelTask, GetTask, PushConfigRef, TaskId};

    fn get(id: &str, tenant: Option<&str>) -> Request {
        Request::GetTask(GetTask { tenant: tenant.map(str::to_owned), id: id.into(), history_length: None })
    }

    #[test]
    fn ids_tenants_and_the_rest_go_where_the_table_says() {
        let params = r#"{"tenant":"a/b","id":"x/../y?z","historyLength":3,"word":"a&b=c"}"#;
        let found = address(Version::V1_0, &get("x/../y?z", Some("a/b")), params).unwrap();
        assert_eq!(found.path, "/a%2Fb/tasks/x%2F..%2Fy%3Fz?historyLength=3&word=a%26b%3Dc");
        assert_eq!((found.verb, found.body), (Verb::Get, None));
        let older = address(Version::V0_3, &get("t", Some("a")), r#"{"id":"t"}"#).unwrap();
        assert_eq!(older.path, "/v1/tasks/t", "0.3 has no tenants");
    }

    #[test]
    fn a_body_is_a_whole_message_in_1_0_and_the_rest_of_one_in_0_3() {
        let cancel = Request::CancelTask(CancelTask { tenant: None, id: "t".into(), metadata: None });
        let body = |version| address(version, &cancel, r#"{"id":"t","metadata":{}}"#).unwrap().body.unwrap();
        assert_eq!(body(Version::V1_0), r#"{"id":"t","metadata":{}}"#);
        assert_eq!(body(Version::V0_3), r#"{"metadata":{}}"#);
    }

    #[test]
    fn an_id_that_would_be_a_step_in_the_path_is_refused() {
        for id in [".", "..", ""] {
            let fault = address(Version::V1_0, &get(id, None), "{}").unwrap_err();
            assert_eq!(fault.violations[0].field, "id", "{id:?}");
        }
        let which = PushConfigRef { tenant: None, task_id: "t".into(), id: None };
        let fault = address(Version::V0_3, &Request::GetPushConfig(which), "{}").unwrap_err();
        assert_eq!(fault.violations[0].field, "configId");
    }

    #[test]
    fn whatever_the_id_its_path_leads_back_to_it() {
        for id in ["t", "a b", "a:cancel", "%2e%2e", "ü/é", "..", "a#b", "..."] {
            let cancel = Request::CancelTask(CancelTask { tenant: None, id: TaskId::from(id), metadata: None });
            let found = address(Version::V1_0, &cancel, "{}").unwrap();
            let Found::Call(call) = find(found.verb, &found.path) else { panic!("{id}: {}", found.path) };
            assert_eq!(call.params(None, "").unwrap(), format!(r#"{{"id":{}}}"#, serde_json::to_string(id).unwrap()));
        }
    }

    #[test]
    fn the_original_has_no_paths() {
        assert_eq!(address(Version::Original, &get("t", None), "{}").unwrap_err().kind, ErrorKind::UnsupportedOperation);
    }
}
