//! A network of receivers that do as a script says, and remember what they were told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::notify::{
    AttemptAnswer, Courier, DeliveryOutcome, FailClass, Letter, Notary, RetryAfter, Span, Try, WebhookDelivery, WebhookPayload,
};
use chancery_core::push::{OpenSecrets, Registration};
use chancery_protocol::{Task, TaskEvent, Timestamp};
use tokio::time::Instant;

/// What a receiver does with one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Answer(u16),
    /// With a `Retry-After` of so many seconds.
    Later(u16, u64),
    /// An answer after a while.
    Slow(u16, Duration),
    /// It takes the request and breaks the connection off before it answers.
    TakeAndReset,
    Reset,
    /// Nothing for as long as an exchange may take.
    Hang,
    Blocked,
}

/// One request, as the receiver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) lane: u64,
    pub(crate) id: Arc<str>,
    pub(crate) body: Arc<[u8]>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) attempt: u32,
    pub(crate) replay: bool,
    pub(crate) at: Instant,
    pub(crate) taken: bool,
    pub(crate) answered: bool,
}

type Script = Box<dyn FnMut(&Registration, u64, Try) -> Act + Send>;

/// The longest an exchange may take, as the engine is told.
pub(crate) const EXCHANGE: Duration = Duration::from_secs(15);

pub(crate) struct Network {
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
    tasks: Mutex<HashMap<Arc<str>, Arc<Task>>>,
    events: Mutex<HashMap<Arc<str>, TaskEvent>>,
    under_way: Mutex<HashMap<u64, u32>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

impl Network {
    pub(crate) fn new(script: impl FnMut(&Registration, u64, Try) -> Act + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Box::new(script)),
            seen: Mutex::default(),
            tasks: Mutex::default(),
            events: Mutex::default(),
            under_way: Mutex::default(),
        })
    }

    /// Everybody takes everything.
    pub(crate) fn kind() -> Arc<Self> {
        Self::new(|_, _, _| Act::Answer(200))
    }

    pub(crate) fn now_does(&self, script: impl FnMut(&Registration, u64, Try) -> Act + Send + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn taken(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.taken).collect()
    }

    /// The task that a letter held.
    pub(crate) fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.tasks.lock().unwrap().get(id).cloned()
    }

    pub(crate) fn event(&self, id: &str) -> Option<TaskEvent> {
        self.events.lock().unwrap().get(id).cloned()
    }

    pub(crate) fn under_way(&self) -> u32 {
        self.under_way.lock().unwrap().values().sum()
    }
}

/// `LANE FROM TO KIND`, and what it holds.
fn body(delivery: &WebhookDelivery) -> String {
    let WebhookDelivery { registration, from, span: Span { to, kind }, payload, .. } = delivery;
    format!("{} {from} {to} {} {payload:?}", registration.lane, kind.as_str())
}

/// Takes one away when the exchange is over, also if it was broken off.
struct UnderWay<'a>(&'a Network, u64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        *self.0.under_way.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

#[async_trait]
impl Courier for Network {
    fn write(&self, delivery: &WebhookDelivery) -> Letter {
        let WebhookDelivery { registration, from, span, payload, .. } = delivery;
        let id: Arc<str> = format!("msg_{}_{}_{}_{}", registration.lane, from, span.to, span.kind.as_str()).into();
        match payload {
            WebhookPayload::Task(task) => drop(self.tasks.lock().unwrap().insert(Arc::clone(&id), Arc::clone(task))),
            WebhookPayload::Event(entry) => drop(self.events.lock().unwrap().insert(Arc::clone(&id), entry.event.clone())),
        }
        Letter { webhook_id: id, body: Arc::from(body(delivery).as_bytes()), headers: Vec::new() }
    }

    async fn deliver(&self, registration: &Registration, _: &OpenSecrets, letter: &Letter, how: Try) -> DeliveryOutcome {
        let mut numbers = std::str::from_utf8(&letter.body).unwrap().split(' ').map(|word| word.parse().unwrap_or(0));
        let (lane, from, to) = (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
        let act = (self.script.lock().unwrap())(registration, to, how);
        {
            let mut under_way = self.under_way.lock().unwrap();
            let here = under_way.entry(lane).or_default();
            *here += 1;
            assert!(*here == 1 || how.replay, "two deliveries of lane {lane} at once");
        }
        let _one = UnderWay(self, lane);
        let place = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(Seen {
                lane,
                id: Arc::clone(&letter.webhook_id),
                body: Arc::clone(&letter.body),
                from,
                to,
                attempt: how.attempt,
                replay: how.replay,
                at: Instant::now(),
                taken: false,
                answered: false,
            });
            seen.len() - 1
        };
        tokio::task::yield_now().await;
        let answered = |status, retry_after| {
            let mut seen = self.seen.lock().unwrap();
            seen[place].answered = true;
            seen[place].taken = (200..300).contains(&status);
            DeliveryOutcome { answer: AttemptAnswer::Answered { status, retry_after }, error: None, receipt: None }
        };
        let failed =
            |class| DeliveryOutcome { answer: AttemptAnswer::Failed(class), error: Some("as told".into()), receipt: None };
        match act {
            Act::Answer(status) => answered(status, None),
            Act::Later(status, seconds) => answered(status, Some(RetryAfter::In(Duration::from_secs(seconds)))),
            Act::Slow(status, time) => {
                tokio::time::sleep(time).await;
                answered(status, None)
            }
            Act::TakeAndReset => {
                self.seen.lock().unwrap()[place].taken = true;
                failed(FailClass::Reset)
            }
            Act::Reset => failed(FailClass::Reset),
            Act::Hang => {
                tokio::time::sleep(EXCHANGE).await;
                failed(FailClass::Timeout)
            }
            Act::Blocked => DeliveryOutcome { answer: AttemptAnswer::Blocked, error: Some("as told".into()), receipt: None },
        }
    }
}

/// Signs with a word. The chain is what is tested here.
#[derive(Debug)]
pub(crate) struct Stamp;

impl Notary for Stamp {
    fn digest(&self, content: &[u8]) -> [u8; 32] {
        let mut digest = [0_u8; 32];
        for (place, byte) in content.iter().enumerate() {
            digest[place % 32] = digest[place % 32].rotate_left(3) ^ byte;
        }
        digest
    }

    fn sign(&self, _: &[u8], _: Timestamp) -> Option<String> {
        Some("stamped".to_owned())
    }
}
