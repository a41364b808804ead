//! An agent elsewhere as if it were here: its words become updates of our own task, and the task is found again.

mod address;
mod ask;
mod call_plan;
mod extended;
mod follow;
mod lineage;
mod mirror;
mod notes;
mod original;
mod pool;
mod replica;
mod settings;
mod sight;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::routing::{Outcome, PeerId};
use chancery_core::{AfterRestart, Clock, Finished, Link, MicroUsd, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Error, ErrorKind};

pub use self::address::{AddressChange, AddressRules, CallableInterface, UrlPermission, callable};
pub use self::call_plan::AddressInUse;
pub use self::extended::Extended;
pub use self::follow::FollowLimits;
pub use self::notes::{AgentFacts, AgentNotes, CallFault, CallPreference, FactsKeeper};
pub use self::pool::Pool;
pub use self::replica::{Replica, ReplicaError};
pub use self::settings::{AgentSettings, StreamMode};
pub use self::sight::Seen;

use self::ask::Asked;
use self::follow::Follower;
use self::mirror::Mirror;
use self::pool::Chosen;
use self::replica::Spoken;
use crate::discovery::DiscoveryError;

/// Runs turns at one of several agents that are the same.
pub struct RemoteRunner {
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    limits: FollowLimits,
    local: Option<Arc<dyn TaskRunner>>,
}

/// A turn, and what is known of its task at the agent. Boxed wherever it is handed on: what a turn waits in is paid for by its size.
#[derive(Debug)]
struct Errand {
    turn: Turn,
    mirror: Mirror,
}

/// The peer that is this node itself. The names of all others have a mark that this one lacks.
const LOCAL: &str = "local";

impl std::fmt::Debug for RemoteRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteRunner").field("pool", &self.pool).field("local", &self.local.is_some()).finish_non_exhaustive()
    }
}

impl RemoteRunner {
    pub fn new(pool: Arc<Pool>, clock: Arc<dyn Clock>, limits: FollowLimits) -> Self {
        Self { pool, clock, limits, local: None }
    }

    /// The same with somebody here who does the work when nobody elsewhere can be asked.
    #[must_use]
    pub fn with_local(self, local: Arc<dyn TaskRunner>) -> Self {
        Self { local: Some(local), ..self }
    }

    /// Runs a turn in this node, and notes that it is here that the task goes on.
    async fn here(&self, mut turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let gone = || RunError::new("nothing runs this agent here any more; send the message again");
        let local = self.local.as_ref().ok_or_else(gone)?;
        if turn.resumed && local.after_restart() == AfterRestart::Fail {
            return Err(RunError::new("the node restarted while it worked on the task"));
        }
        let (task, context) = (Some(turn.task.id.clone()), Some(turn.task.context_id.clone()));
        updates.link(Link { peer: LOCAL.into(), task, context });
        (turn.link, turn.context_link) = (None, None);
        local.run(turn, updates).await
    }

    /// Goes on with a task that an agent has, after this node was started again.
    async fn resume(&self, errand: Box<Errand>, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let link = errand.turn.link.as_ref().filter(|link| link.task.is_some());
        let chosen = link.map(|link| self.pool.bound(&link.peer)).transpose().map_err(RunError::new)?.flatten();
        let Some(chosen) = chosen else {
            // Whether the agent ever got the message is not known, and asking again would be a second execution.
            return Err(RunError::new("the node restarted before the agent had answered; send the message again"));
        };
        let replica = Arc::clone(&chosen.replica);
        let noted = Noted::of(&self.pool, chosen);
        match self.reach(&replica).await {
            Ok(client) => {
                let mut follower = Follower::new(client, replica, errand, updates, self.limits);
                let ended = follower.go_on(None).await;
                noted.end_at(follower.outcome(&ended), follower.cost());
                ended
            }
            Err(error) => {
                noted.end(Outcome::Failed);
                Err(RunError::new(error.to_string()))
            }
        }
    }

    /// The client of an agent that has a task of ours. It may come up after this node does, so it is given time.
    async fn reach(&self, replica: &Replica) -> Result<Spoken, ReplicaError> {
        let mut misses = 0;
        loop {
            match replica.client(self.clock.now()).await {
                Err(ReplicaError::Discovery(DiscoveryError::Transport { .. })) if misses < self.limits.reconnects => {
                    tokio::time::sleep(self.limits.reconnect_pause(misses)).await;
                    misses += 1;
                }
                reached => return reached,
            }
        }
    }

    /// Puts the message to one replica after the other, until one can have seen it.
    async fn begin(&self, errand: Box<Errand>, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let Errand { turn, mirror } = &*errand;
        let bound = turn.link.as_ref().or(turn.context_link.as_ref()).map(|link| self.pool.bound(&link.peer));
        let bound = bound.transpose().map_err(RunError::new)?.flatten();
        let may_choose = bound.is_none();
        let mut tried: Vec<PeerId> = Vec::new();
        let selected = || turn.selected.as_deref().and_then(|name| self.pool.selected(name));
        let mut next = bound.or_else(selected).or_else(|| self.pool.choose(turn, &tried));
        let mut reason = "no agent can take this task just now; try again later".to_owned();
        while let Some(chosen) = next {
            let replica = Arc::clone(&chosen.replica);
            let noted = Noted::of(&self.pool, chosen);
            match ask::ask(&replica, turn, mirror, &mut updates, self.clock.now()).await {
                Asked::Answered(client, answer) => {
                    let noted = noted.answered();
                    let mut follower = Follower::new(client, replica, errand, updates, self.limits);
                    let ended = follower.go_on(Some(answer)).await;
                    noted.end_at(follower.outcome(&ended), follower.cost());
                    return ended;
                }
                // It cannot have seen the message, so another one may be asked.
                Asked::NotSeen(error) => {
                    tried.push(PeerId::new(replica.name()));
                    noted.end(Outcome::Failed);
                    reason = error;
                }
                Asked::NotPut(error) => {
                    tried.push(PeerId::new(replica.name()));
                    noted.end(Outcome::Unjudged);
                    reason = error;
                }
                Asked::Refused(error) => {
                    noted.end(Outcome::Unjudged);
                    return Err(error);
                }
                Asked::Lost(error) => {
                    noted.end(Outcome::Failed);
                    return Err(error);
                }
            }
            next = if may_choose { self.pool.choose(turn, &tried) } else { None };
        }
        if may_choose && self.local.is_some() {
            return Box::pin(self.here(errand.turn, updates)).await;
        }
        Err(RunError::not_begun(reason))
    }
}

/// A note of a call that is given back whatever happens: also when the turn is dropped half-way, because it was cancelled and
/// did not end in time.
struct Noted<'a> {
    pool: &'a Pool,
    chosen: Option<Chosen>,
}

impl<'a> Noted<'a> {
    fn of(pool: &'a Pool, chosen: Chosen) -> Self {
        Self { pool, chosen: Some(chosen) }
    }

    /// The replica has begun to answer.
    fn answered(mut self) -> Self {
        self.chosen = self.chosen.take().map(|chosen| self.pool.answered(chosen));
        self
    }

    fn end(self, outcome: Outcome) {
        self.end_at(outcome, None);
    }

    fn end_at(mut self, outcome: Outcome, cost: Option<MicroUsd>) {
        if let Some(chosen) = self.chosen.take() {
            self.pool.finish(chosen, outcome, cost);
        }
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if let Some(chosen) = self.chosen.take() {
            self.pool.finish(chosen, Outcome::Unjudged, None);
        }
    }
}

#[async_trait]
impl TaskRunner for RemoteRunner {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        if turn.link.as_ref().or(turn.context_link.as_ref()).is_some_and(|link| &*link.peer == LOCAL) {
            return Box::pin(self.here(turn, updates)).await;
        }
        let at_peer = turn.link.as_ref().and_then(|link| link.task.clone());
        let context = turn.link.as_ref().or(turn.context_link.as_ref()).and_then(|link| link.context.clone());
        let mirror = Mirror::of(&turn.task, at_peer, context);
        let errand = Box::new(Errand { turn, mirror });
        // Boxed where it is rare, here and below: what every turn has room for is paid for by every turn.
        if errand.turn.resumed { Box::pin(self.resume(errand, updates)).await } else { self.begin(errand, updates).await }
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Resume
    }

    fn select(&self, asked: &chancery_core::Asked<'_>) -> Result<Option<Arc<str>>, Error> {
        match self.pool.select(asked) {
            Some(chosen) => Ok(Some(chosen)),
            None if self.local.is_some() => Ok(Some(LOCAL.into())),
            None => Err(Error::new(ErrorKind::NoEligiblePeer, "no agent can take this task just now; try again later")),
        }
    }

    fn keeps_links(&self) -> bool {
        true
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

/// With whom a task goes on, as far as it is known.
fn link(replica: &Replica, mirror: &Mirror) -> Link {
    let (task, context) = mirror.names();
    Link { peer: Arc::clone(&replica.address().name), task, context }
}
