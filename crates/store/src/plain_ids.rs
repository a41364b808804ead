//! Rejects ids and names with control characters, in every store.

use chancery_core::push::NewRegistration;
use chancery_core::{Append, Decision, Freeze, StoreError, TaskRecord};
use chancery_protocol::{TaskEvent, control_character};

/// Checks what an append would write for the first time. The names of a task that exists are its own: one from before this rule
/// has to be able to end.
pub(crate) fn check_append(append: &Append) -> Result<(), StoreError> {
    if let Some(creation) = &append.creation {
        check_task(&append.task)?;
        if let Some(idempotency) = &creation.idempotency {
            check("an idempotency key", &idempotency.key)?;
        }
    }
    if let Some(link) = &append.link {
        check("the name of a peer", &link.peer)?;
        link.task.iter().try_for_each(|task| check("the id of a peer's task", task.as_str()))?;
        link.context.iter().try_for_each(|context| check("the id of a peer's context", context.as_str()))?;
    }
    if let Some(skill) = append.governed.as_ref().and_then(|governed| governed.kinship.skill.as_deref()) {
        check("the name of a skill", skill)?;
    }
    if let Some(register) = &append.register {
        check_registration(register)?;
    }
    append.entries.iter().try_for_each(|entry| match &entry.event {
        TaskEvent::Created(task) => task.history.iter().try_for_each(|message| check_message(message.message_id.as_str())),
        TaskEvent::Said(message) | TaskEvent::Replied(message) => check_message(message.message_id.as_str()),
        TaskEvent::Status(change) => {
            change.status.message.iter().try_for_each(|message| check_message(message.message_id.as_str()))
        }
        TaskEvent::Artifact(chunk) => check("the id of an artifact", chunk.artifact.artifact_id.as_str()),
    })
}

pub(crate) fn check_registration(new: &NewRegistration) -> Result<(), StoreError> {
    check("the id of a webhook", new.registration.id.as_str())
}

pub(crate) fn check_freeze(freeze: &Freeze) -> Result<(), StoreError> {
    check("a frozen name", freeze.scope.name().unwrap_or_default())?;
    check("the name of an operator", &freeze.by)
}

pub(crate) fn check_decision(decision: &Decision) -> Result<(), StoreError> {
    check("the id of a decision", &decision.id)?;
    check("the name of a tenant", &decision.tenant)?;
    check("the name of a caller", &decision.caller)?;
    check("the name of an agent", &decision.agent)
}

fn check_task(task: &TaskRecord) -> Result<(), StoreError> {
    check("the id of a task", task.id.as_str())?;
    check("the id of a context", task.context_id.as_str())?;
    check("the name of an agent", &task.agent)?;
    check("the name of a tenant", &task.owner.tenant)?;
    check("the name of a caller", &task.owner.name)?;
    check("a client's name for a task", task.client_task_id.as_deref().unwrap_or_default())
}

fn check_message(id: &str) -> Result<(), StoreError> {
    check("the id of a message", id)
}

fn check(what: &str, text: &str) -> Result<(), StoreError> {
    match control_character(text) {
        Some(_) => Err(StoreError::new(format!("{what} has a control character and is not stored: {text:?}"))),
        None => Ok(()),
    }
}
