//! What is tried again: only what cannot have arrived.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chancery_outbound::client::{CallConditions, WasSent};
use chancery_outbound::guard::{Dial, Dialled, Resolve, SystemDialer};
use chancery_outbound::{AgentClient, ClientError, ClientLimits, Guard, GuardConfig, Interface, RateLimit};
use chancery_protocol::{Binding, Operation, Version};

use super::agent::{Answer, ScriptedAgent, conditions};
use super::samples::{Speaks, reply, request};

/// Refuses to dial so many times, then dials.
#[derive(Debug)]
struct Flaky {
    refusals: usize,
    dials: AtomicUsize,
}

#[async_trait]
impl Dial for Flaky {
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled> {
        match self.dials.fetch_add(1, Ordering::SeqCst) {
            dial if dial < self.refusals => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            _ => SystemDialer.dial(address).await,
        }
    }
}

#[derive(Debug)]
struct NoNames;

#[async_trait]
impl Resolve for NoNames {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
}

fn behind(dialer: Arc<Flaky>, agent: &ScriptedAgent, (version, binding): (Version, Binding), retries: u32) -> AgentClient {
    let config = GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true, ..GuardConfig::default() };
    let guard = Guard::with_ports(config, &[], Arc::new(NoNames), dialer).unwrap();
    let interface = Interface { url: agent.url.clone(), binding, version, tenant: None };
    let limits = ClientLimits { retries, retry_pause_ms: 1, ..ClientLimits::default() };
    AgentClient::new(&guard, interface, limits).unwrap()
}

#[tokio::test]
async fn a_call_that_was_not_sent_is_tried_again_as_often_as_allowed_and_executed_once() {
    for speaks in Speaks::ALL {
        for (refusals, retries) in [(0, 0), (2, 2), (3, 2), (1, 0)] {
            let version = speaks.0;
            let agent = ScriptedAgent::start(speaks, move |asked| Answer::Reply(reply(version, asked.operation()))).await;
            let dialer = Arc::new(Flaky { refusals, dials: AtomicUsize::new(0) });
            let client = behind(dialer.clone(), &agent, speaks, retries as u32);
            let outcome = client.call(&request(version, Operation::SendMessage), &conditions()).await;
            let dials = dialer.dials.load(Ordering::SeqCst);
            if refusals > retries {
                let fault = outcome.unwrap_err();
                assert_eq!(fault.sent(), WasSent::No, "{speaks:?}: {fault:?}");
                assert_eq!((dials, agent.seen().len()), (retries + 1, 0), "{speaks:?} {refusals} {retries}");
            } else {
                outcome.unwrap();
                assert_eq!((dials, agent.seen().len()), (refusals + 1, 1), "{speaks:?} {refusals} {retries}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trying_again_stops_at_the_deadline() {
    let config = GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true, ..GuardConfig::default() };
    let dialer = Arc::new(Flaky { refusals: usize::MAX, dials: AtomicUsize::new(0) });
    let guard = Guard::with_ports(config, &[], Arc::new(NoNames), dialer.clone()).unwrap();
    let interface =
        Interface { url: "http://127.0.0.1:4000/".into(), binding: Binding::JsonRpc, version: Version::V1_0, tenant: None };
    let limits = ClientLimits { retries: 1_000, retry_pause_ms: 100, ..ClientLimits::default() };
    let client = AgentClient::new(&guard, interface, limits).unwrap();
    let start = tokio::time::Instant::now();
    let brief = CallConditions { deadline: Some(Duration::from_millis(1_000)), ..conditions() };
    let fault = client.call(&request(Version::V1_0, Operation::GetTask), &brief).await.unwrap_err();
    assert_eq!(fault.sent(), WasSent::No, "{fault:?}");
    // 0, 100, 300, 700; the next would be at 1500.
    assert_eq!((dialer.dials.load(Ordering::SeqCst), start.elapsed()), (4, Duration::from_millis(700)));
}

/// Dials that never come to an end.
#[derive(Debug)]
struct Endless;

#[async_trait]
impl Dial for Endless {
    async fn dial(&self, _: SocketAddr) -> io::Result<Dialled> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn reaching_an_agent_takes_its_own_limit_and_no_longer() {
    let config = GuardConfig { allow_nets: vec!["127.0.0.0/8".parse().unwrap()], allow_http: true, ..GuardConfig::default() };
    let guard = Guard::with_ports(config, &[], Arc::new(NoNames), Arc::new(Endless)).unwrap();
    for (url, binding) in [("http://127.0.0.1:4000/", Binding::JsonRpc), ("127.0.0.1:4000", Binding::Grpc)] {
        let interface = Interface { url: url.into(), binding, version: Version::V1_0, tenant: None };
        let limits = ClientLimits { retries: 0, ..ClientLimits::default() };
        let client = AgentClient::new(&guard, interface, limits).unwrap();
        let start = tokio::time::Instant::now();
        let fault = client.call(&request(Version::V1_0, Operation::GetTask), &conditions()).await.unwrap_err();
        assert_eq!((fault.sent(), start.elapsed().as_secs()), (WasSent::No, 10), "{fault:?}");
    }
}

#[tokio::test]
async fn the_rate_limit_holds_for_all_clones_together() {
    let speaks = (Version::V1_0, Binding::JsonRpc);
    let agent = ScriptedAgent::start(speaks, |asked| Answer::Reply(reply(Version::V1_0, asked.operation()))).await;
    let rate_limit = RateLimit { per_second: 1, burst: 3 };
    let client = agent.client_with(ClientLimits { rate_limit, queue_ms: 0, ..ClientLimits::default() });
    let asked = request(Version::V1_0, Operation::GetTask);
    for _ in 0..3 {
        client.clone().call(&asked, &conditions()).await.unwrap();
    }
    let fault = client.call(&asked, &conditions()).await.unwrap_err();
    assert!(matches!(fault, ClientError::Busy { limit: "rate_limit", retry_after: Some(_) }), "{fault:?}");
    assert_eq!((fault.sent(), agent.seen().len()), (WasSent::No, 3));
}

#[tokio::test]
async fn open_streams_are_counted_until_they_are_dropped() {
    let speaks = (Version::V1_0, Binding::Rest);
    let agent = ScriptedAgent::start(speaks, |_| Answer::Events(vec![super::agent::Step::Pause(Duration::from_secs(60))])).await;
    let client = agent.client_with(ClientLimits { streams: 1, queue_ms: 0, ..ClientLimits::default() });
    let asked = request(Version::V1_0, Operation::SubscribeToTask);
    let first = client.stream(&asked, &conditions()).await.unwrap();
    let fault = client.stream(&asked, &conditions()).await.unwrap_err();
    assert!(matches!(fault, ClientError::Busy { limit: "streams", .. }), "{fault:?}");
    drop(first);
    client.stream(&asked, &conditions()).await.unwrap();
}
