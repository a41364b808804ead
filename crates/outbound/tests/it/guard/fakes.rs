//! A resolver and a dialer that do as told and write down what they were asked.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chancery_outbound::guard::{Dial, Dialled, Guard, GuardConfig, Resolve, Stream};

type BoxedDial = Pin<Box<dyn Future<Output = io::Result<Dialled>> + Send>>;
type Answers = dyn Fn(&str, usize) -> io::Result<Vec<IpAddr>> + Send + Sync;
type Dials = dyn Fn(SocketAddr) -> BoxedDial + Send + Sync;

pub(crate) struct Names {
    answers: Box<Answers>,
    asked: AtomicUsize,
}

impl Names {
    /// `answers` gets the name and how many look-ups came before.
    pub(crate) fn new(answers: impl Fn(&str, usize) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answers: Box::new(answers), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn always(addresses: &[&str]) -> Arc<Self> {
        let addresses = ips(addresses);
        Self::new(move |_, _| Ok(addresses.clone()))
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        (self.answers)(name, self.asked.fetch_add(1, Ordering::SeqCst))
    }
}

pub(crate) struct Dialer {
    dials: Box<Dials>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Dialer {
    pub(crate) fn new<F>(dials: impl Fn(SocketAddr) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = io::Result<Dialled>> + Send + 'static,
    {
        Arc::new(Self { dials: Box::new(move |address| Box::pin(dials(address))), dialled: Mutex::default() })
    }

    /// Refuses everything.
    pub(crate) fn closed() -> Arc<Self> {
        Self::new(async |_| Err(io::ErrorKind::ConnectionRefused.into()))
    }

    /// Whatever is asked for, the stream ends at `to`, and the dialer claims to have reached what was asked for.
    pub(crate) fn leading_to(to: SocketAddr) -> Arc<Self> {
        Self::new(move |asked| async move {
            let stream = tokio::net::TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(Dialled { stream: Box::new(stream), peer: asked })
        })
    }

    /// Streams inside this process, served by `serve`: no socket, so that paused time works.
    pub(crate) fn in_memory<F>(serve: impl Fn(Box<dyn Stream>) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::new(move |peer| {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(serve(Box::new(theirs)));
            std::future::ready(Ok(Dialled { stream: Box::new(ours), peer }))
        })
    }

    pub(crate) fn dialled(&self) -> Vec<SocketAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}

#[async_trait]
impl Dial for Dialer {
    async fn dial(&self, address: SocketAddr) -> io::Result<Dialled> {
        self.dialled.lock().unwrap().push(address);
        (self.dials)(address).await
    }
}

pub(crate) fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

pub(crate) fn guard(config: GuardConfig, names: &Arc<Names>, dialer: &Arc<Dialer>) -> Guard {
    Guard::with_ports(config, &[], names.clone(), dialer.clone()).unwrap()
}

/// The real network, open to plain http on the loopback.
pub(crate) fn loopback() -> GuardConfig {
    GuardConfig { allow_http: true, allow_nets: vec!["127.0.0.0/8".parse().unwrap()], ..GuardConfig::default() }
}
