//! Holds what came of a step against what the story expects.

use std::sync::Arc;

use chancery_protocol::{Binding, ErrorKind, Message, Task, TaskPage, Version};

use super::lines;
use super::story::Expect;
use super::teller::Teller;
use crate::support::wire_client::{Combination, Refusal};

#[derive(Debug)]
pub(super) enum Outcome {
    Task(Arc<Task>),
    Message(Arc<Message>),
    Page(TaskPage),
    Refused(Refusal),
    Other(String),
}

pub(super) fn outcome(teller: &Teller, expect: &Expect, outcome: &Outcome) -> Result<(), String> {
    let combination = teller.client.combination;
    if let Some(name) = &expect.error {
        let Outcome::Refused(refusal) = outcome else { return Err(format!("{outcome:?} instead of {name}")) };
        let kind = ErrorKind::ALL.into_iter().find(|kind| format!("{kind:?}") == *name).ok_or("no such kind of error")?;
        refusal.check(kind, combination)?;
        return expect.field.as_ref().map_or(Ok(()), |field| refusal.check_field(field, combination));
    }
    match outcome {
        Outcome::Task(shown) => task(teller, expect, shown),
        Outcome::Message(message) => same("the reply", Some(lines::parts(&message.parts)), expect.reply.clone()),
        Outcome::Page(shown) => page(teller, expect, shown),
        Outcome::Refused(refusal) => Err(format!("refused: {refusal:?}")),
        Outcome::Other(reply) => Err(format!("an answer to something else: {reply}")),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what} is {seen:?}, not {expected:?}")) }
}

fn task(teller: &Teller, expect: &Expect, task: &Task) -> Result<(), String> {
    let version = teller.client.combination.version;
    let mut words = expect.said.as_ref();
    if let Some(reply) = &expect.reply {
        // The original knows only tasks: a message is one that is done and has said so.
        if version != Version::Original || lines::state(task.status.state) != "completed" {
            return Err(format!("a task instead of a message: {task:?}"));
        }
        words = Some(reply);
    }
    if let Some(state) = &expect.state {
        same("the state", lines::state(task.status.state).as_str(), lines::state_in(version, state))?;
    }
    if let Some(words) = words {
        let said = task.status.message.as_ref().map(|message| lines::parts(&message.parts));
        same("what the agent says", said.as_deref(), Some(words))?;
    }
    if let Some(artifacts) = &expect.artifacts {
        same("what it made", lines::artifacts(task), artifacts.clone())?;
    }
    if let Some(history) = &expect.history {
        same("the history", lines::history(task), history.clone())?;
    }
    if let Some(name) = &expect.same_as {
        same("the task", &task.id, &known(teller, name)?.id)?;
    }
    if let Some(name) = &expect.context_of {
        same("the context", &task.context_id, &known(teller, name)?.context)?;
    }
    if let Some(name) = &expect.other_than
        && known(teller, name)?.id == task.id
    {
        return Err(format!("it is the same task as {name}"));
    }
    Ok(())
}

fn known<'a>(teller: &'a Teller, name: &str) -> Result<&'a super::teller::Known, String> {
    teller.known.get(name).ok_or_else(|| format!("no step before gave a task the name {name}"))
}

fn page(teller: &Teller, expect: &Expect, page: &TaskPage) -> Result<(), String> {
    if let Some(names) = &expect.tasks {
        let expected: Result<Vec<_>, _> = names.iter().map(|name| known(teller, name).map(|known| &known.id)).collect();
        same("the page", page.tasks.iter().map(|shown| &shown.task.id).collect(), expected?)?;
    }
    if let Some(artifacts) = &expect.artifacts {
        let seen: Vec<String> = page.tasks.iter().flat_map(|shown| lines::artifacts(&shown.task)).collect();
        same("what they made", &seen, artifacts)?;
    }
    if let Some(history) = &expect.history {
        let seen: Vec<String> = page.tasks.iter().flat_map(|shown| lines::history(&shown.task)).collect();
        same("their history", &seen, history)?;
    }
    if let Some(total) = expect.total {
        same("the total", page.total_size, total)?;
    }
    if let Some(more) = expect.more {
        same("that there is more", !page.next_page_token.is_empty(), more)?;
    }
    Ok(())
}

/// Unknown methods and paths; gRPC has a code of its own for them.
pub(super) fn nothing_there(refusal: &Refusal, combination: Combination) -> Result<(), String> {
    match (refusal, combination.binding) {
        (Refusal::Grpc(status), Binding::Grpc) => same("the code", status.code(), tonic::Code::Unimplemented),
        // A path that is unknown belongs to no version, so it is refused in the newest one's shape.
        (Refusal::Rest { .. }, _) => {
            refusal.check(ErrorKind::MethodNotFound, Combination { version: Version::V1_0, ..combination })
        }
        _ => refusal.check(ErrorKind::MethodNotFound, combination),
    }
}
