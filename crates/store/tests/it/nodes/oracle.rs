//! What the agents of all nodes saw, counted by the test itself: who ran which turn, and which message was put to the agent elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chancery_core::{AfterRestart, Finished, Link, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Artifact, Message, Part, Role, TaskId};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Oracle {
    running: Mutex<HashMap<TaskId, usize>>,
    /// Turns that began while another one of the same task ran.
    two_runners: AtomicUsize,
    /// By the text of the message: the nodes that ran its turn.
    turns: Mutex<BTreeMap<String, Vec<&'static str>>>,
    /// By the text of the message: how often it was put to the agent elsewhere.
    asked: Mutex<BTreeMap<String, usize>>,
    /// How often the task of the agent elsewhere was followed from its link.
    followed: AtomicUsize,
    /// Held turns go on when this is set.
    gate: watch::Sender<bool>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Oracle {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::default(),
            two_runners: AtomicUsize::new(0),
            turns: Mutex::default(),
            asked: Mutex::default(),
            followed: AtomicUsize::new(0),
            gate: watch::Sender::new(false),
        })
    }

    /// Lets held turns go on.
    pub(super) fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    async fn wait(&self) {
        let _ = self.gate.subscribe().wait_for(|open| *open).await;
    }

    pub(super) fn two_runners(&self) -> usize {
        self.two_runners.load(Ordering::SeqCst)
    }

    pub(super) fn followed(&self) -> usize {
        self.followed.load(Ordering::SeqCst)
    }

    /// The nodes that ran the turn of a message.
    pub(super) fn turns_of(&self, text: &str) -> Vec<&'static str> {
        guard(&self.turns).get(text).cloned().unwrap_or_default()
    }

    /// How often each message was put to the agent elsewhere.
    pub(super) fn asked(&self) -> BTreeMap<String, usize> {
        guard(&self.asked).clone()
    }

    fn begin(self: &Arc<Self>, task: &TaskId) -> Running {
        let mut running = guard(&self.running);
        let count = running.entry(task.clone()).or_default();
        *count += 1;
        if *count > 1 {
            self.two_runners.fetch_add(1, Ordering::SeqCst);
        }
        Running { oracle: Arc::clone(self), task: task.clone() }
    }
}

struct Running {
    oracle: Arc<Oracle>,
    task: TaskId,
}

impl Drop for Running {
    fn drop(&mut self) {
        *guard(&self.oracle.running).get_mut(&self.task).expect("it began") -= 1;
    }
}

/// An agent of one node. The first word of a message says what it does: `work N NAME` makes N artifacts, `ask NAME` asks back, `hold
/// NAME` waits for the gate or a cancel after one artifact, `authorize N NAME` waits for the gate while it is auth-required and goes on by
/// itself, `sign-in NAME` ends its turn auth-required, `parent NAME` lets the agent `helper`
/// ask back in a task below its own, and waits for a cancel.
#[derive(Debug)]
pub(super) struct LocalAgent {
    pub(super) node: &'static str,
    pub(super) oracle: Arc<Oracle>,
}

#[async_trait]
impl TaskRunner for LocalAgent {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let _running = self.oracle.begin(&turn.task.id);
        let text = turn.message.first_text().unwrap_or_default().to_owned();
        guard(&self.oracle.turns).entry(text.clone()).or_default().push(self.node);
        let mut words = text.split(' ');
        match words.next() {
            Some("ask") => {
                updates.working(None).await?;
                let question = updates.text("what?");
                return Ok(updates.input_required(question));
            }
            Some("hold") => {
                updates.artifact(Artifact::new("begun", vec![Part::text("begun")])).await?;
                tokio::select! {
                    () = self.oracle.wait() => {}
                    () = turn.cancelled.cancelled() => return Ok(updates.canceled()),
                }
            }
            Some("parent") => {
                let message = Message::text(Role::User, "m-child", "ask child");
                turn.delegation.call("helper", message).await.map_err(|error| RunError::new(error.message.into_owned()))?;
                turn.cancelled.cancelled().await;
                return Ok(updates.canceled());
            }
            Some("sign-in") => {
                let question = updates.text("sign in");
                return Ok(updates.auth_required(question));
            }
            Some("authorize") => {
                let question = updates.text("sign in");
                let waiting = updates.await_authorization(question).await?;
                self.oracle.wait().await;
                updates = waiting.go_on();
                updates.working(None).await?;
            }
            _ => {}
        }
        let pieces = words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
        for piece in 0..pieces {
            updates.artifact(Artifact::new(format!("{text}-{piece}"), vec![Part::text("piece")])).await?;
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        Ok(updates.complete(None))
    }
}

/// The runner of an agent that works elsewhere. It puts each message to it once, and follows its task from the link after that.
#[derive(Debug)]
pub(super) struct RelayingAgent(pub(super) LocalAgent);

#[async_trait]
impl TaskRunner for RelayingAgent {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let LocalAgent { node, oracle } = &self.0;
        let _running = oracle.begin(&turn.task.id);
        let text = turn.message.first_text().unwrap_or_default().to_owned();
        guard(&oracle.turns).entry(text.clone()).or_default().push(node);
        match (turn.resumed, &turn.link) {
            (true, None) => return Err(RunError::new("the agent had not answered; send the message again")),
            (true, Some(_)) => drop(oracle.followed.fetch_add(1, Ordering::SeqCst)),
            (false, _) => {
                *guard(&oracle.asked).entry(text.clone()).or_default() += 1;
                let task = TaskId::new(format!("there-{}", turn.task.id));
                updates.link(Link { peer: "elsewhere".into(), task: Some(task), context: None });
                updates.working(None).await?;
            }
        }
        oracle.wait().await;
        updates.artifact(Artifact::new("answer", vec![Part::text("from elsewhere")])).await?;
        Ok(updates.complete(None))
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Resume
    }

    fn keeps_links(&self) -> bool {
        true
    }
}
