//! Chancery as a library: its router mounted in an axum app, served the way the yardstick is.

use std::path::PathBuf;

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use chancery::{Config, Node, new_card};
use clap::Args;

use crate::parrot::Parrot;
use crate::yardstick;

#[derive(Debug, Clone, Args)]
pub(crate) struct Mounted {
    #[arg(long)]
    listen: String,
    #[arg(long)]
    config: PathBuf,
}

/// Serves until the process is ended.
pub(crate) async fn serve(options: &Mounted) -> Result<()> {
    let node = Node::builder()
        .agent("parrot", new_card("Parrot", "Says what it was told."), Parrot)
        .config(Config::load(&options.config)?)
        .memory()
        .build()
        .await?;
    let app = Router::new().route("/about", get(|| async { "an app of its own" })).merge(node.router());
    yardstick::listen(&options.listen, app).await
}
