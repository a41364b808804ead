//! A scripted agent on the loopback: it reads calls with the codecs of its version and answers what the script says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chancery_outbound::client::{CallConditions, ClientLimits};
use chancery_outbound::{AgentClient, Guard, GuardConfig, Interface};
use chancery_protocol::{Binding, Error, Operation, Reply, Request, TaskEvent, TraceId, Version};
pub(crate) use chancery_wire::json::codecs::codec;
use chancery_wire::json::methods;
use chancery_wire::{Codec, Frames, JsonLimits, errors, json_rpc, rest, scan};
use http::{HeaderMap, Method, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::grpc_agent::Services;
use super::samples::face;

pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// What the agent answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Reply(Reply),
    Refusal(Error),
    Events(Vec<Step>),
}

/// What happens on a stream, one after the other.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Event(TaskEvent),
    /// A comment, where the wire has comments.
    Heartbeat,
    Pause(Duration),
    Fail(Error),
    /// The connection breaks.
    Cut,
}

pub(crate) type Script = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Behaviour {
    pub(crate) version: Version,
    pub(crate) binding: Binding,
    pub(crate) script: Script,
    pub(crate) seen: Arc<Mutex<Vec<(Request, HeaderMap)>>>,
}

impl Behaviour {
    /// Notes the call and asks the script.
    pub(crate) fn answer(&self, request: Request, headers: HeaderMap) -> Answer {
        let answer = (self.script)(&request);
        self.seen.lock().unwrap().push((request, headers));
        answer
    }
}

pub(crate) struct ScriptedAgent {
    behaviour: Behaviour,
    pub(crate) url: String,
}

impl ScriptedAgent {
    pub(crate) async fn start(
        (version, binding): (Version, Binding),
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let behaviour = Behaviour { version, binding, script: Arc::new(script), seen: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let services = Services::new(&behaviour);
        let serving = behaviour.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (behaviour, services) = (serving.clone(), services.clone());
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let (behaviour, services) = (behaviour.clone(), services.clone());
                        async move {
                            Ok::<_, Infallible>(match behaviour.binding {
                                Binding::Grpc => services.call(request).await,
                                _ => answer_http(&behaviour, request).await,
                            })
                        }
                    });
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let url = match binding {
            Binding::Grpc => address.to_string(),
            _ => format!("http://{address}/agent"),
        };
        Self { behaviour, url }
    }

    pub(crate) fn client(&self) -> AgentClient {
        self.client_with(ClientLimits::default())
    }

    pub(crate) fn client_with(&self, limits: ClientLimits) -> AgentClient {
        let Behaviour { version, binding, .. } = self.behaviour;
        client(&self.url, (version, binding), limits)
    }

    /// What arrived so far.
    pub(crate) fn seen(&self) -> Vec<(Request, HeaderMap)> {
        self.behaviour.seen.lock().unwrap().clone()
    }
}

pub(crate) fn client(url: &str, (version, binding): (Version, Binding), limits: ClientLimits) -> AgentClient {
    let tenant = (version == Version::V1_0).then(|| "acme corp".to_owned());
    AgentClient::new(&loopback(), Interface { url: url.to_owned(), binding, version, tenant }, limits).unwrap()
}

/// A guard that lets us call this machine, and nothing else that is not public. Made once, because it reads the system's roots.
pub(crate) fn loopback() -> Guard {
    static GUARD: OnceLock<Guard> = OnceLock::new();
    let make = || {
        let allow_nets = vec!["127.0.0.0/8".parse().unwrap()];
        Guard::new(GuardConfig { allow_nets, allow_http: true, ..GuardConfig::default() }, &[]).unwrap()
    };
    GUARD.get_or_init(make).clone()
}

pub(crate) fn conditions() -> CallConditions {
    CallConditions::new(TraceId(0xfeed))
}

async fn answer_http(behaviour: &Behaviour, request: http::Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = scan(&body, &JsonLimits::default()).unwrap().to_owned();
    let (id, operation, params) = match behaviour.binding {
        Binding::JsonRpc => {
            assert_eq!((head.method, head.uri.path()), (Method::POST, "/agent"));
            let call = json_rpc::open(&text, 256).unwrap_or_else(|fault| panic!("{:?}", fault.error));
            let operation = Operation::ALL.into_iter().find(|one| methods::name(behaviour.version, *one) == Some(&*call.method));
            (call.id.to_owned(), operation.expect("a method of this version"), call.params.to_owned())
        }
        _ => {
            let path = head.uri.path().strip_prefix("/agent").expect("below the interface's URL");
            let verb = match head.method {
                Method::GET => rest::Verb::Get,
                Method::DELETE => rest::Verb::Delete,
                _ => rest::Verb::Post,
            };
            let rest::Found::Call(call) = rest::find(verb, path) else { panic!("no such path: {path}") };
            assert_eq!(call.version, behaviour.version);
            (String::new(), call.operation, call.params(head.uri.query(), &text).unwrap())
        }
    };
    let codec = codec(behaviour.version, behaviour.binding);
    let request = codec.decode_request(operation, &params).unwrap_or_else(|fault| panic!("{fault}: {params}"));
    write(behaviour, codec, &id, behaviour.answer(request, head.headers))
}

fn write(behaviour: &Behaviour, codec: &'static dyn Codec, id: &str, answer: Answer) -> Response<Body> {
    let (version, wrapped) = (behaviour.version, behaviour.binding == Binding::JsonRpc);
    let (status, bytes) = match answer {
        Answer::Events(steps) => return events(behaviour, codec, id, steps),
        Answer::Reply(reply) if wrapped => (200, json_rpc::respond(id, |out| codec.encode_reply(out, &reply))),
        Answer::Reply(reply) => {
            let mut out = Vec::new();
            codec.encode_reply(&mut out, &reply);
            (200, out)
        }
        Answer::Refusal(error) if wrapped => (200, errors::json_rpc(&error, version, id)),
        Answer::Refusal(error) => (errors::http_status(error.kind, version), errors::rest(&error, version)),
    };
    let body = Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
}

fn events(behaviour: &Behaviour, codec: &'static dyn Codec, id: &str, steps: Vec<Step>) -> Response<Body> {
    let (version, wrapped) = (behaviour.version, behaviour.binding == Binding::JsonRpc);
    let id = id.to_owned();
    let steps: VecDeque<(u64, Step)> = (1..).zip(steps).collect();
    let parts = futures::stream::unfold(steps, move |mut steps| {
        let id = id.clone();
        async move {
            let (number, step) = steps.pop_front()?;
            let mut frames = if wrapped { Frames::json_rpc(&id) } else { Frames::bare() };
            frames.set_event_id(number);
            match step {
                Step::Event(event) => codec.encode_event(&mut frames, &face(version), &event),
                Step::Heartbeat => frames.comment("still here"),
                Step::Pause(pause) => tokio::time::sleep(pause).await,
                Step::Fail(error) if wrapped => frames.error(&errors::json_rpc(&error, version, &id)),
                Step::Fail(error) => frames.error(&errors::rest(&error, version)),
                Step::Cut => return Some((Err("cut".into()), steps)),
            }
            Some((Ok(Frame::data(Bytes::from(frames.take()))), steps))
        }
    });
    let body = StreamBody::new(parts).boxed_unsync();
    Response::builder().header("content-type", "text/event-stream; charset=utf-8").body(body).unwrap()
}
