//! Three agents and a control plane in one process, each behind a port of its own, so that every call between them is a real one.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use chancery::config::Config;
use chancery::{Chancery, Node, new_card};
use chancery_core::spawn_watched;
use chancery_identity::credentials::{ApiKey, KeyHash};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::agents::{DemoAgent, DemoRole, ROLES};
use super::line::DemoClient;
use super::settings::{DemoAgentEntry, settings};
use crate::commands::Failure;

/// The caller that begins it all.
pub(super) const ROOT: &str = "you";

const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct DemoStage {
    plane: Arc<Node>,
    pub(super) url: Url,
    pub(super) config: Config,
    /// The root's own way to the control plane.
    pub(super) you: Arc<DemoClient>,
    stop: CancellationToken,
}

impl DemoStage {
    /// An open stage has no callers: its agents call at addresses of their own, and without keys.
    pub(super) async fn set_up(set: &[String], open: bool) -> Result<Self, Failure> {
        let keys = ROLES.iter().map(|_| new_key()).collect::<Result<Vec<_>, _>>()?;
        let own = new_key()?;
        let doors = listeners(ROLES.len()).await?;
        let listed = ROLES.iter().zip(&keys).zip(&doors).map(|((role, key), (_, url))| DemoAgentEntry {
            name: role.name,
            url: url.to_string(),
            key_hash: hash(key),
            price: role.price,
        });
        let config = settings(&listed.collect::<Vec<_>>(), (!open).then(|| (ROOT, hash(&own))), set)?;
        let (door, url) = listen(&config.node.listen.to_string()).await?;
        let stop = CancellationToken::new();
        let mut lines = Vec::new();
        for (role, door) in ROLES.into_iter().zip(doors) {
            let line = Arc::<OnceLock<DemoClient>>::default();
            serve_agent(role, Arc::clone(&line), door, &stop).await?;
            lines.push(line);
        }
        let plane = Node::builder().config(config.clone()).configured_agents().memory().public_url(url.as_str()).build().await;
        // What the demo itself says was built often enough; what was set may be no good.
        let plane = plane.map_err(|fault| match set.is_empty() {
            true => Failure::from(anyhow!(fault)),
            false => Failure::Usage(format!("--set: {fault}")),
        })?;
        let plane = Arc::new(plane);
        serve(Arc::clone(&plane), door, &stop);
        for ((role, key), line) in ROLES.iter().zip(keys).zip(lines) {
            let made = match open {
                true => {
                    let address = url.join(&format!("via/{}/", plane.chancery().agent_secret(role.name)));
                    DemoClient::new(&address.context("an address is no URL")?, None)
                }
                false => DemoClient::new(&url, Some(key)),
            };
            let _ = line.set(made.map_err(|fault| anyhow!(fault))?);
        }
        let you = Arc::new(DemoClient::new(&url, (!open).then_some(own)).map_err(|fault| anyhow!(fault))?);
        Ok(Self { plane, url, config, you, stop })
    }

    pub(super) fn plane(&self) -> &Chancery {
        self.plane.chancery()
    }

    pub(super) async fn clear(&self) {
        self.stop.cancel();
        if let Err(error) = self.plane.shut_down(PATIENCE).await {
            tracing::warn!(%error, "the node of the demo did not close its store");
        }
    }
}

/// An agent is a node of its own: it knows the control plane by its address only.
async fn serve_agent(
    role: DemoRole,
    line: Arc<OnceLock<DemoClient>>,
    door: (TcpListener, Url),
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let (listener, url) = door;
    let name = role.name;
    let mut card = new_card(name.to_uppercase(), format!("Works a little and asks {} for the rest.", role.next));
    for skill in &mut card.skills {
        skill.id = "work".to_owned();
    }
    let node = Node::builder().agent(name, card, DemoAgent { role, line }).memory().public_url(url.as_str()).build().await;
    let node = node.with_context(|| format!("cannot start agent {name}"))?;
    serve(Arc::new(node), listener, stop);
    Ok(())
}

fn serve(node: Arc<Node>, listener: TcpListener, stop: &CancellationToken) {
    let stop = stop.clone();
    spawn_watched("demo node", async move { node.serve(listener, stop).await });
}

async fn listeners(count: usize) -> Result<Vec<(TcpListener, Url)>, Failure> {
    let mut doors = Vec::new();
    for _ in 0..count {
        doors.push(listen("127.0.0.1:0").await?);
    }
    Ok(doors)
}

async fn listen(address: &str) -> Result<(TcpListener, Url), Failure> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    let address = listener.local_addr().context("a listener has no address")?;
    let url = Url::parse(&format!("http://{address}/")).context("a listener has no URL")?;
    Ok((listener, url))
}

fn new_key() -> Result<SecretString, Failure> {
    Ok(ApiKey::generate().context("cannot make a key")?)
}

fn hash(key: &SecretString) -> String {
    KeyHash::of(key.expose_secret()).to_string()
}
