//! What is printed of an answer: the text of a whole one, or of a stream as it comes.

use chancery::protocol::{ContextId, Reply, Sent, Task, TaskEvent, TaskId, TaskState, TaskStatus};
use chancery_outbound::StreamedEvent;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec as _, Frames, TaskNames};

use super::super::{Failure, bill, remark, show};

/// Prints a whole answer, and says how its task ended.
pub(super) fn show_reply(reply: &Reply, json: bool) -> Result<(), Failure> {
    if json {
        let mut out = Vec::new();
        V1_0.encode_reply(&mut out, reply);
        show::print_json(&String::from_utf8_lossy(&out));
    }
    match reply {
        Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => {
            if !json {
                show_task(&shown.task);
            }
            conclude(shown.task.id.as_str(), &shown.task.status, bill::line(shown.task.metadata.as_ref()))
        }
        Reply::Sent(Sent::Message(message)) => {
            if !json {
                show::print_line(&show::message(message));
            }
            tell(bill::line(message.metadata.as_ref()));
            Ok(())
        }
        _ => Err(Failure::Refused("the agent's answer does not belong to the call".to_owned())),
    }
}

/// The names by which an event's task goes.
fn face(task: &TaskId, context: &ContextId) -> TaskNames {
    TaskNames {
        task_id: task.clone(),
        context_id: context.clone(),
        client_task_id: None,
        artifacts: Vec::new(),
        stays_open: false,
    }
}

/// What a task came to: its artifacts, or what it said last. A task that goes on is shown by its id.
fn show_task(task: &Task) {
    let said = task.status.message.as_deref();
    if !task.status.state.is_terminal() && !task.status.state.is_interrupted() {
        show::print_line(&show::safe(task.id.as_str()));
        return;
    }
    for artifact in &task.artifacts {
        show::print_line(&show::parts(&artifact.parts));
    }
    if let Some(message) = said.filter(|_| task.status.state.is_interrupted() || succeeded_without_artifact(task)) {
        show::print_line(&show::message(message));
    }
}

fn succeeded_without_artifact(task: &Task) -> bool {
    task.status.state == TaskState::Completed && task.artifacts.is_empty()
}

/// What it cost goes to stderr: it is not the answer.
fn tell(bill: Option<String>) {
    if let Some(bill) = bill {
        remark(&bill);
    }
}

/// Says on stderr how the task stands and what it cost, and whether that is a failure.
fn conclude(id: &str, status: &TaskStatus, bill: Option<String>) -> Result<(), Failure> {
    let (id, state) = (show::safe(id), show::state(status.state));
    let reason = status.message.as_deref().map(|message| format!(": {}", show::message(message))).unwrap_or_default();
    match status.state {
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            tell(bill);
            Err(Failure::Refused(format!("task {id} {state}{reason}")))
        }
        TaskState::InputRequired | TaskState::AuthRequired => {
            remark(&format!("task {id} {state}; continue with: chancery send --task {id} TEXT"));
            Ok(())
        }
        _ => {
            remark(&format!("task {id} {state}"));
            tell(bill);
            Ok(())
        }
    }
}

/// What a stream has shown so far.
#[derive(Default)]
pub(super) struct StreamProgress {
    id: Option<String>,
    /// The names of the task that events are of.
    face: Option<TaskNames>,
    status: Option<TaskStatus>,
    replied: bool,
    bill: Option<String>,
    /// Text was printed and the line is still open.
    open_line: bool,
}

impl StreamProgress {
    pub(super) fn take(&mut self, heard: &StreamedEvent, json: bool) {
        if let Some(face) = &heard.face {
            // Streams of the original protocol begin without a picture of the task.
            self.id.get_or_insert_with(|| face.task_id.to_string());
            self.face = Some(face.clone());
        }
        if json {
            self.print_json(&heard.event);
        }
        match &heard.event {
            TaskEvent::Created(task) => {
                self.id = Some(task.id.to_string());
                self.status = Some(task.status.clone());
                self.face.get_or_insert_with(|| face(&task.id, &task.context_id));
                self.bill = bill::line(task.metadata.as_ref()).or(self.bill.take());
                if !json {
                    remark(&format!("task {} {}", show::safe(task.id.as_str()), show::state(task.status.state)));
                    // An agent that does not stream answers with the task as it ended.
                    if task.status.state.is_terminal() || task.status.state.is_interrupted() {
                        show_task(task);
                    }
                }
            }
            TaskEvent::Status(change) => {
                self.status = Some(change.status.clone());
                self.bill = bill::line(change.metadata.as_ref()).or(self.bill.take());
                if let Some(message) = change.status.message.as_deref().filter(|_| !json) {
                    self.end_line();
                    // What is asked of the caller is a result; what is said on the way is not.
                    if change.status.state.is_interrupted() {
                        show::print_line(&show::message(message));
                    } else if !change.status.state.is_terminal() {
                        remark(&format!("{}: {}", show::state(change.status.state), show::message(message)));
                    }
                }
            }
            TaskEvent::Artifact(chunk) if !json => {
                if !chunk.append {
                    self.end_line();
                }
                let text = show::parts(&chunk.artifact.parts);
                self.open_line = !text.ends_with('\n') && (self.open_line || !text.is_empty());
                show::print(&text);
            }
            TaskEvent::Replied(message) => {
                self.replied = true;
                self.bill = bill::line(message.metadata.as_ref());
                if !json {
                    show::print_line(&show::message(message));
                }
            }
            TaskEvent::Artifact(_) | TaskEvent::Said(_) => {}
        }
    }

    /// The event in the JSON of A2A 1.0.
    fn print_json(&self, event: &TaskEvent) {
        let own = match event {
            TaskEvent::Created(task) => Some(face(&task.id, &task.context_id)),
            _ => None,
        };
        let face = own.or_else(|| self.face.clone()).unwrap_or_else(|| face(&"".into(), &"".into()));
        let mut frames = Frames::apart();
        V1_0.encode_event(&mut frames, &face, event);
        for payload in frames.take_payloads() {
            show::print_json(&String::from_utf8_lossy(payload.bytes()));
        }
    }

    pub(super) fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            show::print("\n");
        }
    }

    pub(super) fn conclude(self) -> Result<(), Failure> {
        match (self.id, self.status) {
            _ if self.replied => {
                tell(self.bill);
                Ok(())
            }
            (Some(id), Some(status)) if status.state.is_terminal() || status.state.is_interrupted() => {
                conclude(&id, &status, self.bill)
            }
            (Some(id), _) => Err(Failure::Unreachable(format!(
                "the stream ended before the task; follow the task with: chancery tasks watch {}",
                show::safe(&id)
            ))),
            (None, _) => Err(Failure::Unreachable("the stream ended without an event".to_owned())),
        }
    }
}
