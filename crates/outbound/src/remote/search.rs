//! Finds the task of a blocking call that has not been answered, by the context id that went with the call.

use std::time::Duration;

use chancery_core::Turn;
use chancery_identity::SealKey;
use chancery_protocol::{ContextId, ListTasks, Reply, Request, Task, TaskId, Version};
use uuid::Builder;

use super::replica::{Replica, ReplicaClient};
use crate::client::CallConditions;

/// How long a list of tasks may take: the task it is looked for is being stopped, or was left behind by a restart.
const WITHIN: Duration = Duration::from_secs(5);
/// Tasks of one context that are looked through.
const PAGE: i32 = 50;

/// The context id that an agent is given for a conversation it does not know yet. It is the same for every message of the
/// conversation, also after a restart, and different for every caller: two callers may use the same name for a context.
pub(super) fn given_context(turn: &Turn) -> ContextId {
    let (caller, context) = (&turn.caller, &turn.task.context_id);
    let named = format!("{}\n{}\n{}\n{}", caller.tenant.len(), caller.tenant, caller.name, context.as_str());
    let digest = SealKey::digest(named.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // In the form of a random id, because some frameworks want a UUID and look at its version.
    ContextId::new(Builder::from_random_bytes(bytes).into_uuid().hyphenated().to_string())
}

/// The agent's task for the message of this turn, if the agent lists tasks and shows which one it is.
pub(super) async fn find_task(
    replica: &Replica,
    replica_client: &ReplicaClient,
    conditions: &CallConditions,
    turn: &Turn,
    context: ContextId,
) -> Option<TaskId> {
    // Older versions have no operation that lists tasks.
    if replica_client.version != Version::V1_0 {
        return None;
    }
    let list = ListTasks { context_id: Some(context.clone()), page_size: Some(PAGE), ..ListTasks::default() };
    let hasty = CallConditions { deadline: Some(WITHIN), ..conditions.clone() };
    let page = match replica_client.client.call(&Request::ListTasks(list), &hasty).await {
        Ok(Reply::Tasks(page)) => page,
        Ok(_) => return None,
        Err(error) => {
            let url = &replica_client.client.interface().url;
            tracing::warn!(peer = replica.name(), url, task = %turn.task.id, %error, "the agent did not list the tasks of a context, so the node cannot find its task there");
            return None;
        }
    };
    let tasks: Vec<&Task> = page.tasks.iter().map(|shown| &*shown.task).filter(|task| task.context_id == context).collect();
    which_task(&tasks, turn).cloned()
}

/// The one with the message, or the only one of a conversation that began with it.
fn which_task<'a>(tasks: &[&'a Task], turn: &Turn) -> Option<&'a TaskId> {
    let has_message = |task: &&&Task| task.history.iter().any(|message| message.message_id == turn.message.message_id);
    let begins = turn.link.is_none() && turn.context_link.is_none();
    let only = || match tasks {
        [only] if begins => Some(only),
        _ => None,
    };
    tasks.iter().find(has_message).or_else(only).map(|task| &task.id)
}
