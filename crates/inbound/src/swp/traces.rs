//! The trace contexts of an SWP connection: its own, and those of tasks that are still to come.

use std::collections::VecDeque;

use bytes::Bytes;
use chancery_wire::swp::codec::obs::{Failure, ObsMessage, TraceContext};
use chancery_wire::swp::codec::{FrameReason, Reject, SwpCode, SwpLimits};

use crate::context::LONGEST_TRACESTATE;

/// How many messages and tasks may be spoken of before they come. Of more the first are forgotten.
const AHEAD: usize = 64;
/// A `traceparent` has 55 octets; later versions may add to it.
const LONGEST_TRACEPARENT: usize = 128;

#[derive(Debug)]
pub(super) struct Traces {
    current: Option<TraceContext>,
    ahead: VecDeque<TraceContext>,
    longest_task_id: usize,
    longest_msg_id: usize,
}

impl Traces {
    pub(super) fn new(limits: &SwpLimits) -> Self {
        let (longest_task_id, longest_msg_id) = (limits.max_task_id_bytes as usize, limits.max_msg_id_bytes as usize);
        Self { current: None, ahead: VecDeque::new(), longest_task_id, longest_msg_id }
    }

    /// The answer, if there is one. An answer without a question is refused.
    pub(super) fn apply(&mut self, message: ObsMessage) -> Result<Option<ObsMessage>, Reject> {
        match message {
            // Telemetry that makes no sense is no reason to close, and none to be remembered.
            ObsMessage::Set(context) if !self.makes_sense(&context) => Ok(None),
            ObsMessage::Set(context) if context.task_id.is_empty() && context.msg_id.is_empty() => {
                self.current = Some(kept(&context));
                Ok(None)
            }
            ObsMessage::Set(context) => {
                while self.ahead.len() >= AHEAD {
                    self.ahead.pop_front();
                }
                self.ahead.push_back(kept(&context));
                Ok(None)
            }
            ObsMessage::Get(_) => Ok(Some(match &self.current {
                Some(context) => ObsMessage::Doc(context.clone()),
                None => ObsMessage::Failure(Failure {
                    code: SwpCode::NotFound.to_string(),
                    message: "this connection has no trace context".to_owned(),
                }),
            })),
            ObsMessage::Doc(_) | ObsMessage::Failure(_) => Err(FrameReason::UnsupportedMsgType.into()),
        }
    }

    /// Whether it can be the context of anything that may come.
    fn makes_sense(&self, context: &TraceContext) -> bool {
        context.traceparent.len() <= LONGEST_TRACEPARENT
            && context.task_id.len() <= self.longest_task_id
            && [&context.msg_id, &context.rpc_id].iter().all(|id| id.len() <= self.longest_msg_id)
    }

    /// The context of a task that comes now: the one that was said to be its own, or the connection's.
    pub(super) fn of(&mut self, task_id: &Bytes, msg_id: &Bytes) -> Option<TraceContext> {
        let is_its = |context: &TraceContext| context.task_id == *task_id || context.msg_id == *msg_id;
        let ahead = self.ahead.iter().position(is_its).and_then(|at| self.ahead.remove(at));
        ahead.or_else(|| self.current.clone())
    }
}

/// A copy, because a slice would keep the whole frame in memory. Members that no door forwards are left out.
fn kept(context: &TraceContext) -> TraceContext {
    let copied = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
    let passed_on = context.tracestate.len() <= LONGEST_TRACESTATE;
    TraceContext {
        traceparent: context.traceparent.clone(),
        tracestate: if passed_on { context.tracestate.clone() } else { String::new() },
        msg_id: copied(&context.msg_id),
        task_id: copied(&context.task_id),
        rpc_id: copied(&context.rpc_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_wire::swp::codec::obs::GetTraceContext;

    fn context(traceparent: &str, task_id: &str) -> TraceContext {
        TraceContext {
            traceparent: traceparent.into(),
            task_id: Bytes::copy_from_slice(task_id.as_bytes()),
            ..TraceContext::default()
        }
    }

    #[test]
    fn a_task_has_the_context_it_was_announced_with_and_otherwise_the_connections() {
        let mut traces = Traces::new(&SwpLimits::default());
        let (one, none) = (Bytes::from_static(b"one"), Bytes::from_static(b"message"));
        assert_eq!(traces.of(&one, &none), None);
        assert!(matches!(traces.apply(ObsMessage::Get(GetTraceContext::default())), Ok(Some(ObsMessage::Failure(_)))));
        for set in [context("whole", ""), context("its own", "one")] {
            assert_eq!(traces.apply(ObsMessage::Set(set)), Ok(None));
        }
        assert_eq!(traces.apply(ObsMessage::Get(GetTraceContext::default())), Ok(Some(ObsMessage::Doc(context("whole", "")))));
        assert_eq!(traces.of(&one, &none).unwrap().traceparent, "its own");
        assert_eq!(traces.of(&one, &none).unwrap().traceparent, "whole", "it was said of one task");
        assert!(traces.apply(ObsMessage::Doc(TraceContext::default())).is_err());
    }

    #[test]
    fn only_so_many_are_remembered_ahead() {
        let mut traces = Traces::new(&SwpLimits::default());
        for number in 0..=AHEAD {
            traces.apply(ObsMessage::Set(context("t", &format!("{number}")))).unwrap();
        }
        assert_eq!(traces.ahead.len(), AHEAD);
        assert_eq!(traces.of(&Bytes::from_static(b"0"), &Bytes::from_static(b"m")), None);
        assert!(traces.of(&Bytes::from_static(b"1"), &Bytes::from_static(b"m")).is_some());
    }

    #[test]
    fn a_context_is_as_long_as_one_can_be_and_no_longer() {
        let limits = SwpLimits { max_task_id_bytes: 3, max_msg_id_bytes: 2, ..SwpLimits::default() };
        let edge = TraceContext {
            traceparent: "p".repeat(LONGEST_TRACEPARENT),
            tracestate: "s".repeat(LONGEST_TRACESTATE),
            msg_id: "mm".into(),
            task_id: "ttt".into(),
            rpc_id: "rr".into(),
        };
        let heard = |context: TraceContext| {
            let mut traces = Traces::new(&limits);
            assert_eq!(traces.apply(ObsMessage::Set(context)), Ok(None));
            traces.ahead.pop_front()
        };
        assert_eq!(heard(edge.clone()), Some(edge.clone()));
        for beyond in [
            TraceContext { traceparent: "p".repeat(LONGEST_TRACEPARENT + 1), ..edge.clone() },
            TraceContext { msg_id: "mmm".into(), ..edge.clone() },
            TraceContext { task_id: "tttt".into(), ..edge.clone() },
            TraceContext { rpc_id: "rrr".into(), ..edge.clone() },
        ] {
            assert_eq!(heard(beyond), None);
        }
        let state = heard(TraceContext { tracestate: "s".repeat(LONGEST_TRACESTATE + 1), ..edge.clone() });
        assert_eq!(state, Some(TraceContext { tracestate: String::new(), ..edge }), "without the state, as over every door");
    }
}
