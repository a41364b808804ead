//! Every operation of the admin API with the query parameters it takes, and the checks before each: token, method, parameters.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use chancery_identity::SealKey;
use secrecy::{ExposeSecret as _, SecretString};

use super::fault::Fault;

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct AdminRoute {
    /// The HTTP method.
    pub method: &'static str,
    /// Parts in braces vary.
    pub path: &'static str,
    /// The query parameters it takes. Any other is refused.
    pub query: &'static [&'static str],
    /// What it does, for the documentation.
    pub about: &'static str,
}

const fn route(method: &'static str, path: &'static str, query: &'static [&'static str], about: &'static str) -> AdminRoute {
    AdminRoute { method, path, query, about }
}

const PAGED: &[&str] = &["limit", "after"];
const SCOPE: &[&str] = &["scope", "name", "unknown_ok"];

/// Every operation of the admin API.
pub const ADMIN_ROUTES: &[AdminRoute] = &[
    route("GET", "/admin/v1/node", &[], "version, agents, open tasks and streams, background loops"),
    route(
        "GET",
        "/admin/v1/tasks",
        &["agent", "caller", "tenant", "context", "state", "since", "total", "limit", "after"],
        "tasks of all callers, newest status first",
    ),
    route("GET", "/admin/v1/tasks/{id}", &[], "one task"),
    route("GET", "/admin/v1/tasks/{id}/events", &["after", "limit", "follow"], "its log; `follow=true` streams it"),
    route("POST", "/admin/v1/tasks/{id}/cancel", &[], "cancels the task and all tasks below it"),
    route("GET", "/admin/v1/trees/{id}", &["unknown_ok", "limit", "after"], "the trees of a trace or of a task"),
    route("POST", "/admin/v1/trees/{id}/cancel", &[], "cancels a tree, the deepest tasks first"),
    route("GET", "/admin/v1/explain/{id}", &[], "the verdicts about a task or a decision"),
    route("GET", "/admin/v1/decisions", PAGED, "decisions about calls that made no task, newest first"),
    route("GET", "/admin/v1/budgets", &["scope", "name", "unknown_ok", "limit", "after"], "limits and what is spent of them"),
    route("GET", "/admin/v1/bill", &["since_seconds", "by", "limit", "after"], "what was spent"),
    route("GET", "/admin/v1/freezes", PAGED, "what is frozen"),
    route("POST", "/admin/v1/freezes", &[], "freezes a scope"),
    route("DELETE", "/admin/v1/freezes", SCOPE, "thaws a scope"),
    route("GET", "/admin/v1/agents", PAGED, "the agents"),
    route("POST", "/admin/v1/agents", &[], "adds a remote agent"),
    route("GET", "/admin/v1/agents/{name}", &[], "one remote agent"),
    route("DELETE", "/admin/v1/agents/{name}", &[], "removes an added agent"),
    route("POST", "/admin/v1/agents/{name}/approve", &[], "approves a changed card"),
    route("GET", "/admin/v1/agents/{name}/health", &[], "the health of its replicas"),
    route("GET", "/admin/v1/agents/{name}/url", &[], "the agent's own address"),
    route("POST", "/admin/v1/agents/{name}/url", &[], "gives the agent another address"),
    route("GET", "/admin/v1/callers", PAGED, "the callers"),
    route("POST", "/admin/v1/callers", &[], "adds a caller; answers its key"),
    route("POST", "/admin/v1/callers/{name}/rotate", &[], "gives a caller a new key"),
    route("POST", "/admin/v1/callers/{name}/revoke", &[], "takes all credentials from a caller"),
    route("GET", "/admin/v1/keys", PAGED, "the signing keys"),
    route("POST", "/admin/v1/keys/rotate", &[], "makes new signing keys"),
    route("GET", "/admin/v1/config", &[], "the config in use"),
    route("POST", "/admin/v1/reload", &[], "reads the config file again"),
    route("GET", "/admin/v1/evidence", &[], "checks the record"),
    route("GET", "/admin/v1/evidence/bundle", &["task", "trace", "since", "until"], "a bundle of evidence, as gzip"),
    route("GET", "/admin/v1/memory", PAGED, "the memory tier and its witnesses"),
    route("PUT", "/admin/v1/memory/collections", &["memory_class"], "publishes vectors"),
    route("POST", "/admin/v1/memory/resolve", &[], "checks a witness"),
    route("POST", "/admin/v1/memory/search", &[], "searches a collection"),
    route("GET", "/admin/v1/memory/grants", PAGED, "the grants"),
    route("POST", "/admin/v1/memory/grants", &[], "issues a grant"),
    route("POST", "/admin/v1/memory/grants/{id}/revoke", &[], "revokes a grant"),
    route(
        "GET",
        "/admin/v1/push/lanes",
        &["tenant", "origin", "task", "config", "lane", "state", "limit", "after"],
        "webhook registrations",
    ),
    route("GET", "/admin/v1/push/lanes/{lane}", &[], "one registration and its last attempts"),
    route("GET", "/admin/v1/push/origins", PAGED, "how origins are treated"),
    route("POST", "/admin/v1/push/pause", &[], "pauses registrations"),
    route("POST", "/admin/v1/push/resume", &[], "resumes registrations"),
    route("POST", "/admin/v1/push/disable", &[], "disables registrations"),
    route("POST", "/admin/v1/push/enable", &[], "enables registrations"),
    route("POST", "/admin/v1/push/test", &[], "sends a webhook the current task"),
    route(
        "GET",
        "/admin/v1/push/dead",
        &["tenant", "origin", "task", "lane", "reason", "since", "until", "limit", "after"],
        "dead letters",
    ),
    route("GET", "/admin/v1/push/dead/{id}", &[], "one dead letter"),
    route("POST", "/admin/v1/push/dead/replay", &[], "sends dead letters again"),
    route("POST", "/admin/v1/push/dead/purge", &[], "deletes dead letters"),
    route("GET", "/admin/v1/push/receipts", &["lane", "limit", "after"], "receipts"),
    route("GET", "/admin/v1/push/metrics", &[], "metrics in the text form of Prometheus"),
    route("GET", "/admin/v1/push/vault", PAGED, "the keys of the vault"),
    route("POST", "/admin/v1/push/vault/rotate", &[], "gives the vault a new key"),
    route("POST", "/admin/v1/push/vault/retire", &[], "retires a key of the vault"),
    route("GET", "/admin/v1/push/secrets", PAGED, "the origins with an agreed secret"),
    route("POST", "/admin/v1/push/secrets", &[], "sets the secret of an origin"),
    route("POST", "/admin/v1/push/secrets/remove", &[], "removes the secret of an origin"),
];

/// The operations behind the checks that come before each of them.
pub(super) fn guarded(operations: Router, token: SecretString) -> Router {
    operations
        .fallback(async |request: Request| Fault::unknown(format!("there is no admin operation at {}", request.uri().path())))
        .layer(from_fn(check_route))
        .layer(from_fn_with_state(Arc::new(token), authorise))
}

async fn authorise(State(token): State<Arc<SecretString>>, headers: HeaderMap, request: Request, next: Next) -> Response {
    let given =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| value.strip_prefix("Bearer "));
    if given.is_some_and(|given| SealKey::same_secret(given.as_bytes(), token.expose_secret().as_bytes())) {
        return next.run(request).await;
    }
    let fault = Fault::new(StatusCode::UNAUTHORIZED, "the admin API needs the token in admin.token of the data folder");
    ([(header::WWW_AUTHENTICATE, "Bearer")], fault).into_response()
}

/// Refuses a method and a query parameter that the table does not have for the path.
async fn check_route(request: Request, next: Next) -> Response {
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else { return next.run(request).await };
    let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let here: Vec<&AdminRoute> = ADMIN_ROUTES.iter().filter(|route| route.path == path.as_str()).collect();
    let Some(route) = here.iter().find(|route| route.method == method.as_str()) else {
        let methods = here.iter().map(|route| route.method).collect::<Vec<_>>().join(", ");
        let message = format!("{} is not possible at {}; its methods are {methods}", request.method(), request.uri().path());
        let fault = Fault::new(StatusCode::METHOD_NOT_ALLOWED, message);
        let allow = HeaderValue::from_str(&methods).unwrap_or(HeaderValue::from_static(""));
        return ([(header::ALLOW, allow)], fault).into_response();
    };
    let query = request.uri().query().unwrap_or_default();
    let unknown = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| !route.query.contains(&&**name));
    if let Some((name, _)) = unknown {
        let known = match route.query {
            [] => "this operation takes none".to_owned(),
            names => format!("the parameters are {}", names.join(", ")),
        };
        return Fault::bad(format!("unknown query parameter {name:?}; {known}")).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation.
    fn table() -> String {
        let row = |route: &AdminRoute| {
            let query = route.query.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
            format!("| `{} {}` | {query} | {} |", route.method, route.path, route.about)
        };
        ADMIN_ROUTES.iter().map(row).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_documentation_has_every_operation() {
        let documented = include_str!("../../docs/operating.md");
        assert!(documented.contains(&table()), "docs/operating.md should have:\n{}", table());
    }

    #[test]
    fn an_operation_stands_in_the_table_once() {
        let mut all: Vec<_> = ADMIN_ROUTES.iter().map(|route| (route.method, route.path)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ADMIN_ROUTES.len());
    }
}
