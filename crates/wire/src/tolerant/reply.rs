//! Reads the one answer of a call.

use std::sync::Arc;

use chancery_protocol::{Operation, Reply, Sent};

use super::object::{ObjectMembers, items};
use super::rewrite::{EventForm, Rewriter};
use super::unreadable::{MemberFault, join};
use super::{
    ClaimedForm, Leniencies, Leniency, ReadAnswer, StrictReader, Unreadable, counted, is_json, other_version, stripped,
    unreadable,
};
use crate::codec::Codec as _;
use crate::json::v1_0::V1_0;

/// Reads the result of a call of `operation`.
pub fn reply(claimed: impl Into<ClaimedForm>, operation: Operation, text: &str) -> Result<ReadAnswer<Reply>, Unreadable> {
    let claimed = claimed.into();
    let exact = |value| Ok(ReadAnswer { value, leniencies: Leniencies::new() });
    let first = match claimed.strict().codec.decode_reply(operation, text) {
        Ok(reply) if claimed.is_strict || !doubts(claimed.strict(), &reply, text) => return exact(reply),
        Err(error) if claimed.is_strict => return Err(unreadable(&error, text)),
        first => first,
    };
    match (reply_by_shape(claimed, operation, text), first) {
        (Ok(read), Ok(first)) if read.value == first => exact(first),
        (Err(_), Ok(first)) => exact(first),
        (read, _) => read,
    }
}

fn reply_by_shape(claimed: ClaimedForm, operation: Operation, text: &str) -> Result<ReadAnswer<Reply>, Unreadable> {
    let mut leniencies = Leniencies::new();
    let text = stripped(text, &mut leniencies);
    let strict =
        |reader: &StrictReader| reader.codec.decode_reply(operation, text).ok().filter(|reply| !doubts(*reader, reply, text));
    if let Some(value) = other_version(claimed, text).and_then(|others| others.iter().find_map(strict)) {
        leniencies.extend(claimed.leniencies_of_other_version());
        return Ok(ReadAnswer { value: spoken_in(claimed, value), leniencies });
    }
    is_json(text)?;
    let mut rewriter = Rewriter { leniencies, ..Rewriter::new(claimed, 0) };
    match operation {
        Operation::SendMessage => rewriter.sent(text),
        Operation::GetTask | Operation::CancelTask => rewriter.task_alone(text),
        Operation::ListTasks => rewriter.tasks(text),
        Operation::GetExtendedCard => {
            let ReadAnswer { value, leniencies } = super::card(text)?;
            let leniencies = rewriter.leniencies.into_iter().chain(leniencies).collect();
            return Ok(ReadAnswer { value: Reply::Card(Arc::new(value.card)), leniencies });
        }
        // Nothing of these is content, and no agent is known to write them in a form of its own.
        _ => Err(MemberFault::new("", "not in the form of its version")),
    }
    .map_err(|fault| fault.within(text))?;
    let value = V1_0.decode_reply(operation, &rewriter.out).map_err(|error| unreadable(&error, text))?;
    Ok(ReadAnswer { value: spoken_in(claimed, value), leniencies: counted(rewriter.leniencies) })
}

impl Rewriter {
    /// The answer to a message: a task or a message, in its wrapper.
    fn sent(&mut self, raw: &str) -> Result<(), MemberFault> {
        let mut trial = Self::new(self.claimed, 0);
        if trial.classify(raw)?.0 != EventForm::StatusUpdate {
            return self.event(raw).map(|_| ());
        }
        self.open();
        self.key("task");
        self.task_alone(raw)?;
        self.close();
        Ok(())
    }

    /// A page of tasks, or the bare list of them.
    fn tasks(&mut self, raw: &str) -> Result<(), MemberFault> {
        self.open();
        if items(raw).is_some() {
            self.note(Leniency::NoWrapper);
            self.key("tasks");
            self.list(raw, "tasks", |this, raw, _, _| this.task_alone(raw))?;
            self.close();
            return Ok(());
        }
        let mut object = ObjectMembers::read(raw, "")?;
        if let Some(raw) = self.take(&mut object, "", &["tasks"])? {
            self.key("tasks");
            self.list(raw, "tasks", |this, raw, path, _| {
                let listed = this.task_alone(raw);
                listed.map_err(|fault| MemberFault { path: join(path, &fault.path), ..fault })
            })?;
        }
        self.optional_text(&mut object, "", &["nextPageToken", "next_page_token"])?;
        for names in [["pageSize", "page_size"], ["totalSize", "total_size"]] {
            match self.take(&mut object, "", &names)?.map(|raw| raw.trim_matches('"').parse::<i32>()) {
                Some(Ok(number)) => self.member(names[0], &number.to_string()),
                Some(Err(_)) => self.note(Leniency::DroppedMember),
                None => {}
            }
        }
        self.close_with(object);
        Ok(())
    }
}

fn doubts(reader: StrictReader, reply: &Reply, text: &str) -> bool {
    match reply {
        Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => reader.doubts_task(&shown.task, text),
        Reply::Sent(Sent::Message(message)) => reader.may_have_lost_parts([message].into_iter(), text),
        Reply::Tasks(page) => page.tasks.iter().any(|shown| reader.doubts_task(&shown.task, text)),
        _ => false,
    }
}

/// The version of a call is that of its question, however the answer was spelled.
fn spoken_in(claimed: ClaimedForm, mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => shown.dialect = claimed.version.into(),
        Reply::Tasks(page) => page.tasks.iter_mut().for_each(|shown| shown.dialect = claimed.version.into()),
        _ => {}
    }
    reply
}
