//! Senders and readers that go on until the server is gone, and keep a journal of everything they were told.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::chance::Chance;
use crate::support::line::{Beside, Event, Gone, Line};

/// How much all clients together were told since the server started: what the moment of a kill is counted in.
#[derive(Clone, Debug)]
pub(super) struct Tally(Arc<watch::Sender<u64>>);

impl Tally {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn one_more(&self) {
        self.0.send_modify(|told| *told += 1);
    }

    pub(super) async fn reaches(&self, told: u64) {
        // The sender is held here, so this only ends when it is reached.
        let _ = self.0.subscribe().wait_for(|so_far| *so_far >= told).await;
    }
}

/// A message that is sent until somebody answers, always under the same key.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) key: String,
    directive: String,
    wait: bool,
}

impl Call {
    pub(super) fn params(&self) -> Value {
        let message = json!({
            "messageId": self.key, "role": "ROLE_USER", "parts": [{ "text": self.key }],
            "metadata": { "conformance": self.directive },
        });
        json!({ "message": message, "configuration": { "returnImmediately": !self.wait } })
    }
}

/// An answer to a call, as the journal keeps it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) call: Call,
    pub(super) task: Value,
}

#[derive(Debug)]
pub(super) struct Sender {
    name: usize,
    calls: u64,
    /// Sent, not answered.
    pending: Option<Call>,
    pub(super) told: Vec<Told>,
    pub(super) complaints: Vec<String>,
    chance: Chance,
}

impl Sender {
    pub(super) fn new(name: usize, chance: Chance) -> Self {
        Self { name, calls: 0, pending: None, told: Vec::new(), complaints: Vec::new(), chance }
    }

    fn next_call(&mut self) -> Call {
        self.calls += 1;
        let key = format!("sender-{}-{}", self.name, self.calls);
        let (directive, wait) = match self.chance.within(0..=4) {
            0 => ("stream 6 3".to_owned(), false),
            1 => ("steps 3".to_owned(), true),
            2 => ("stream 4".to_owned(), true),
            3 => ("ask what now?".to_owned(), true),
            _ => (format!("complete {key}"), true),
        };
        Call { key, directive, wait }
    }

    pub(super) async fn run(mut self, line: Line, tally: Tally) -> Self {
        loop {
            let call = self.pending.take().unwrap_or_else(|| self.next_call());
            let Ok(mut answer) = line.call("SendMessage", &call.params(), Beside::key(&call.key)).await else {
                self.pending = Some(call);
                return self;
            };
            tally.one_more();
            let task = answer["result"]["task"].take();
            if task.is_null() {
                self.complaints.push(format!("{} was refused: {answer}", call.key));
                continue;
            }
            self.told.push(Told { call, task });
        }
    }
}

/// A task that is watched from its first event to its last, over as many connections as that takes.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) call: Call,
    pub(super) seen: Vec<Event>,
    /// How often the stream was taken up again after the server had been killed.
    pub(super) resumed: u64,
}

impl Watched {
    pub(super) fn task_id(&self) -> Option<&str> {
        self.seen.first().and_then(|event| event.payload["task"]["id"].as_str())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.seen.last().is_some_and(Event::ends_the_task)
    }

    /// The text of the pieces seen so far.
    pub(super) fn text(&self) -> String {
        let pieces = self.seen.iter().flat_map(|event| texts(&event.payload["artifactUpdate"]["artifact"]));
        pieces.collect()
    }
}

pub(super) fn texts(artifact: &Value) -> Vec<String> {
    let parts = artifact["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

#[derive(Debug)]
pub(super) struct Reader {
    name: usize,
    tasks: u64,
    current: Option<Watched>,
    pub(super) watched: Vec<Watched>,
    pub(super) complaints: Vec<String>,
    chance: Chance,
}

impl Reader {
    pub(super) fn new(name: usize, chance: Chance) -> Self {
        Self { name, tasks: 0, current: None, watched: Vec::new(), complaints: Vec::new(), chance }
    }

    /// What is being watched just now comes last.
    pub(super) fn journal(&self) -> impl Iterator<Item = &Watched> {
        self.watched.iter().chain(&self.current)
    }

    pub(super) async fn run(mut self, line: Line, tally: Tally) -> Self {
        loop {
            let mut watched = self.current.take().unwrap_or_else(|| self.next_task());
            let followed = self.follow(&line, &tally, &mut watched).await;
            match followed {
                Ok(()) => self.watched.push(watched),
                Err(Gone) => {
                    self.current = Some(watched);
                    return self;
                }
            }
        }
    }

    fn next_task(&mut self) -> Watched {
        self.tasks += 1;
        let (pieces, pause) = (self.chance.within(5..=40), self.chance.within(0..=12));
        let call = Call {
            key: format!("reader-{}-{}", self.name, self.tasks),
            directive: format!("stream {pieces} {pause}"),
            wait: true,
        };
        Watched { call, seen: Vec::new(), resumed: 0 }
    }

    /// Watches until the task has ended, or until the server is gone.
    async fn follow(&mut self, line: &Line, tally: &Tally, watched: &mut Watched) -> Result<(), Gone> {
        let last = watched.seen.last().map(|event| event.id);
        let opened = match (watched.task_id().map(str::to_owned), last) {
            (Some(id), Some(_)) => {
                watched.resumed += 1;
                let beside = Beside { key: None, last_event_id: last };
                line.stream("SubscribeToTask", &json!({ "id": id }), beside).await?
            }
            // Nothing was seen of it: the same message again, which must not make a second task.
            _ => line.stream("SendStreamingMessage", &watched.call.params(), Beside::key(&watched.call.key)).await?,
        };
        let mut events = match opened {
            Ok(events) => events,
            Err(refusal) => {
                self.complaints.push(format!("{} after event {last:?} was refused: {refusal}", watched.call.key));
                return Ok(());
            }
        };
        if last.is_some() {
            // A stream of 1.0 opens with the task, as it was at the last event this reader saw.
            let Some(first) = events.next().await? else { return self.cut(watched, "no first event") };
            let told: String = first.payload["task"]["artifacts"].as_array().into_iter().flatten().flat_map(texts).collect();
            if Some(first.id) != last || told != watched.text() {
                return self.cut(watched, &format!("a resumed stream opened with {first:?}"));
            }
        }
        while let Some(event) = events.next().await? {
            let expected = watched.seen.last().map_or(1, |event| event.id + 1);
            tally.one_more();
            if event.id != expected {
                return self.cut(watched, &format!("event {expected} was due, but this came: {event:?}"));
            }
            watched.seen.push(event);
        }
        if !watched.has_ended() {
            return self.cut(watched, "the stream ended in order, but before its task");
        }
        Ok(())
    }

    fn cut(&mut self, watched: &Watched, complaint: &str) -> Result<(), Gone> {
        self.complaints.push(format!("{}: {complaint}", watched.call.key));
        Ok(())
    }
}
