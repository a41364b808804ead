//! Opens many streams and holds them until its input ends.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Args;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::reply::BenchReply;
use crate::request::{self, RequestKind};

/// What the child says once all subscriptions are open.
pub(crate) const OPEN: &str = "open";

#[derive(Debug, Clone, Args)]
pub(crate) struct HoldCommand {
    /// `http://HOST:PORT` of Chancery, or with the path of a stream to read
    #[arg(long)]
    url: String,
    #[arg(short = 'n', long, default_value_t = 10_000)]
    subscriptions: usize,
    /// Subscriptions that share one parked task
    #[arg(long, default_value_t = 100)]
    per_task: usize,
    /// Send this as a message each, and hold the streams that answer; their tasks are cancelled at the end
    #[arg(long)]
    text: Option<String>,
    /// Give up opening after so many seconds
    #[arg(long, default_value_t = 120.0)]
    at_most: f64,
}

/// Opens all, says so, and returns when standard input has ended.
pub(crate) async fn hold(options: &HoldCommand) -> Result<()> {
    let at_most = Duration::try_from_secs_f64(options.at_most)?;
    let held =
        tokio::time::timeout(at_most, open_all(options)).await.with_context(|| format!("not all open after {at_most:?}"))??;
    println!("{OPEN} {}", held.len());
    let mut rest = Vec::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_to_end(&mut rest)).await??;
    if options.text.is_some() {
        cancel_all(&options.url, &held).await?;
    }
    drop(held);
    Ok(())
}

/// A stream that stays open.
struct HeldStream {
    _stream: TcpStream,
    first: Vec<u8>,
}

async fn open_all(options: &HoldCommand) -> Result<Vec<HeldStream>> {
    let (address, path) = request::address_and_path(&options.url, RequestKind::Send)?;
    let mut requests = Vec::new();
    if let Some(text) = &options.text {
        requests.push(request::bytes(RequestKind::Stream, &address, &path, text));
    } else if path == "/" {
        for _ in 0..options.subscriptions.div_ceil(options.per_task) {
            let id = park(&address).await?;
            let params = json!({ "id": id });
            requests.push(request::call(&address, "/", "SubscribeToTask", &params));
        }
    } else {
        requests.push(request::get(&address, &path));
    }
    stream::iter(0..options.subscriptions)
        .map(|number| open(&address, requests[number % requests.len()].clone()))
        .buffer_unordered(64)
        .try_collect()
        .await
}

/// Makes a task that waits for input, and gives its id.
async fn park(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let call = request::call(address, "/", "SendMessage", &request::message("ask ?"));
    stream.write_all(&call).await?;
    let mut reply = BenchReply::new();
    reply.read_whole(&mut stream).await?;
    let answer: Value = serde_json::from_slice(reply.body())?;
    let task = &answer["result"]["task"];
    ensure!(task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", "the task is not parked: {answer}");
    Ok(task["id"].as_str().context("no task id")?.to_owned())
}

/// A task goes on when nobody watches it any more, so it is told to stop.
async fn cancel_all(url: &str, held: &[HeldStream]) -> Result<()> {
    let (address, path) = request::address_and_path(url, RequestKind::Stream)?;
    let mut stream = TcpStream::connect(&address).await?;
    let mut reply = BenchReply::new();
    for held in held {
        let first = std::str::from_utf8(&held.first)?;
        let data = first.lines().find_map(|line| line.strip_prefix("data:")).context("no event")?;
        let event: Value = serde_json::from_str(data)?;
        let id = event["result"]["task"]["id"].as_str().with_context(|| format!("no task: {event}"))?;
        stream.write_all(&request::call(&address, &path, "CancelTask", &json!({ "id": id }))).await?;
        reply.read_whole(&mut stream).await?;
        let answer = String::from_utf8_lossy(reply.body());
        ensure!(answer.contains("TASK_STATE_CANCELED"), "the task does not stop: {answer}");
    }
    Ok(())
}

async fn open(address: &str, request: Bytes) -> Result<HeldStream> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    stream.write_all(&request).await?;
    let mut reply = BenchReply::with_capacity(4096);
    reply.read_first_event(&mut stream).await?;
    ensure!(reply.status() == 200, "status {}", reply.status());
    Ok(HeldStream { _stream: stream, first: reply.body().to_vec() })
}
