//! Answers the requesters of a batch on the runtime that they wait on: it is woken once for all of them, not once for each.

use chancery_core::{Appended, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::fault::SqliteFault;
use super::writer::{Done, Job};

/// Where the outcome of an append goes.
#[derive(Debug)]
pub(super) struct AppendAnswer {
    sender: oneshot::Sender<Result<Appended, StoreError>>,
    /// On which the requester waits, if it waits on one.
    runtime: Option<Handle>,
}

impl AppendAnswer {
    /// For a requester that waits where this is called.
    pub(super) fn here(sender: oneshot::Sender<Result<Appended, StoreError>>) -> Self {
        Self { sender, runtime: Handle::try_current().ok() }
    }
}

/// A job and what came of it.
type Outcome = (Job, Result<Done, SqliteFault>);

/// Outcomes whose requesters wait on one runtime. Its drop tells them: a runtime that has stopped drops what it is given.
struct ToTell(Vec<Outcome>);

impl Drop for ToTell {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|(job, done)| tell(job, done));
    }
}

/// Answers every requester. Appends that wait on one runtime get their answers from a task there, so that the thread of the writer
/// wakes it once: on a busy core each wake-up would be a change of threads. A lone append gets its answer from here.
pub(super) fn tell_all(outcomes: impl Iterator<Item = Outcome>) {
    let (mut to_tell, mut runtime) = (ToTell(Vec::with_capacity(outcomes.size_hint().0)), None::<Handle>);
    for (job, done) in outcomes {
        let own = if let Job::Append(_, answer) = &job { answer.runtime.as_ref() } else { None };
        match (own, &runtime) {
            (Some(own), None) => runtime = Some(own.clone()),
            (Some(own), Some(runtime)) if own.id() == runtime.id() => {}
            _ => {
                tell(job, done);
                continue;
            }
        }
        to_tell.0.push((job, done));
    }
    if let Some(runtime) = runtime.filter(|_| to_tell.0.len() > 1) {
        on_runtime(&runtime, to_tell);
    }
}

#[expect(clippy::disallowed_methods, reason = "sends answers and nothing else, which does not panic")]
fn on_runtime(runtime: &Handle, to_tell: ToTell) {
    runtime.spawn(async move { drop(to_tell) });
}

/// Sends the outcome of a job. The requester may have stopped waiting; that is no error.
pub(super) fn tell(job: Job, done: Result<Done, SqliteFault>) {
    match (job, done) {
        (Job::Append(_, answer), Ok(Done::Append(verdict))) => drop(answer.sender.send(verdict)),
        (Job::Append(_, answer), Err(fault)) => drop(answer.sender.send(Err(fault.while_doing("writing to the log")))),
        (Job::Write(job), done) => job.tell(done.map(drop)),
        (Job::Append(..), Ok(Done::Write)) | (Job::Close, _) => {}
    }
}
