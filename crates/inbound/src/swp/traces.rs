//! The trace contexts that a connection was told of: its own, and those of tasks that are still to come.

use std::collections::VecDeque;

use bytes::Bytes;
use chancery_wire::swp::codec::obs::{Failure, Message, TraceContext};
use chancery_wire::swp::codec::{Code, Reason, Reject};

/// How many messages and tasks may be spoken of before they come. Of more the first are forgotten.
const AHEAD: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Traces {
    current: Option<TraceContext>,
    ahead: VecDeque<TraceContext>,
}

impl Traces {
    /// What to answer, if anything. Whoever answers what nobody asked is refused.
    pub(super) fn hear(&mut self, message: Message) -> Result<Option<Message>, Reject> {
        match message {
            Message::Set(context) if context.task_id.is_empty() && context.msg_id.is_empty() => {
                self.current = Some(kept(&context));
                Ok(None)
            }
            Message::Set(context) => {
                while self.ahead.len() >= AHEAD {
                    self.ahead.pop_front();
                }
                self.ahead.push_back(kept(&context));
                Ok(None)
            }
            Message::Get(_) => Ok(Some(match &self.current {
                Some(context) => Message::Doc(context.clone()),
                None => Message::Failure(Failure {
                    code: Code::NotFound.to_string(),
                    message: "this connection has no trace context".to_owned(),
                }),
            })),
            Message::Doc(_) | Message::Failure(_) => Err(Reason::UnsupportedMsgType.into()),
        }
    }

    /// The context of a task that comes now: the one that was said to be its own, or the connection's.
    pub(super) fn of(&mut self, task_id: &Bytes, msg_id: &Bytes) -> Option<TraceContext> {
        let is_its = |context: &TraceContext| context.task_id == *task_id || context.msg_id == *msg_id;
        let ahead = self.ahead.iter().position(is_its).and_then(|at| self.ahead.remove(at));
        ahead.or_else(|| self.current.clone())
    }
}

/// A copy, because a slice would keep the whole frame in memory.
fn kept(context: &TraceContext) -> TraceContext {
    let copied = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
    TraceContext {
        msg_id: copied(&context.msg_id),
        task_id: copied(&context.task_id),
        rpc_id: copied(&context.rpc_id),
        ..context.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_wire::swp::codec::obs::Get;

    fn context(traceparent: &str, task_id: &str) -> TraceContext {
        TraceContext {
            traceparent: traceparent.into(),
            task_id: Bytes::copy_from_slice(task_id.as_bytes()),
            ..TraceContext::default()
        }
    }

    #[test]
    fn a_task_has_the_context_it_was_announced_with_and_otherwise_the_connections() {
        let mut traces = Traces::default();
        let (one, none) = (Bytes::from_static(b"one"), Bytes::from_static(b"message"));
        assert_eq!(traces.of(&one, &none), None);
        assert!(matches!(traces.hear(Message::Get(Get::default())), Ok(Some(Message::Failure(_)))));
        for set in [context("whole", ""), context("its own", "one")] {
            assert_eq!(traces.hear(Message::Set(set)), Ok(None));
        }
        assert_eq!(traces.hear(Message::Get(Get::default())), Ok(Some(Message::Doc(context("whole", "")))));
        assert_eq!(traces.of(&one, &none).unwrap().traceparent, "its own");
        assert_eq!(traces.of(&one, &none).unwrap().traceparent, "whole", "it was said of one task");
        assert!(traces.hear(Message::Doc(TraceContext::default())).is_err());
    }

    #[test]
    fn only_so_many_are_remembered_ahead() {
        let mut traces = Traces::default();
        for number in 0..=AHEAD {
            traces.hear(Message::Set(context("t", &format!("{number}")))).unwrap();
        }
        assert_eq!(traces.ahead.len(), AHEAD);
        assert_eq!(traces.of(&Bytes::from_static(b"0"), &Bytes::from_static(b"m")), None);
        assert!(traces.of(&Bytes::from_static(b"1"), &Bytes::from_static(b"m")).is_some());
    }
}
