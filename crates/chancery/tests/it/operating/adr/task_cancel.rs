//! `tasks/cancel` while the runner is blocked: it is asked to stop, and made to if it does not listen.

use std::sync::atomic::Ordering;

use chancery::config::Config;
use chancery_protocol::{ErrorKind, TaskState};

use super::directed::{Cue, Stage};
use super::{Caller, line};

#[tokio::test]
async fn a_blocked_runner_is_asked_to_stop_and_its_task_is_canceled_for_everybody() {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    let mut stream = caller.send_subscribe("job-1", "wait for me").await;
    stage.cue(Cue::Work("waiting"));
    assert_eq!(line(&mut stream).await.unwrap(), "status submitted");
    assert_eq!(line(&mut stream).await.unwrap(), "status working: waiting");
    assert!(!stage.fate.stopped.load(Ordering::SeqCst));

    let canceled = caller.cancel("job-1").await.expect("the canceled task");
    assert_eq!((canceled.id.as_str(), canceled.status.state), ("job-1", TaskState::Canceled));
    assert!(stage.fate.stopped.load(Ordering::SeqCst), "the runner stopped by itself");
    assert!(!stage.fate.dropped.load(Ordering::SeqCst));
    assert_eq!(line(&mut stream).await.unwrap(), "status canceled");
    assert_eq!(line(&mut stream).await, None);
    assert_eq!(caller.get("job-1").await.status.state, TaskState::Canceled);

    let again = caller.cancel("job-1").await.unwrap_err();
    again.check(ErrorKind::TaskNotCancelable, caller.0.combination).unwrap();
}

#[tokio::test]
async fn a_caller_that_waits_in_tasks_send_is_told() {
    let stage = Stage::open().await;
    let caller = Caller::new(&stage.url);
    stage.cue(Cue::Work("waiting"));
    let canceling = async {
        // The task is there as soon as it can be canceled.
        while caller.cancel("job-1").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let (sent, ()) = tokio::join!(caller.send("job-1", "wait for me"), canceling);
    assert_eq!(sent.status.state, TaskState::Canceled);
}

#[tokio::test]
async fn a_runner_that_does_not_listen_is_dropped_after_its_grace() {
    let mut config = Config::default();
    config.limits.tasks.cancel_grace_ms = 20;
    let stage = Stage::with(false, config).await;
    let caller = Caller::new(&stage.url);
    let mut stream = caller.send_subscribe("job-1", "wait for me").await;
    assert_eq!(line(&mut stream).await.unwrap(), "status submitted");

    let canceled = caller.cancel("job-1").await.expect("the canceled task");
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert!(stage.fate.dropped.load(Ordering::SeqCst), "the turn was taken from it");
    assert!(!stage.fate.stopped.load(Ordering::SeqCst));
    assert_eq!(line(&mut stream).await.unwrap(), "status canceled");
}
