//! A runner that does what the test says when the test says it, behind a real server in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chancery::config::Config;
use chancery::{Artifact, Finished, Node, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

pub(super) enum Cue {
    Work(&'static str),
    Complete(&'static str),
}

/// What became of the runner.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// It saw that its task was cancelled and stopped by itself.
    pub(super) stopped: AtomicBool,
    /// Its turn was dropped from outside.
    pub(super) dropped: AtomicBool,
}

struct Directed {
    cues: Mutex<mpsc::UnboundedReceiver<Cue>>,
    heeds_cancel: bool,
    fate: Arc<Fate>,
}

#[async_trait]
impl TaskRunner for Directed {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        struct Turned<'a>(&'a Fate, bool);
        impl Drop for Turned<'_> {
            fn drop(&mut self) {
                self.0.dropped.store(!self.1, Ordering::SeqCst);
            }
        }
        let mut turned = Turned(&self.fate, false);
        let mut cues = self.cues.lock().await;
        loop {
            let cue = tokio::select! {
                () = turn.cancelled.cancelled(), if self.heeds_cancel => {
                    turned.1 = true;
                    self.fate.stopped.store(true, Ordering::SeqCst);
                    return Ok(updates.canceled());
                }
                cue = cues.recv() => cue.expect("the stage outlives the runner"),
            };
            match cue {
                Cue::Work(words) => {
                    let message = updates.text(words);
                    updates.working(Some(message)).await?;
                }
                Cue::Complete(words) => {
                    turned.1 = true;
                    updates.artifact(Artifact::new("result", vec![Part::text(words)])).await?;
                    return Ok(updates.complete(None));
                }
            }
        }
    }
}

/// A server whose one runner is directed from here.
pub(super) struct Stage {
    pub(super) url: String,
    pub(super) fate: Arc<Fate>,
    cues: mpsc::UnboundedSender<Cue>,
    server: JoinHandle<()>,
}

impl Stage {
    pub(super) async fn open() -> Self {
        Self::with(true, Config::default()).await
    }

    pub(super) async fn with(heeds_cancel: bool, config: Config) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (cues, waiting) = mpsc::unbounded_channel();
        let fate = Arc::new(Fate::default());
        let runner = Directed { cues: Mutex::new(waiting), heeds_cancel, fate: Arc::clone(&fate) };
        let node = Node::builder().agent("directed", new_card("Directed", "Does as it is told."), runner).memory();
        let node = node.public_url(url.as_str()).config(config).build().await.expect("a node");
        let server = tokio::spawn(async move { axum::serve(listener, node.router()).await.expect("a server") });
        Self { url, fate, cues, server }
    }

    pub(super) fn cue(&self, cue: Cue) {
        self.cues.send(cue).expect("a runner that listens");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.server.abort();
    }
}
