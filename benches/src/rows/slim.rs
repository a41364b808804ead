//! The same task over SWP and over JSON-RPC at the same server: calls by the second, and bytes on the wire.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context, Result};
use serde_json::Value;

use super::rate::{drive, in_turn, line, setting};
use super::{Match, Row};
use crate::contestant::{Contestant, StoreKind};
use crate::figures::Figures;
use crate::report::{MeasuredRow, Unit};
use crate::request::{self, RequestKind};
use crate::server::Server;

const CONNECTIONS: &str = "64";

/// Calls by the second, beside those over JSON-RPC.
pub(super) fn throughput(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let rounds = rounds(this)?;
    Ok(line(row, &rounds, Unit::PerSecond, |figures| figures.per_second))
}

/// Octets of one call and its answer, all of them, beside those over JSON-RPC with HTTP's own.
pub(super) fn bytes(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let rounds = rounds(this)?;
    Ok(line(row, &rounds, Unit::Bytes, |figures| figures.wire_bytes as f64))
}

fn rounds(this: &Match<'_>) -> Result<Vec<[Figures; 2]>> {
    let Contestant::Chancery(program) = this.subject else { anyhow::bail!("only a built chancery speaks SWP") };
    let subject = Contestant::Slim(program.clone());
    let server = subject.start(this.ground, setting(RequestKind::Send, StoreKind::Memory))?;
    let urls = [format!("http://{}", server.address()), address(&server)?];
    let kinds = [RequestKind::Send, RequestKind::Task];
    let (seconds, warm_up) = (this.effort.seconds.to_string(), this.effort.warm_up.to_string());
    let extent = ["--connections", CONNECTIONS, "--seconds", &seconds, "--warm-up", &warm_up];
    in_turn(this.effort.rounds, |side| drive(this.ground, &urls[side], kinds[side], "hello", &server, &extent))
}

/// Where the server's card says that it is reached over SWP.
fn address(server: &Server) -> Result<String> {
    let mut stream = TcpStream::connect(server.address())?;
    let get = request::get(server.address(), "/.well-known/agent-card.json");
    let get = String::from_utf8(get.to_vec())?.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    stream.write_all(get.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    let card: Value = serde_json::from_str(body)?;
    let listed = card["supportedInterfaces"].as_array().context("a card without interfaces")?;
    let slim = listed.iter().filter_map(|one| one["url"].as_str()).find(|url| url.starts_with("swp://"));
    slim.map(str::to_owned).context("a card without SWP")
}
