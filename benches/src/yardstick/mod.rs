//! The yardstick: an axum server as one would write it by hand, with no task service behind it.

mod model;

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use bytes::Bytes;
use clap::Args;
use futures::Stream;
use futures::stream::{self, StreamExt};
use tokio::net::TcpListener;

use self::model::{Padding, YardstickAnswer, YardstickCall, YardstickResult, YardstickTurn};

/// Bodies are brought to the sizes of the server they are compared with.
#[derive(Debug, Clone, Args)]
pub(crate) struct Yardstick {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:7999")]
    listen: String,
    /// Bytes of the answer to a send
    #[arg(long)]
    answer_bytes: Option<usize>,
    /// Bytes of the agent card
    #[arg(long, default_value_t = 1200)]
    card_bytes: usize,
    /// Bytes of a whole stream
    #[arg(long)]
    stream_bytes: Option<usize>,
    /// Events of a stream
    #[arg(long, default_value_t = 10)]
    events: usize,
}

#[derive(Debug, Clone)]
struct Shared {
    padding: Padding,
    events: usize,
    card: Bytes,
}

/// Serves until the process is ended.
pub(crate) async fn serve(options: &Yardstick) -> Result<()> {
    let shared = Shared {
        padding: Padding::fitting(options.answer_bytes, options.stream_bytes, options.events)?,
        events: options.events,
        card: model::card(options.card_bytes).into(),
    };
    let app = Router::new()
        .route("/", post(send))
        .route("/stream", post(stream_events))
        .route("/card", get(card))
        .route("/idle", get(idle))
        .with_state(shared);
    listen(&options.listen, app).await
}

/// Serves an app with `TCP_NODELAY`, until the process is ended.
pub(crate) async fn listen(address: &str, app: Router) -> Result<()> {
    let listener = TcpListener::bind(address).await?.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("TCP_NODELAY: {error}");
        }
    });
    axum::serve(listener, app).await?;
    Ok(())
}

async fn send(State(shared): State<Shared>, Json(call): Json<YardstickCall>) -> Json<YardstickAnswer> {
    let id = call.id;
    let turn = YardstickTurn::new(call.params.message, &shared.padding);
    Json(YardstickAnswer::new(id, YardstickResult::Task(turn.completed())))
}

async fn stream_events(
    State(shared): State<Shared>,
    Json(call): Json<YardstickCall>,
) -> Sse<impl Stream<Item = Result<Event, axum::Error>>> {
    let id = call.id;
    let turn = YardstickTurn::new(call.params.message, &shared.padding);
    let last = shared.events;
    Sse::new(stream::iter(1..=last).map(move |number| {
        let answer = YardstickAnswer::new(id.clone(), turn.event(number, last));
        Event::default().id(number.to_string()).json_data(&answer)
    }))
    .keep_alive(every_15_seconds())
}

async fn card(State(shared): State<Shared>) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (ETAG, "\"0123456789abcdef\""), (CACHE_CONTROL, "public, max-age=300")];
    (headers, shared.card).into_response()
}

async fn idle() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let opened = stream::iter([Ok(Event::default().id("1").data("{\"open\":true}"))]);
    Sse::new(opened.chain(stream::pending())).keep_alive(every_15_seconds())
}

fn every_15_seconds() -> KeepAlive {
    KeepAlive::new().interval(Duration::from_secs(15))
}
