//! Which tasks and conversations a message may point at: its caller's own, and those that an agent was given.

use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, ContextId, Error, Message, TaskId};

use crate::find::{internal, names};
use crate::govern::node::TreeNode;
use crate::service::ChanceryInner;

impl ChanceryInner {
    /// An agent may name the conversation of a task it works on: by that it names the task it calls for.
    pub(crate) fn was_given(&self, context: &CallContext, id: &ContextId) -> bool {
        let of_task = |node: &Arc<TreeNode>| {
            node.record.context_id == *id || node.link().is_some_and(|link| link.context.as_ref() == Some(id))
        };
        self.given(context).iter().any(of_task) || self.is_own_name(context, id.as_str())
    }

    /// Whether a remote agent uses that name for a task that the caller may be working on.
    fn is_own_name(&self, context: &CallContext, name: &str) -> bool {
        !self.named_tasks(context, &self.govern.rules.load(), std::iter::once(name)).is_empty()
    }

    /// The open tasks that the caller works on, if it is an agent by its credentials or by its address.
    fn given(&self, context: &CallContext) -> Vec<Arc<TreeNode>> {
        let given =
            |agent: &AgentName| self.govern.trees.of_agent(agent, |node| node.record.owner.tenant == context.caller.tenant);
        context.standing.agent.as_ref().or(context.via.as_ref()).map(given).unwrap_or_default()
    }

    /// A message may point only at tasks of its caller, and an agent at those it was given, by its own names
    /// too. A task of another caller and a missing task give the same answer.
    pub(crate) async fn check_references(&self, context: &CallContext, message: &Message) -> Result<(), Error> {
        let given = self.given(context);
        let was_given = |id: &TaskId| {
            given.iter().any(|node| node.record.id == *id || node.link().is_some_and(|link| link.task.as_ref() == Some(id)))
        };
        for (index, id) in message.reference_task_ids.iter().enumerate() {
            if was_given(id) || self.is_own_name(context, id.as_str()) {
                continue;
            }
            let found = self.store.find(&context.caller, id.as_str(), names(context)).await.map_err(internal)?;
            if found.is_none_or(|stored| stored.progress.message_only) {
                return Err(Error::invalid_field(format!("message.referenceTaskIds[{index}]"), "is not a task of this caller"));
            }
        }
        Ok(())
    }
}
