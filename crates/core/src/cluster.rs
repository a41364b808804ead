//! The port to the other nodes that share a store: leases, who works on a task, wake-ups and forwarded calls.
//!
//! The store is all that nodes share. A node has a lease in it, by the time of the database. A task has at most one
//! *holder*: the node that works on it. The store refuses an append to a task that another node holds.

mod cascading;
mod following;
mod forwarded_request;
mod forwarding;
pub(crate) mod holding;
mod lease;
mod leaving;
pub(crate) mod membership;
mod placing;
pub(crate) mod received;
mod succession;

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;
use chancery_protocol::TaskId;

use crate::{StoreError, Stored};

/// The number of one start of a node. A node that starts again gets another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(pub i64);

impl fmt::Display for NodeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Which node works on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskHolder {
    /// This node works on the task.
    ThisNode,
    /// This other node works on the task.
    OtherNode(NodeNumber),
    /// The task has ended, waits for its caller, or was released by a node that shut down.
    Nobody,
}

/// What the database answered to the renewal of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseRenewal {
    /// The lease has its full length again.
    Renewed(LeaseNews),
    /// The lease had ended, and another node is the successor. This node has to join again.
    TakenOver {
        /// The node that has the tasks now.
        by: NodeNumber,
    },
}

/// What a node learns when it renews its lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseNews {
    /// Nodes whose lease has ended and that have no successor yet. Empty while this node's own lease is younger than one
    /// lease: after an outage of the database all nodes get to renew first.
    pub expired: Vec<NodeNumber>,
    /// Nodes that this node succeeds and of whose tasks some are left to take.
    pub inherited: Vec<NodeNumber>,
    /// Whether a task waits that a node released when it shut down, for any node to take.
    pub has_released_tasks: bool,
    /// Whether a wake-up may have been lost: all tasks that this node watches have to be read again.
    pub missed_wakeups: bool,
    /// Whether a call that another node forwarded to this one waits.
    pub has_forwarded_calls: bool,
}

/// Why the loop of wake-ups goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// These watched tasks have entries up to these numbers.
    Tasks(Vec<(TaskId, u64)>),
    /// The connection was lost in between: all watched tasks have to be read again.
    Missed,
    /// Another node has forwarded a call to this one.
    ForwardedCall,
    /// A call that this node forwarded has been answered, or its task has another holder.
    ForwardedAnswer(ForwardedCallNumber),
    /// The store was closed.
    Closed,
}

/// The number of a forwarded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForwardedCallNumber(pub i64);

/// A call for a task that another node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedCall {
    /// The task that the call is for.
    pub task: TaskId,
    /// The node that holds the task.
    pub to: NodeNumber,
    /// The call in the form of `core`, sealed: the store does not read it.
    pub body: Vec<u8>,
}

/// A forwarded call at the node that it was forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedCall {
    /// The number that the answer names.
    pub number: ForwardedCallNumber,
    /// The node that forwarded the call.
    pub from: NodeNumber,
    /// The task that the call is for.
    pub task: TaskId,
    /// The call in the form of `core`, sealed.
    pub body: Vec<u8>,
}

/// What has become of a forwarded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardedCallState {
    /// The other node has not answered yet.
    Waiting,
    /// The answer in the form of `core`, sealed.
    Answered(Vec<u8>),
    /// The task has another holder by now, and the call was not made. The node that forwarded it looks again who holds the task.
    Moved,
}

/// The answer to a forwarded call, written in the transaction of the append that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// The call that this answers.
    pub number: ForwardedCallNumber,
    /// The answer in the form of `core`, sealed.
    pub body: Vec<u8>,
}

/// The nodes that share a store. A store that only one node can use has none.
#[async_trait]
pub trait Cluster: Send + Sync + Debug {
    /// This start of this node.
    fn this_node(&self) -> NodeNumber;

    /// How long a lease lasts after its renewal.
    fn lease(&self) -> Duration;

    /// Renews this node's lease. To be called several times in a lease.
    async fn renew(&self) -> Result<LeaseRenewal, StoreError>;

    /// Makes this node the successor of one whose lease has ended, and keeps everything out that the other still sends.
    /// Answers whether this node is the successor.
    async fn succeed(&self, expired: NodeNumber) -> Result<bool, StoreError>;

    /// Takes at most `limit` tasks of a node that this one succeeds. None are left when the answer is empty.
    async fn take_inherited(&self, expired: NodeNumber, limit: usize) -> Result<Vec<Stored>, StoreError>;

    /// Takes at most `limit` tasks that nodes released when they shut down.
    async fn take_released(&self, limit: usize) -> Result<Vec<Stored>, StoreError>;

    /// Which node works on a task. None if the task is not kept.
    async fn holder(&self, task: &TaskId) -> Result<Option<TaskHolder>, StoreError>;

    /// Takes a task that no node holds and that has not ended. Answers who holds it then. None if the task is not kept.
    async fn take(&self, task: &TaskId) -> Result<Option<TaskHolder>, StoreError>;

    /// Lets go of a task that this node holds, because no turn works on it any more. With `to_resume` another node is to go
    /// on with its turn.
    async fn release(&self, task: &TaskId, to_resume: bool) -> Result<(), StoreError>;

    /// Asks for wake-ups about a task from now on, until it ends. To be called before the task is read: no entry is
    /// missed then.
    async fn watch(&self, task: &TaskId) -> Result<(), StoreError>;

    /// Waits for news. One flow calls it, in a loop.
    async fn next_wakeup(&self) -> Wakeup;

    /// Leaves a call for the node that holds its task. None if that node does not hold it any more.
    async fn forward(&self, call: ForwardedCall) -> Result<Option<ForwardedCallNumber>, StoreError>;

    /// Looks what has become of a call.
    async fn forwarded(&self, number: ForwardedCallNumber) -> Result<ForwardedCallState, StoreError>;

    /// Takes a call back that still waits. Answers whether it did: otherwise it is being answered.
    async fn withdraw_forwarded(&self, number: ForwardedCallNumber) -> Result<bool, StoreError>;

    /// The calls that wait for this node, oldest first.
    async fn received_calls(&self, limit: usize) -> Result<Vec<ReceivedCall>, StoreError>;

    /// Answers a call that no append is about. Answers whether the call still waited.
    async fn answer(&self, answer: CallAnswer) -> Result<bool, StoreError>;

    /// Releases all that this node holds and ends its lease. To be called before the store is closed.
    async fn leave(&self) -> Result<(), StoreError>;
}
