//! The demo's agents: each works a little, says what it cost, and asks others on the way, as its order says.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chancery::protocol::{Metadata, PartContent};
use chancery::{Artifact, Finished, Message, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait};
use chancery_core::MicroUsd;
use chancery_outbound::client::ClientError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::line::{DemoCall, DemoClient};

/// Long enough to be seen.
const WORK: Duration = Duration::from_millis(250);

/// The work that a message gives an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(super) enum Order {
    /// Work, and send the same work to the next agent. It has no end condition.
    HandOn { forgetful: Vec<String> },
    /// Ask the others so often, all at once.
    FanOut { calls: usize },
    /// Do one thing that costs so much.
    Job { usd: MicroUsd },
}

impl Order {
    pub(super) fn part(&self) -> Part {
        Part::data(&json!(self))
    }

    fn of(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(|part| match &part.content {
            PartContent::Data(order) => serde_json::from_str(order.text()).ok(),
            _ => None,
        })
    }
}

/// One of the three, by its place in the circle.
#[derive(Clone, Copy, Debug)]
pub(super) struct DemoRole {
    pub(super) name: &'static str,
    pub(super) next: &'static str,
    /// What the control plane sets aside for a call of it.
    pub(super) price: &'static str,
    /// What its work costs.
    pub(super) cost: MicroUsd,
}

pub(super) const ROLES: [DemoRole; 3] = [
    DemoRole { name: "a", next: "b", price: "0.01", cost: MicroUsd(7_000) },
    DemoRole { name: "b", next: "c", price: "0.008", cost: MicroUsd(6_000) },
    DemoRole { name: "c", next: "a", price: "0.006", cost: MicroUsd(5_000) },
];

/// What a job of a fan-out is expected to cost, and what it does cost.
const JOB: (MicroUsd, MicroUsd) = (MicroUsd(20_000), MicroUsd(18_000));

pub(super) struct DemoAgent {
    pub(super) role: DemoRole,
    /// To the control plane, as the agent that it is. It is there before the first call comes.
    pub(super) line: Arc<OnceLock<DemoClient>>,
}

#[async_trait]
impl TaskRunner for DemoAgent {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let Some(order) = Order::of(&turn.message) else { return Ok(updates.reject("there is no order in the message")) };
        let said = updates.text("at work");
        updates.working(Some(said)).await?;
        let work = async {
            tokio::time::sleep(WORK).await;
            updates.annotate(self.usage(&order)).await?;
            let answers = self.delegate(&turn, &order).await;
            let text = std::iter::once(format!("{} did its part", self.role.name)).chain(answers).collect::<Vec<_>>().join("\n");
            updates.artifact(Artifact::new("result", vec![Part::text(text)])).await?;
            Ok::<_, RunError>(())
        };
        let done = tokio::select! {
            done = work => Some(done),
            () = turn.cancelled.cancelled() => None,
        };
        match done {
            Some(done) => done.map(|()| updates.complete(None)),
            None => Ok(updates.canceled()),
        }
    }
}

impl DemoAgent {
    /// What the work cost, as agents report it.
    fn usage(&self, order: &Order) -> Metadata {
        let cost = match order {
            Order::Job { usd } => *usd,
            _ => self.role.cost,
        };
        let mut usage = Map::new();
        usage.insert("usage".to_owned(), json!({ "input_tokens": 120, "output_tokens": 40, "cost_usd": cost }));
        Metadata::from_object(usage)
    }

    async fn delegate(&self, turn: &Turn, order: &Order) -> Vec<String> {
        match order {
            Order::Job { .. } => Vec::new(),
            Order::HandOn { forgetful } => {
                let forgets = forgetful.iter().any(|name| name == self.role.name);
                let ask = if forgets { DemoCall::of_nobody(order.clone()) } else { DemoCall::within(turn, order.clone()) };
                vec![self.ask(self.role.next, ask).await]
            }
            Order::FanOut { calls } => {
                let others = ROLES.iter().filter(|role| role.name != self.role.name).cycle().take(*calls);
                let (expected, actual) = JOB;
                let asked = others.map(|other| {
                    let ask = DemoCall { estimate: Some(expected), ..DemoCall::within(turn, Order::Job { usd: actual }) };
                    self.ask(other.name, ask)
                });
                futures::future::join_all(asked).await
            }
        }
    }

    /// An answer or the lack of one: an agent makes do with what it gets.
    async fn ask(&self, agent: &str, ask: DemoCall) -> String {
        let Some(line) = self.line.get() else { return format!("{agent} could not be asked: the control plane is not up") };
        match line.ask(agent, ask).await {
            Ok(_) => format!("{agent} answered"),
            Err(ClientError::Refused(refusal)) => format!("{agent} was not asked: {}", refusal.message),
            Err(error) => format!("{agent} could not be asked: {error}"),
        }
    }
}

/// Keeps the debug output of an agent short.
impl std::fmt::Debug for DemoAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DemoAgent").field("role", &self.role).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery::protocol::Role as Speaker;

    #[test]
    fn an_order_is_read_from_the_message_it_was_put_into() {
        for order in
            [Order::HandOn { forgetful: vec!["b".to_owned()] }, Order::FanOut { calls: 8 }, Order::Job { usd: MicroUsd(18_000) }]
        {
            let message = Message::of_parts(Speaker::User, "m", vec![Part::text("please"), order.part()]);
            assert_eq!(Order::of(&message), Some(order));
        }
        assert_eq!(Order::of(&Message::text(Speaker::User, "m", "please")), None);
        let other = Part::data(&json!(3));
        assert_eq!(Order::of(&Message::of_parts(Speaker::User, "m", vec![other])), None);
    }

    #[test]
    fn the_circle_closes() {
        let next = |name: &str| ROLES.iter().find(|role| role.name == name).map(|role| role.next);
        assert_eq!(next("a").and_then(next).and_then(next), Some("a"));
    }
}
