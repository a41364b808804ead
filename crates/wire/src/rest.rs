//! REST is JSON-RPC with the method in the path: one table, then the same decode.

mod address;

use chancery_protocol::{Error, ErrorKind, Operation, Version};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

pub use address::{Address, address};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Delete,
}

struct Route {
    version: Version,
    verb: Verb,
    /// `{name}` captures a segment; what follows a colon is the custom verb of the last segment.
    path: &'static str,
    operation: Operation,
}

const fn route(version: Version, verb: Verb, path: &'static str, operation: Operation) -> Route {
    Route { version, verb, path, operation }
}

#[rustfmt::skip]
const ROUTES: &[Route] = {
    use Operation::*;
    use Verb::*;
    use Version::{V0_3, V1_0};
    &[
        route(V1_0, Post, "/message:send", SendMessage),
        route(V1_0, Post, "/message:stream", StreamMessage),
        route(V1_0, Get, "/tasks/{id}", GetTask),
        route(V1_0, Get, "/tasks", ListTasks),
        route(V1_0, Post, "/tasks/{id}:cancel", CancelTask),
        // The text says POST, the schema says GET.
        route(V1_0, Post, "/tasks/{id}:subscribe", SubscribeToTask),
        route(V1_0, Get, "/tasks/{id}:subscribe", SubscribeToTask),
        route(V1_0, Post, "/tasks/{taskId}/pushNotificationConfigs", CreatePushConfig),
        route(V1_0, Get, "/tasks/{taskId}/pushNotificationConfigs", ListPushConfigs),
        route(V1_0, Get, "/tasks/{taskId}/pushNotificationConfigs/{id}", GetPushConfig),
        route(V1_0, Delete, "/tasks/{taskId}/pushNotificationConfigs/{id}", DeletePushConfig),
        route(V1_0, Get, "/extendedAgentCard", GetExtendedCard),
        route(V0_3, Post, "/v1/message:send", SendMessage),
        route(V0_3, Post, "/v1/message:stream", StreamMessage),
        route(V0_3, Get, "/v1/tasks/{id}", GetTask),
        route(V0_3, Get, "/v1/tasks", ListTasks),
        route(V0_3, Post, "/v1/tasks/{id}:cancel", CancelTask),
        route(V0_3, Post, "/v1/tasks/{id}:subscribe", SubscribeToTask),
        route(V0_3, Get, "/v1/tasks/{id}:subscribe", SubscribeToTask),
        route(V0_3, Post, "/v1/tasks/{taskId}/pushNotificationConfigs", CreatePushConfig),
        route(V0_3, Get, "/v1/tasks/{taskId}/pushNotificationConfigs", ListPushConfigs),
        route(V0_3, Get, "/v1/tasks/{taskId}/pushNotificationConfigs/{configId}", GetPushConfig),
        route(V0_3, Delete, "/v1/tasks/{taskId}/pushNotificationConfigs/{configId}", DeletePushConfig),
        route(V0_3, Get, "/v1/card", GetExtendedCard),
    ]
};

/// A path that means an operation.
#[derive(Debug, PartialEq, Eq)]
pub struct RestCall {
    pub version: Version,
    pub operation: Operation,
    captures: Vec<(&'static str, String)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Call(RestCall),
    /// The path exists, for other verbs.
    OtherVerb,
    Nothing,
}

/// Looks a path up, below the agent's own prefix. A leading segment that is no part of the table is the tenant.
pub fn find(verb: Verb, path: &str) -> Found {
    match find_exact(verb, path, None) {
        Found::Nothing => {}
        found => return found,
    }
    let rest = path.strip_prefix('/').unwrap_or(path);
    match rest.split_once('/') {
        Some((tenant, _)) if !tenant.is_empty() => find_exact(verb, &rest[tenant.len()..], Some(tenant)),
        _ => Found::Nothing,
    }
}

fn find_exact(verb: Verb, path: &str, tenant: Option<&str>) -> Found {
    let mut other_verb = false;
    for route in ROUTES {
        let Some(mut captures) = captures(route.path, path) else { continue };
        if route.verb != verb {
            other_verb = true;
            continue;
        }
        captures.extend(tenant.map(|tenant| ("tenant", decoded(tenant))));
        return Found::Call(RestCall { version: route.version, operation: route.operation, captures });
    }
    if other_verb { Found::OtherVerb } else { Found::Nothing }
}

fn captures(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut captures = Vec::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        let Some(capture) = expected.strip_prefix('{') else {
            if expected != segment {
                return None;
            }
            continue;
        };
        let (name, custom_verb) = capture.split_once('}')?;
        // Ids may hold colons themselves: only a known verb at the very end counts.
        let value = match custom_verb {
            "" if segment.ends_with(":cancel") || segment.ends_with(":subscribe") => return None,
            verb => segment.strip_suffix(verb)?,
        };
        if value.is_empty() {
            return None;
        }
        captures.push((name, decoded(value)));
    }
    segments.next().is_none().then_some(captures)
}

fn decoded(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

/// One parameter of a query string, decoded.
pub fn query_value(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(given, _)| *given == name)
        .map(|(_, value)| decoded(&value.replace('+', " ")))
}

impl RestCall {
    /// The tenant in the path. Not every version has a member for it.
    pub fn tenant(&self) -> Option<&str> {
        self.captures.iter().find(|(name, _)| *name == "tenant").map(|(_, tenant)| tenant.as_str())
    }

    /// One object from captures, query and body: what JSON-RPC would have called `params`. `body` was scanned.
    pub fn params(&self, query: Option<&str>, body: &str) -> Result<String, Error> {
        let mut members: BTreeMap<String, Box<RawValue>> = if body.trim().is_empty() {
            BTreeMap::new()
        } else {
            serde_json::from_str(body).map_err(|fault| match fault.is_data() {
                true => Error::new(ErrorKind::InvalidParams, "the body must be a JSON object"),
                false => Error::new(ErrorKind::Parse, fault.to_string()),
            })?
        };
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")));
            if name.eq_ignore_ascii_case("a2a-version") || members.contains_key(&name) {
                continue;
            }
            // What a message is sent with is all in its body. What else stands in the query (a key, perhaps) is for us, and is
            // not to be passed on as a member nobody knows.
            let sends = matches!(self.operation, Operation::SendMessage | Operation::StreamMessage);
            if sends && name != "tenant" {
                continue;
            }
            let value = typed_value(&name, &value)?;
            members.insert(name, value);
        }
        for (name, value) in &self.captures {
            let value = text_value(value)?;
            let differs =
                members.get(*name).is_some_and(|given| given.get() != value.get() && !matches!(given.get(), "null" | r#""""#));
            if differs {
                return Err(Error::invalid_field(*name, "differs between path and body"));
            }
            members.insert((*name).to_owned(), value);
        }
        serde_json::to_string(&members).map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))
    }
}

/// Query values are text; only the one boolean of the protocol has to be recognised.
fn typed_value(name: &str, value: &str) -> Result<Box<RawValue>, Error> {
    match (name, value) {
        ("includeArtifacts" | "include_artifacts", "true" | "false") => {
            RawValue::from_string(value.to_owned()).map_err(|fault| Error::invalid_field(name, fault.to_string()))
        }
        _ => text_value(value),
    }
}

fn text_value(text: &str) -> Result<Box<RawValue>, Error> {
    serde_json::value::to_raw_value(text).map_err(|fault| Error::new(ErrorKind::Internal, fault.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(verb: Verb, path: &str) -> RestCall {
        match find(verb, path) {
            Found::Call(call) => call,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn every_row_is_found_by_its_own_path() {
        for route in ROUTES {
            let path = route.path.replace('{', "x-").replace('}', "");
            let found = call(route.verb, &path);
            assert_eq!((found.version, found.operation), (route.version, route.operation), "{path}");
        }
    }

    #[test]
    fn custom_verbs_are_split_off_the_id_and_colons_in_ids_stay() {
        let found = call(Verb::Post, "/tasks/a:b%20c:cancel");
        assert_eq!(found.operation, Operation::CancelTask);
        assert_eq!(found.captures, [("id", "a:b c".to_owned())]);
        assert_eq!(call(Verb::Get, "/tasks/a:b").captures, [("id", "a:b".to_owned())]);
    }

    #[test]
    fn a_tenant_may_stand_in_front() {
        let found = call(Verb::Post, "/acme/message:send");
        assert_eq!((found.version, found.captures), (Version::V1_0, vec![("tenant", "acme".to_owned())]));
    }

    #[test]
    fn unknown_paths_and_other_verbs_are_told_apart() {
        assert_eq!(find(Verb::Get, "/nothing"), Found::Nothing);
        assert_eq!(find(Verb::Get, "/tasks/x/y/z"), Found::Nothing);
        assert_eq!(find(Verb::Post, "/tasks"), Found::OtherVerb);
        assert_eq!(find(Verb::Delete, "/tasks/x"), Found::OtherVerb);
    }

    #[test]
    fn captures_query_and_body_become_one_object() {
        let found = call(Verb::Get, "/tasks/t-1");
        assert_eq!(found.params(Some("historyLength=3&A2A-Version=1.0"), "").unwrap(), r#"{"historyLength":"3","id":"t-1"}"#);
        let listed = call(Verb::Get, "/tasks");
        assert_eq!(
            listed.params(Some("includeArtifacts=true&contextId=a+b%26"), "").unwrap(),
            r#"{"contextId":"a b&","includeArtifacts":true}"#
        );
        let sent = call(Verb::Post, "/message:send");
        assert_eq!(sent.params(Some("key=secret&tenant=a"), r#"{"x":1.0e5}"#).unwrap(), r#"{"tenant":"a","x":1.0e5}"#);
        let cancelled = call(Verb::Post, "/tasks/t-1:cancel");
        assert_eq!(cancelled.params(None, r#"{"id":"t-1"}"#).unwrap(), r#"{"id":"t-1"}"#);
        assert_eq!(cancelled.params(None, r#"{"id":"t-2"}"#).unwrap_err().violations[0].field, "id");
        assert_eq!(cancelled.params(None, "[1]").unwrap_err().kind, ErrorKind::InvalidParams);
        assert_eq!(cancelled.params(None, "{").unwrap_err().kind, ErrorKind::Parse);
    }
}
