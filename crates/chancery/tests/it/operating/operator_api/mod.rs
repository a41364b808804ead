//! The admin API: one error shape, known parameters, pages, and commands that use it from another machine.

mod errors;
mod from_elsewhere;
mod lists;
mod members;
mod trees;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::server::{Home, Server};

/// The operator, with the token of a node.
struct Operator {
    url: String,
    token: String,
    client: reqwest::Client,
}

impl Operator {
    fn of(server: &Server, home: &Home) -> Self {
        let token = std::fs::read_to_string(home.data().join("admin.token")).expect("a token");
        Self { url: server.url().to_owned(), token: token.trim().to_owned(), client: reqwest::Client::new() }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token)
    }

    /// An answer that has to be JSON.
    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let answer = self.request(Method::GET, &format!("/admin/v1/{path}")).send().await.expect("the node answers");
        (answer.status(), answer.json().await.unwrap_or_else(|fault| panic!("{path}: {fault}")))
    }

    /// One that has to be good.
    async fn good(&self, path: &str) -> Value {
        let (status, answer) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    /// The entries of all pages of a list.
    async fn all_pages(&self, path: &str, member: &str) -> Vec<Value> {
        let (mut entries, mut page) = (Vec::new(), self.good(path).await);
        loop {
            entries.extend(page[member].as_array().expect("a list").iter().cloned());
            let next = match &page["next"] {
                Value::Null => return entries,
                Value::String(next) => next.clone(),
                other => other.to_string(),
            };
            page = self.good(&format!("{path}&after={next}")).await;
        }
    }
}
