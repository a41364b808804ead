//! The slim wire as its peers see it: frames in, frames out, and connections that close.

mod again;
mod chain;
mod commands;
mod cuts;
mod door;
mod large;
mod policy;
mod secure;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chancery_protocol::{Message, Role, SendMessage};
use chancery_wire::swp::codec::{Envelope, FramePayload, Profile, Reader, Received, SwpLimits, Timestamps, a2a, obs};
use chancery_wire::swp::{Convention, Given, write_task};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::patience::BOUND;
use crate::support::server::{Server, Setup};
use crate::support::wire_client::swp::address;

/// A node with the conformance agent, and the echo agent beside it, that listens for SWP. More settings of `[swp]` follow.
fn node(settings: &str) -> Server {
    let config = format!(
        "[agents.conformance]\nrun = 'conformance'\n[agents.echo]\nrun = 'echo'\n[swp]\nlisten = '127.0.0.1:0'\n{settings}\n"
    );
    let home = crate::support::server::Home::new();
    let data = home.data();
    Setup::in_home(&home).args(["--memory", "--data"]).args([data]).config(&config).start()
}

/// The frame of a task that is a whole message of A2A.
pub(crate) fn telling(task_id: &str, words: &str) -> Bytes {
    Peer::over(tokio::io::empty()).telling(task_id, words, None).encode(&SwpLimits::default()).expect("fits")
}

/// Answers of half a kilobyte that no two ends of a connection have room for.
const MANY: usize = 40_000;

/// Waits until the node no longer has the connection of a peer that reads nothing: then it takes nothing any more.
async fn is_cut_off<S: AsyncRead + AsyncWrite + Unpin>(peer: &mut Peer<S>) {
    crate::support::patience::soon("the node has closed", async || {
        let sent = async {
            peer.line.write_all(&[0]).await?;
            peer.line.flush().await
        };
        tokio::time::timeout(Duration::from_millis(50), sent).await.is_ok_and(|sent| sent.is_err()).then_some(())
    })
    .await;
}

/// A peer that says exactly what it is told to.
struct Peer<S = TcpStream> {
    line: S,
    reader: Reader,
    sent: u64,
}

impl Peer {
    async fn of(node: &Server) -> Self {
        let (authority, _) = address(node.url()).await;
        Self::over(TcpStream::connect(authority).await.expect("the node listens"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn over(line: S) -> Self {
        let answers = SwpLimits { duplicate_window_ms: 0, max_frames_per_window: u32::MAX, ..SwpLimits::default() };
        Self { line, reader: Reader::new(answers), sent: 0 }
    }

    /// An envelope of its own for every message.
    fn envelope(&mut self, profile: Profile, msg_type: u64, payload: Bytes) -> Envelope {
        self.sent += 1;
        Envelope::new(profile, msg_type, Bytes::from(format!("message-{:08}", self.sent)), 0, payload)
    }

    async fn put(&mut self, envelope: &Envelope) {
        let wide = SwpLimits {
            max_frame_bytes: u32::MAX,
            max_payload_bytes: u32::MAX,
            max_ext_bytes: u32::MAX,
            max_msg_id_bytes: u32::MAX,
            min_msg_id_bytes: 0,
            ..SwpLimits::default()
        };
        let frame = envelope.encode(&wide).expect("can be written");
        // A node that has closed already takes nothing; whoever listens next notices.
        let _ = self.line.write_all(&frame).await;
    }

    async fn say(&mut self, message: &a2a::A2aMessage) {
        let envelope = self.envelope(Profile::A2a, message.msg_type(), message.to_payload());
        self.put(&envelope).await;
    }

    /// A task whose input is declared.
    async fn give(&mut self, task_id: &str, kind: &str, input: &str, convention: Option<Convention>) {
        let message = task(task_id, kind, input);
        let mut envelope = self.envelope(Profile::A2a, message.msg_type(), message.to_payload());
        envelope.extensions = Given { convention, ..Given::default() }.to_extensions();
        self.put(&envelope).await;
    }

    /// A task that is a whole message of A2A, for a new task or for the one it names.
    async fn tell(&mut self, task_id: &str, words: &str, goes_on_with: Option<&str>) {
        let envelope = self.telling(task_id, words, goes_on_with);
        self.put(&envelope).await;
    }

    fn telling(&mut self, task_id: &str, words: &str, goes_on_with: Option<&str>) -> Envelope {
        let mut message = Message::text(Role::User, format!("message of {task_id}"), words);
        message.task_id = goes_on_with.map(Into::into);
        let (tenant, metadata, client_task_id) = Default::default();
        let (message, configuration, unknown) = (Arc::new(message), Default::default(), Default::default());
        let send = SendMessage { tenant, message, configuration, metadata, client_task_id, unknown };
        let task_id = Bytes::copy_from_slice(task_id.as_bytes());
        let (task, given) = write_task(&send, task_id, "conformance".to_owned(), true).expect("can be said");
        let message = a2a::A2aMessage::Task(task);
        let mut envelope = self.envelope(Profile::A2a, message.msg_type(), message.to_payload());
        envelope.extensions = given.to_extensions();
        envelope
    }

    /// The next frame; none once the node has closed.
    async fn hear(&mut self) -> Option<Received> {
        let hearing = async {
            loop {
                if let Some(body) = self.reader.next_frame().expect("whole frames") {
                    return Some(self.reader.read(body, Timestamps::Ignored, 0).expect("a frame that can be read"));
                }
                let mut more = BytesMut::with_capacity(4096);
                match self.line.read_buf(&mut more).await {
                    Ok(read) if read > 0 => self.reader.push(&more),
                    _ => return None,
                }
            }
        };
        tokio::time::timeout(BOUND, hearing).await.expect("something comes of it")
    }

    async fn report(&mut self) -> a2a::A2aMessage {
        match self.hear().await.expect("the node has more to say").payload {
            FramePayload::A2a(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Words of all events, then the result.
    async fn outcome(&mut self) -> (Vec<String>, a2a::TaskResult) {
        let mut words = Vec::new();
        loop {
            match self.report().await {
                a2a::A2aMessage::Event(event) => words.push(format!("{}{}", event.message, text(&event.event_payload))),
                a2a::A2aMessage::Result(result) => return (words, result),
                other => panic!("{other:?}"),
            }
        }
    }

    /// All reports up to the result of that task.
    async fn until(&mut self, task_id: &str) -> Vec<a2a::A2aMessage> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.report().await);
            if let Some(a2a::A2aMessage::Result(result)) = heard.last()
                && result.task_id == task_id
            {
                return heard;
            }
        }
    }

    /// Asks for its trace so often that the answers fit into no socket, and reads none of them.
    async fn ask_for_much(&mut self) {
        let set = obs::ObsMessage::Set(obs::TraceContext {
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
            tracestate: format!("a={}", "x".repeat(500)),
            ..obs::TraceContext::default()
        });
        let get = obs::ObsMessage::Get(obs::GetTraceContext { include_current: true });
        let mut frames = BytesMut::new();
        for message in std::iter::once(&set).chain(std::iter::repeat_n(&get, MANY)) {
            let envelope = self.envelope(Profile::Obs, message.msg_type(), message.to_payload());
            frames.extend_from_slice(&envelope.encode(&SwpLimits::default()).expect("fits"));
        }
        let _ = tokio::time::timeout(BOUND, self.line.write_all(&frames)).await;
    }

    async fn is_closed(&mut self) -> bool {
        self.hear().await.is_none()
    }
}

fn task(task_id: &str, kind: &str, input: &str) -> a2a::A2aMessage {
    let (task_id, input) = (Bytes::copy_from_slice(task_id.as_bytes()), Bytes::copy_from_slice(input.as_bytes()));
    a2a::A2aMessage::Task(a2a::SwpTaskMessage { task_id, kind: kind.to_owned(), input })
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
