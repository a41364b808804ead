//! What a node shows of a task that another node works on.

use std::sync::Arc;

use chancery_protocol::{
    Caller, Dialect, Message, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp, Unknown, Version,
};

use super::*;
use crate::{Progress, TaskRecord};

fn record() -> Arc<TaskRecord> {
    Arc::new(TaskRecord {
        id: "t".into(),
        context_id: "c".into(),
        agent: "agent".into(),
        owner: Caller::new("tenant", "caller"),
        dialect: Dialect::Plain(Version::V1_0),
        client_task_id: None,
        created_at: Timestamp::from_micros(0),
    })
}

/// A followed task of which only its making is known.
fn followed() -> LiveTask {
    followed_at(TaskState::Submitted, 1)
}

/// A task that this node begins to follow at this entry.
fn followed_at(state: TaskState, seq: u64) -> LiveTask {
    let status = TaskStatus { state, message: None, timestamp: None, unknown: Unknown::none() };
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status,
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Unknown::none(),
    };
    LiveTask::loaded(record(), Arc::new(task), progress(state, seq), None).following()
}

fn progress(state: TaskState, seq: u64) -> Progress {
    Progress { state, status_at: Timestamp::from_micros(0), seq, bytes: 100, message_only: false }
}

fn entry(seq: u64, event: TaskEvent) -> Arc<LogEntry> {
    Arc::new(LogEntry { seq, at: Timestamp::from_micros(0), event })
}

fn status(seq: u64, state: TaskState) -> Arc<LogEntry> {
    let status = TaskStatus { state, message: None, timestamp: None, unknown: Unknown::none() };
    entry(seq, TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() }))
}

fn said(seq: u64) -> Arc<LogEntry> {
    entry(seq, TaskEvent::Said(Arc::new(Message::text(Role::User, format!("m{seq}"), "go on"))))
}

fn show(live: &LiveTask, entries: &[Arc<LogEntry>]) {
    live.show_followed(entries, &TaskLimits::default());
}

#[test]
fn entries_are_shown_once_and_in_order_however_often_they_are_read() {
    let live = followed();
    let all = [status(2, TaskState::Working), said(3), said(4), status(5, TaskState::Completed)];
    show(&live, &all[..2]);
    assert_eq!(live.visible().seq, 3);
    // Read again by another flow, from earlier on.
    show(&live, &all[..3]);
    show(&live, &all[1..2]);
    assert_eq!((live.visible().seq, live.task().unwrap().history.len()), (4, 2));
    // What comes after a gap is left for the next read.
    let gap = followed();
    show(&gap, &all[1..]);
    assert_eq!(gap.visible().seq, 1);
    show(&live, &all);
    assert!(live.visible().terminal && live.visible().settled == 5);
    assert_eq!(live.tail_after(1, 9, u64::MAX).unwrap().iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3, 4, 5]);
}

#[test]
fn a_turn_that_waits_for_an_authorization_and_goes_on_is_not_over() {
    let live = followed();
    show(&live, &[status(2, TaskState::Working), status(3, TaskState::AuthRequired)]);
    let asks = live.visible();
    assert!((asks.settled, asks.authorizing) == (3, true), "blocking callers get it now, streams stay open");
    show(&live, &[status(4, TaskState::Working)]);
    assert!(!live.visible().is_over(1) && !live.visible().authorizing);
    show(&live, &[status(5, TaskState::AuthRequired)]);
    live.stop_authorizing();
    let over = live.visible();
    assert_eq!((over.settled, over.authorizing), (5, false));
    // The next message is a turn of its own.
    show(&live, &[said(6), status(7, TaskState::InputRequired), said(8), status(9, TaskState::Working)]);
    assert_eq!(live.visible().settled, 7, "the turn after entry 6 is over");
}

#[test]
fn a_turn_that_is_followed_from_its_question_on_is_not_over_when_its_agent_goes_on() {
    let live = followed_at(TaskState::AuthRequired, 2);
    live.go_on_authorizing();
    show(&live, &[status(3, TaskState::Working)]);
    assert!(!live.visible().is_over(1), "the end is still to come: {:?}", live.visible());
    show(&live, &[status(4, TaskState::Completed)]);
    assert!(live.visible().is_over(1));
}

#[test]
fn only_the_node_that_holds_a_task_takes_updates_and_only_with_all_its_entries() {
    let live = followed();
    let limits = TaskLimits::default();
    let working = || status(0, TaskState::Working).event.clone();
    assert!(live.take(working(), Timestamp::from_micros(1), &limits).is_err(), "another node works on it");
    assert!(!live.begin_hold());
    assert!(!live.become_held(progress(TaskState::InputRequired, 2)), "an entry is missing");
    show(&live, &[status(2, TaskState::InputRequired)]);
    assert!(live.become_held(progress(TaskState::InputRequired, 2)));
    assert!(live.begin_hold());
    assert!(!live.begin_release(), "a call needs it");
    live.end_hold();
    assert!(live.is_idle() && live.begin_release() && live.is_following() && live.is_unwatched());
    assert!(!live.begin_release(), "it is released once");
    show(&live, &[said(3)]);
    assert!(live.become_held(progress(TaskState::InputRequired, 3)));
    assert_eq!(live.take(working(), Timestamp::from_micros(1), &limits).ok(), Some(4), "its numbers go on");
    assert!(!live.is_idle(), "an update waits for the store");
    // What the store has of this node's own entries is shown when it is recorded, not when it is read.
    show(&live, &[status(4, TaskState::Working)]);
    assert_eq!(live.visible().seq, 3);
}
