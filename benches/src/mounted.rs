//! Chancery as a library: its router mounted in an axum app, served the way the yardstick is.

use std::path::{Path, PathBuf};

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
    let node = node(&options.config).await?;
    let app = Router::new().route("/about", get(|| async { "an app of its own" })).merge(node.router());
    yardstick::listen(&options.listen, app).await
}

async fn node(config: &Path) -> Result<Node> {
    let builder = Node::builder().agent("parrot", new_card("Parrot", "Says what it was told."), Parrot);
    Ok(builder.config(Config::load(config)?).memory().build().await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::{Setting, StoreKind, mounted_config};

    #[tokio::test]
    async fn the_node_takes_the_config_of_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let setting = Setting { store: StoreKind::Memory, agent: "echo", retained: 1_000 };
        node(&mounted_config(folder.path(), setting).unwrap()).await.unwrap();
    }
}
