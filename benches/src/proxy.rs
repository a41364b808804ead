//! A plain reverse proxy on hyper: what a gateway costs that does nothing but pass bytes on.

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use clap::Args;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::yardstick;

#[derive(Debug, Clone, Args)]
pub(crate) struct BenchProxy {
    #[arg(long)]
    listen: String,
    /// `HOST:PORT` of the server behind it
    #[arg(long)]
    to: String,
}

#[derive(Clone)]
struct Behind {
    client: Client<HttpConnector, Body>,
    to: String,
}

/// Serves until the process is ended.
pub(crate) async fn serve(options: &BenchProxy) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
    let behind = Behind { client, to: options.to.clone() };
    yardstick::listen(&options.listen, Router::new().fallback(pass_on).with_state(behind)).await
}

async fn pass_on(State(behind): State<Behind>, mut request: Request) -> Response {
    let passed = async {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = Uri::try_from(format!("http://{}{path}", behind.to)).context("the address behind")?;
        behind.client.request(request).await.context("the server behind")
    };
    match passed.await {
        Ok(response) => response.map(Body::new).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}
