//! An agent elsewhere as if it were here: its words become updates of our own task, and the task is found again.

mod ask;
mod follow;
mod mirror;
mod replica;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{AfterRestart, Clock, Finished, Link, RunError, TaskRunner, TaskUpdateSink, Turn};

pub use self::follow::FollowLimits;
pub use self::replica::{Replica, ReplicaError};

use self::ask::Asked;
use self::follow::Follower;
use self::mirror::Mirror;

/// Runs turns at one of several agents that are the same.
#[derive(Debug)]
pub struct RemoteRunner {
    replicas: Vec<Arc<Replica>>,
    clock: Arc<dyn Clock>,
    limits: FollowLimits,
    next: std::sync::atomic::AtomicUsize,
}

impl RemoteRunner {
    /// At least one replica; `None` otherwise.
    pub fn new(replicas: Vec<Arc<Replica>>, clock: Arc<dyn Clock>, limits: FollowLimits) -> Option<Self> {
        (!replicas.is_empty()).then(|| Self { replicas, clock, limits, next: Default::default() })
    }

    /// Whoever has the task, or the conversation, goes on with it. Others are tried in turn.
    fn order(&self, turn: &Turn) -> Vec<Arc<Replica>> {
        let bound = turn.link.as_ref().or(turn.context_link.as_ref());
        if let Some(link) = bound
            && let Some(owner) = self.replicas.iter().find(|replica| replica.name() == &*link.peer)
        {
            return vec![Arc::clone(owner)];
        }
        let first = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % self.replicas.len();
        self.replicas.iter().cycle().skip(first).take(self.replicas.len()).cloned().collect()
    }
}

#[async_trait]
impl TaskRunner for RemoteRunner {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let at_peer = turn.link.as_ref().and_then(|link| link.task.clone());
        let context = turn.link.as_ref().or(turn.context_link.as_ref()).and_then(|link| link.context.clone());
        let mirror = Mirror::of(&turn.task, at_peer.clone(), context);
        if turn.resumed {
            let Some(replica) = self.order(&turn).into_iter().next().filter(|_| at_peer.is_some()) else {
                // Whether the agent ever got the message is not known, and asking again would be a second execution.
                return Err(RunError::new("the node restarted before the agent had answered; send the message again"));
            };
            let client = replica.client(self.clock.now()).await.map_err(|error| RunError::new(error.to_string()))?;
            return Follower::new(client, replica, turn, mirror, updates, self.limits).go_on(None).await;
        }
        let mut reason = "there is no such agent".to_owned();
        for replica in self.order(&turn) {
            match ask::ask(&replica, &turn, &mirror, self.clock.now()).await {
                Asked::Answered(client, answer) => {
                    return Follower::new(client, replica, turn, mirror, updates, self.limits).go_on(Some(answer)).await;
                }
                // It cannot have seen the message, so another one may be asked.
                Asked::NotSeen(error) => reason = error,
                Asked::Lost(error) => return Err(RunError::new(error)),
            }
        }
        Err(RunError::new(reason))
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::Resume
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
    Link { peer: replica.name().into(), task, context }
}
