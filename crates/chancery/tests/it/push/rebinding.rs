//! Webhooks whose name leads elsewhere the next time: the engine and the courier over a resolver that lies. Only the public address is ever spoken to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chancery_core::notify::{Engine, EngineConfig, EngineParts, Notary, NotifyConfig};
use chancery_core::push::{Lane, LaneFilter, LaneState, Outbox, PushLimits, PushParts, SealedSecret, SecretBytes, Vault};
use chancery_core::{
    Agent, Agents, Chancery, ChanceryParts, Dedupe, Finished, RetentionConfig, Rulebook, RunError, SystemClock, TaskLimits,
    TaskRunner, TaskUpdateSink, Turn,
};
use chancery_outbound::guard::{Dial, Dialled, Guard, GuardConfig, Resolve, SystemDialer};
use chancery_outbound::push::{Challenge, CourierConfig, GuardedTargets, HttpCourier, OriginSecrets};
use chancery_protocol::{AgentCard, Message, PushConfig, Request, Role, SendConfiguration, SendMessage, Timestamp};
use chancery_store::MemoryStore;
use chancery_testkit::{PlainSeal, call_context};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::raw::{Raw, read_request};
use crate::support::certificates::Signer;
use crate::support::patience::soon;

const PUBLIC: &str = "93.184.216.34";
const INSIDE: [&str; 8] =
    ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "0.0.0.0"];

/// A name server without a cache in between: `answers` by name and by how often that name was asked for before.
#[derive(Debug)]
struct Names {
    answers: fn(&str, usize) -> Vec<&'static str>,
    asked: Mutex<std::collections::HashMap<String, usize>>,
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.entry(name.to_owned()).or_default();
        *before += 1;
        Ok((self.answers)(name, *before - 1).iter().map(|text| text.parse().unwrap()).collect())
    }
}

/// The public address is our receiver; everything else is really dialled, so that the canary would know.
#[derive(Debug)]
struct Roads {
    receiver: SocketAddr,
    elsewhere: AtomicUsize,
}

#[async_trait]
impl Dial for Roads {
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled> {
        if address.ip() == PUBLIC.parse::<IpAddr>().unwrap() {
            let stream = TcpStream::connect(self.receiver).await?;
            return Ok(Dialled { stream: Box::new(stream), peer: address });
        }
        self.elsewhere.fetch_add(1, Ordering::SeqCst);
        SystemDialer.dial(address).await
    }
}

struct Completes;

#[async_trait]
impl TaskRunner for Completes {
    async fn run(&self, _: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        Ok(updates.complete(None))
    }
}

/// These registrations have no secrets.
#[derive(Debug)]
struct Empty;

impl Vault for Empty {
    fn current(&self) -> Arc<str> {
        "none".into()
    }

    fn seal(&self, _: &[u8], _: &[u8]) -> SealedSecret {
        SealedSecret { kek_id: "none".into(), bytes: Vec::new().into() }
    }

    fn open(&self, _: &[u8], _: &SealedSecret) -> Option<SecretBytes> {
        None
    }
}

impl Notary for Empty {
    fn digest(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn sign(&self, _: &[u8], _: Timestamp) -> Option<String> {
        None
    }
}

struct DeliverySetup {
    chancery: Chancery,
    engine: Arc<Engine>,
    outbox: Arc<dyn Outbox>,
    canary: Raw,
    /// Kept, so that it goes on.
    _receiver: Raw,
    told: Arc<AtomicUsize>,
    roads: Arc<Roads>,
    names: Arc<Names>,
}

impl DeliverySetup {
    /// A receiver at the public address that answers this, in TLS, and hangs up; a canary on the loopback at the port of every URL.
    async fn new(answer: &'static str, answers: fn(&str, usize) -> Vec<&'static str>) -> Self {
        let signer = Signer::new("authority");
        let home = tempfile::tempdir().unwrap();
        let ca_file = home.path().join("ca.pem");
        std::fs::write(&ca_file, signer.pem()).unwrap();
        let told = Arc::<AtomicUsize>::default();
        let receiver = receiver(&signer, answer, Arc::clone(&told)).await;
        let roads = Arc::new(Roads { receiver: receiver.address, elsewhere: AtomicUsize::new(0) });
        let names = Arc::new(Names { answers, asked: Mutex::default() });
        let config = CourierConfig::default();
        let rules = config.guard(&GuardConfig { ca_file: Some(ca_file), ..GuardConfig::default() });
        let guard = Guard::with_ports(rules, &[], names.clone(), roads.clone()).unwrap();
        let store = Arc::new(MemoryStore::new());
        let outbox: Arc<dyn Outbox> = store.clone();
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        let agent = Agent {
            name: "agent".into(),
            card: Arc::new(card),
            extended: None,
            runner: Arc::new(Completes),
            exposed: true,
            enforces_input_modes: true,
        };
        let chancery = Chancery::new(ChanceryParts {
            agents: Agents::new(agent),
            store,
            clock: Arc::new(SystemClock),
            seal: Arc::new(PlainSeal),
            limits: TaskLimits::default(),
            retention: RetentionConfig::default(),
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: Some(PushParts {
                outbox: Arc::clone(&outbox),
                vault: Arc::new(Empty),
                targets: Arc::new(GuardedTargets::new(guard.clone(), Arc::default(), Challenge::Off)),
                limits: PushLimits::default(),
                show_secrets: false,
                snapshot: false,
            }),
        });
        let courier = HttpCourier::new(guard, config, Arc::default(), OriginSecrets::default(), "https://us.example/".to_owned());
        let notify = NotifyConfig { schedule_s: vec![0, 1, 1], barrier_ms: 0, ..NotifyConfig::default() };
        let config = EngineConfig { notify, ..EngineConfig::default() };
        let parts = EngineParts { courier: Arc::new(courier), notary: Arc::new(Empty), vault: Arc::new(Empty), config };
        let engine = Engine::new(&chancery, parts).unwrap();
        let canary = Raw::canary().await;
        Self { chancery, engine, outbox, canary, _receiver: receiver, told, roads, names }
    }

    async fn task(&self, name: &str) {
        let url = format!("https://{name}:{}/hook", self.canary.address.port());
        let config = PushConfig { tenant: None, id: None, task_id: None, url, token: None, authentication: None };
        let send = SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, name, "go")),
            configuration: SendConfiguration {
                task_push_notification_config: Some(Box::new(config)),
                ..SendConfiguration::default()
            },
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        };
        self.chancery.call(&call_context(), Request::SendMessage(send)).await.unwrap();
    }

    async fn lanes(&self) -> Vec<Lane> {
        self.outbox.lanes(&LaneFilter::default(), 0, 100).await.unwrap().lanes
    }

    /// Delivers until every lane is done or off.
    async fn settled(&self) -> Vec<Lane> {
        self.engine.start(&self.chancery);
        let look = async || {
            let lanes = self.lanes().await;
            lanes.iter().all(|lane| lane.cursor.state != LaneState::Active || !lane.cursor.is_pending()).then_some(lanes)
        };
        soon("every lane comes to rest", look).await
    }
}

async fn receiver(signer: &Signer, answer: &'static str, told: Arc<AtomicUsize>) -> Raw {
    let signed = signer.named(&["*.hooks.example"]);
    let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Raw::new(move |stream| {
        let (acceptor, told) = (acceptor.clone(), Arc::clone(&told));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            if read_request(&mut stream).await {
                told.fetch_add(1, Ordering::SeqCst);
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    })
    .await
}

fn blocked(lane: &Lane) -> bool {
    matches!(lane.cursor.state, LaneState::Disabled(reason) if reason.as_str() == "blocked_address")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_was_public_and_then_leads_inside_is_not_followed() {
    // The first attempt is refused by the receiver, so that the name is asked for again.
    let setup = DeliverySetup::new("503 Later", |name, before| match before {
        0 => vec![PUBLIC],
        _ => vec![INSIDE[name.trim_start_matches('n').trim_end_matches(".hooks.example").parse::<usize>().unwrap()]],
    })
    .await;
    for number in 0..INSIDE.len() {
        setup.task(&format!("n{number}.hooks.example")).await;
    }
    let lanes = setup.settled().await;
    assert!(lanes.iter().all(blocked), "{lanes:?}");
    assert_eq!(setup.told.load(Ordering::SeqCst), INSIDE.len(), "each was sent once, to the public address");
    assert!(setup.names.asked.lock().unwrap().values().all(|times| *times == 2));
    assert_eq!((setup.canary.came(), setup.roads.elsewhere.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_mixed_addresses_only_the_public_one_is_told() {
    let setup = DeliverySetup::new("200 OK", |_, _| [&INSIDE[..], &[PUBLIC], &INSIDE[..]].concat()).await;
    setup.task("mixed.hooks.example").await;
    let lanes = setup.settled().await;
    assert!(lanes.iter().all(|lane| lane.cursor.state == LaneState::Active && !lane.cursor.is_pending()), "{lanes:?}");
    assert_eq!(setup.told.load(Ordering::SeqCst), 2);
    assert_eq!((setup.canary.came(), setup.roads.elsewhere.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_for_something_inside_is_judged_by_where_it_ends() {
    // What a resolver answers for an alias: the addresses at its end.
    let setup = DeliverySetup::new("200 OK", |name, _| {
        vec![INSIDE[name.trim_start_matches("alias").trim_end_matches(".hooks.example").parse::<usize>().unwrap()]]
    })
    .await;
    for number in 0..INSIDE.len() {
        setup.task(&format!("alias{number}.hooks.example")).await;
    }
    // A dot at the end of the name changes nothing.
    setup.task("alias0.hooks.example.").await;
    let lanes = setup.settled().await;
    assert!(lanes.len() == INSIDE.len() + 1 && lanes.iter().all(blocked), "{lanes:?}");
    assert_eq!((setup.told.load(Ordering::SeqCst), setup.canary.came(), setup.roads.elsewhere.load(Ordering::SeqCst)), (0, 0, 0));
}
