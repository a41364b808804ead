//! A node that breaks its promise: it answers before its store has committed. The crash test has to find it out.
#![allow(clippy::print_stdout, reason = "a program says where it is")]

use std::path::PathBuf;
use std::sync::Arc;

use chancery::agents::BuiltIn;
use chancery::{Config, Node};
use chancery_testkit::HookedStore;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Nobody is to be turned away here: limits have tests of their own.
const CONFIG: &str = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("say the data folder")?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let agent = BuiltIn::Conformance;
    let config = Config::parse(CONFIG).map_err(|faults| format!("{faults:?}"))?;
    let builder = Node::builder().shared_agent("conformance", agent.card(), agent.runner()).config(config).sqlite(folder);
    let builder = builder.wrap_store(|store| Arc::new(HookedStore::answering_before_commit(store)));
    let node = builder.public_url(&url).build().await?;
    println!("{url}\n");
    node.serve(listener, CancellationToken::new()).await;
    Ok(())
}
