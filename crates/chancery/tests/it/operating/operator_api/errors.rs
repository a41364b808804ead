//! Every operation refuses in one shape: without a token, by another method, with an unknown parameter, with a bad body or path.

use chancery::cli_support::{ADMIN_ROUTES, AdminRoute};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Operator;
use crate::support::server::{Home, Setup};

/// The message of an error, which has to be in the one shape.
async fn message(answer: Response, expected: StatusCode, of: &str) -> String {
    assert_eq!(answer.status(), expected, "{of}");
    let media_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(media_type.starts_with("application/json"), "{of}: {media_type}");
    let body: Value = answer.json().await.unwrap_or_else(|fault| panic!("{of}: {fault}"));
    let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["error"], "{of}: {body}");
    let error = body["error"].as_object().expect("an object");
    let mut members: Vec<&str> = error.keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["code", "details", "message", "status"], "{of}: {body}");
    assert_eq!(error["code"], expected.as_u16(), "{of}: {body}");
    assert!(error["details"].is_array() && error["status"].is_string(), "{of}: {body}");
    error["message"].as_str().expect("a message").to_owned()
}

fn path_of(route: &AdminRoute) -> String {
    ["{id}", "{name}", "{lane}"].iter().fold(route.path.to_owned(), |path, part| path.replace(part, "1"))
}

#[tokio::test]
async fn every_operation_refuses_in_one_shape() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let operator = Operator::of(&server, &home);
    for route in ADMIN_ROUTES {
        let (path, of) = (path_of(route), format!("{} {}", route.method, route.path));
        let method: Method = route.method.parse().unwrap();
        let url = format!("{}{path}", server.url());
        for token in [None, Some("wrong")] {
            let mut request = operator.client.request(method.clone(), &url);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.headers()["www-authenticate"], "Bearer", "{of}");
            assert!(message(answer, StatusCode::UNAUTHORIZED, &of).await.contains("token"), "{of}");
        }
        let answer = operator.request(method.clone(), &format!("{path}?agnet=writer")).send().await.unwrap();
        let refused = message(answer, StatusCode::BAD_REQUEST, &of).await;
        assert!(refused.contains("agnet") && route.query.iter().all(|known| refused.contains(known)), "{of}: {refused}");
        let answer = operator.request(Method::PATCH, &path).send().await.unwrap();
        let allowed = answer.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allowed.split(", ").any(|one| one == route.method), "{of}: {allowed}");
        assert!(message(answer, StatusCode::METHOD_NOT_ALLOWED, &of).await.contains("PATCH"), "{of}");
    }
    // The table has what is served: none of these was refused for being unknown.
    let known: Vec<&str> = ADMIN_ROUTES.iter().map(|route| route.path).collect();
    assert!(known.contains(&"/admin/v1/tasks") && known.len() > 50, "{known:?}");
}

#[tokio::test]
async fn bad_paths_bodies_and_values_are_refused_in_the_same_shape() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let operator = Operator::of(&server, &home);
    for path in ["/admin", "/admin/", "/admin/v1", "/admin/v1/task", "/admin/v2/tasks", "/admin/v1/agents/a/b/c"] {
        let answer = operator.request(Method::GET, path).send().await.unwrap();
        message(answer, StatusCode::NOT_FOUND, path).await;
    }
    for path in ["tasks/nobody", "tasks/nobody/events", "trees/nobody", "explain/nobody", "agents/nobody", "push/lanes/7"] {
        let answer = operator.request(Method::GET, &format!("/admin/v1/{path}")).send().await.unwrap();
        message(answer, StatusCode::NOT_FOUND, path).await;
    }
    for (path, word) in [
        ("tasks?limit=0", "limit"),
        ("tasks?limit=1001", "limit"),
        ("tasks?limit=many", "limit"),
        ("tasks?total=some", "total"),
        ("tasks?state=happy", "input-required"),
        ("tasks?since=yesterday", "since"),
        ("tasks?after=here", "after"),
        ("tasks?state=working&state=failed", "state"),
        ("callers?after=nobody", "after"),
        ("decisions?after=nobody", "after"),
        ("push/lanes/seven", "seven"),
        ("evidence/bundle?trace=7", "trace"),
        ("bill", "since_seconds"),
    ] {
        let answer = operator.request(Method::GET, &format!("/admin/v1/{path}")).send().await.unwrap();
        let refused = message(answer, StatusCode::BAD_REQUEST, path).await;
        assert!(refused.contains(word), "{path}: {refused}");
    }
    for path in ["callers", "keys/rotate", "freezes", "agents", "push/pause", "push/dead/purge", "memory/grants", "push/secrets"]
    {
        let post = || operator.request(Method::POST, &format!("/admin/v1/{path}"));
        for body in ["{", "[]", r#"{"surplus": 1}"#] {
            let answer = post().header("content-type", "application/json").body(body).send().await.unwrap();
            message(answer, StatusCode::BAD_REQUEST, &format!("{path} with {body}")).await;
        }
        let answer = post().body("{}").send().await.unwrap();
        message(answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, path).await;
    }
    let answer = operator.request(Method::POST, "/admin/v1/callers/nobody/revoke").json(&json!({})).send().await.unwrap();
    message(answer, StatusCode::NOT_FOUND, "a caller that nobody is").await;
}

#[tokio::test]
async fn a_node_without_a_token_says_so_in_the_same_shape() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--memory"]).start();
    let answer = reqwest::get(format!("{}/admin/v1/tasks", server.url())).await.unwrap();
    assert!(message(answer, StatusCode::NOT_FOUND, "no token").await.contains("no token"));
}
