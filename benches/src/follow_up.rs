//! Tasks that ask back, made before the load, so that its messages go on with them.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::load::{Load, excerpt};
use crate::reply::BenchReply;
use crate::request;

/// Makes as many tasks as the load wants with `first`, in turn, over all connections. Answers a message for each of them.
pub(crate) async fn to_tasks(load: &Load, first: &[Bytes], streams: &mut [TcpStream]) -> Result<Vec<Bytes>> {
    ensure!(load.tasks > 0, "follow-ups need --tasks");
    let connections = streams.len();
    let making = streams.iter_mut().enumerate().map(|(place, stream)| async move {
        let mut made = Vec::new();
        for number in (place..load.tasks).step_by(connections) {
            let task = make(&first[number % first.len()], stream).await?;
            made.push(request::follow_up(&load.address, &load.path, &load.text, &task));
        }
        Ok::<_, anyhow::Error>(made)
    });
    Ok(try_join_all(making).await?.into_iter().flatten().collect())
}

async fn make(first: &Bytes, stream: &mut TcpStream) -> Result<String> {
    let mut reply = BenchReply::new();
    stream.write_all(first).await.context("writing")?;
    reply.read_whole(stream).await?;
    let answer: Value = serde_json::from_slice(reply.body()).unwrap_or_default();
    let id = answer["result"]["task"]["id"].as_str();
    Ok(id.with_context(|| format!("no task was made: {}", excerpt(&reply)))?.to_owned())
}
