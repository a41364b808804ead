//! Doors of a small control plane, served on a port of the loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use chancery_core::{Chancery, Finished, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_identity::KeyRing;
use chancery_identity::credentials::{ApiKeyRecord, Authenticator, CallerRecord, Callers, Checks, KeyHash};
use chancery_inbound::{DoorSettings, Doors, DoorsHandle, InboundLimits, serve};
use chancery_protocol::Timestamp;
use chancery_store::MemoryStore;
use chancery_testkit::plane;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The key of the one caller that a closed node knows.
pub(crate) const KEY: &str = "the-key-of-the-planner";

/// A node that stops when it is dropped.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    chancery: Chancery,
    handle: DoorsHandle,
    turns: Arc<AtomicUsize>,
    stop: CancellationToken,
}

/// Counts its turns, and completes every task.
struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl TaskRunner for Counting {
    async fn run(&self, _: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(updates.complete(None))
    }
}

impl Node {
    /// A node that asks nobody for credentials.
    pub(crate) async fn open(limits: InboundLimits) -> Self {
        Self::start(settings(limits)).await
    }

    /// A node that knows one caller, by its key.
    pub(crate) async fn closed(limits: InboundLimits) -> Self {
        Self::start(DoorSettings { authenticator: one_caller(), ..settings(limits) }).await
    }

    pub(crate) async fn start(settings: DoorSettings) -> Self {
        let turns = Arc::<AtomicUsize>::default();
        let chancery = plane(Arc::new(MemoryStore::new()), Counting(Arc::clone(&turns)), TaskLimits::default());
        let doors = Doors::new(chancery.clone(), settings, &KeyRing::default()).expect("without keys no card is signed");
        let handle = DoorsHandle::new(doors);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let (address, stop) = (listener.local_addr().expect("an address"), CancellationToken::new());
        tokio::spawn(serve(listener, None, handle.clone(), stop.clone()));
        Self { address, chancery, handle, turns, stop }
    }

    /// What a reload does: the same node with other settings, for requests that come from now on.
    pub(crate) fn reload(&self, settings: DoorSettings) {
        let renewed = self.handle.doors().renewed(settings, &self.chancery.agents(), &KeyRing::default());
        self.handle.replace(renewed.expect("without keys no card is signed"));
    }

    /// How often the agent was run.
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::SeqCst)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Nothing set that a test does not set.
pub(crate) fn settings(limits: InboundLimits) -> DoorSettings {
    DoorSettings {
        public_url: "http://agents.example:7420".to_owned(),
        listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
        hosts: Vec::new(),
        every_host: false,
        tls: false,
        headerless: Default::default(),
        limits,
        json: Default::default(),
        admin_routes: Default::default(),
        authenticator: Authenticator::open(),
        signposts: Default::default(),
        swp: Default::default(),
    }
}

pub(crate) fn one_caller() -> Authenticator {
    let mut planner = CallerRecord::new("planner");
    planner.keys.push(ApiKeyRecord { hash: KeyHash::of(KEY), made_at: Timestamp::from_micros(0), expires_at: None });
    let callers = Callers::new(vec![planner]).expect("one caller with one key");
    Authenticator::new(Checks::new(Arc::new(ArcSwap::from_pointee(callers))))
}
