//! A webhook receiver that answers as a script says and remembers what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Response, Uri};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::support::ports::lasting_address;

/// What is done with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Answer(u16),
    /// With these headers.
    With(u16, Vec<(&'static str, String)>),
    /// The token of a challenge is given back.
    Echo,
    /// After a while.
    Slow(u16, Duration),
    /// Nothing, for as long as anybody waits.
    Hang,
    /// A head that says 200 and a body that breaks off.
    BreakOff,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) at: Instant,
    /// The status it was answered with, if it was.
    pub(crate) answered: Option<u16>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.header("a2a-event-seq").parse().unwrap()
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.header("a2a-event-attempt").parse().unwrap()
    }
}

type Script = Box<dyn FnMut(&Got) -> Act + Send>;

struct Inside {
    script: Mutex<Script>,
    got: Mutex<Vec<Got>>,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    inside: Arc<Inside>,
    serving: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn new(script: impl FnMut(&Got) -> Act + Send + 'static) -> Self {
        Self::on(TcpListener::bind(lasting_address()).await.unwrap(), script)
    }

    pub(crate) fn on(listener: TcpListener, script: impl FnMut(&Got) -> Act + Send + 'static) -> Self {
        let inside = Arc::new(Inside { script: Mutex::new(Box::new(script)), got: Mutex::default() });
        let address = listener.local_addr().unwrap();
        // A task after a million pieces has more bytes than axum takes by itself.
        let app = axum::Router::new().fallback(receive).with_state(Arc::clone(&inside)).layer(DefaultBodyLimit::disable());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, inside, serving }
    }

    /// Takes everything.
    pub(crate) async fn kind() -> Self {
        Self::new(|_| Act::Answer(200)).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn now_does(&self, script: impl FnMut(&Got) -> Act + Send + 'static) {
        *self.inside.script.lock().unwrap() = Box::new(script);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.inside.got.lock().unwrap().clone()
    }

    /// What was answered with 2xx.
    pub(crate) fn taken(&self) -> Vec<Got> {
        self.got().into_iter().filter(|got| got.answered.is_some_and(|status| (200..300).contains(&status))).collect()
    }

    /// Waits until so many were taken.
    pub(crate) async fn has_taken(&self, count: usize) -> Vec<Got> {
        crate::support::patience::soon("notifications arrive", async || Some(self.taken()).filter(|got| got.len() >= count)).await
    }

    pub(crate) async fn has_got(&self, count: usize) -> Vec<Got> {
        crate::support::patience::soon("requests arrive", async || Some(self.got()).filter(|got| got.len() >= count)).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(State(inside): State<Arc<Inside>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let path = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let got = Got { path, headers, body, at: Instant::now(), answered: None };
    let act = (inside.script.lock().unwrap())(&got);
    let place = {
        let mut all = inside.got.lock().unwrap();
        all.push(got);
        all.len() - 1
    };
    let answer = |status: u16| {
        inside.got.lock().unwrap()[place].answered = Some(status);
        Response::builder().status(status)
    };
    let response = match act {
        Act::Answer(status) => answer(status).body(Body::empty()),
        Act::With(status, headers) => {
            let response = headers.into_iter().fold(answer(status), |response, (name, value)| response.header(name, value));
            response.body(Body::from("as told"))
        }
        Act::Echo => {
            let token = uri.query().and_then(|query| query.rsplit_once("validationToken=")).map_or("", |(_, token)| token);
            answer(200).body(Body::from(token.to_owned()))
        }
        Act::Slow(status, time) => {
            tokio::time::sleep(time).await;
            answer(status).body(Body::empty())
        }
        Act::Hang => std::future::pending().await,
        Act::BreakOff => {
            let broken = futures::stream::iter([Ok(Bytes::from_static(b"so f"))]).chain(futures::stream::once(async {
                // The head has to be on its way before everything breaks.
                tokio::time::sleep(Duration::from_millis(100)).await;
                Err(std::io::Error::other("as told"))
            }));
            answer(200).body(Body::from_stream(broken))
        }
    };
    response.unwrap()
}
