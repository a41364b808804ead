//! What a start finds of tasks that were being worked on when the node ended.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{
    AfterRestart, Answer, Chancery, Finished, Recovered, RunError, Store, TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
use chancery_protocol::{
    Artifact, GetTask, Message, Part, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskId, TaskState,
};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, call_context};

/// Begins, and never gets done in its first life; asks back when told to.
struct Interrupted(AfterRestart);

#[async_trait]
impl TaskRunner for Interrupted {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        if turn.message.first_text() == Some("ask") {
            let question = updates.text("what?");
            return Ok(updates.input_required(question));
        }
        if turn.resumed {
            let so_far = turn.task.artifacts.len();
            updates.artifact(Artifact::new("rest", vec![Part::text(format!("after {so_far}"))])).await?;
            return Ok(updates.complete(None));
        }
        updates.artifact(Artifact::new("begun", vec![Part::text("begun")])).await?;
        std::future::pending().await
    }

    fn after_restart(&self) -> AfterRestart {
        self.0
    }
}

fn plane(store: &Arc<HookedStore>, after: AfterRestart) -> Chancery {
    chancery_testkit::plane(Arc::clone(store) as Arc<dyn Store>, Interrupted(after), TaskLimits::default())
}

async fn begin(chancery: &Chancery, text: &str) -> TaskId {
    let configuration = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
    let message = Arc::new(Message::text(Role::User, "m", text));
    let send =
        SendMessage { tenant: None, message, configuration, metadata: None, client_task_id: None, unknown: Default::default() };
    match chancery.call(&call_context(), Request::SendMessage(send)).await.unwrap() {
        Answer::Reply(Reply::Sent(Sent::Task(shown))) => shown.task.id.clone(),
        other => panic!("{other:?}"),
    }
}

async fn get(chancery: &Chancery, id: &TaskId) -> Arc<Task> {
    let get = GetTask { tenant: None, id: id.clone(), history_length: None };
    match chancery.call(&call_context(), Request::GetTask(get)).await.unwrap() {
        Answer::Reply(Reply::Task(shown)) => shown.task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_runner_that_can_goes_on_where_it_was_cut_short() {
    let store = Arc::new(HookedStore::over(MemoryStore::new()));
    let id = begin(&plane(&store, AfterRestart::Resume), "work").await;
    let restarted = plane(&store, AfterRestart::Resume);
    assert_eq!(restarted.recover().await.unwrap(), Recovered { failed: 0, resumed: 1 });
    let task = get(&restarted, &id).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts[1].parts[0].as_text(), Some("after 1"), "the resumed turn sees what was done before");
}

#[tokio::test]
async fn a_runner_that_cannot_has_its_task_failed_with_the_restart_as_the_reason() {
    let store = Arc::new(HookedStore::over(MemoryStore::new()));
    let id = begin(&plane(&store, AfterRestart::Fail), "work").await;
    let restarted = plane(&store, AfterRestart::Fail);
    assert_eq!(restarted.recover().await.unwrap(), Recovered { failed: 1, resumed: 0 });
    let task = get(&restarted, &id).await;
    assert_eq!(task.status.state, TaskState::Failed);
    let reason = task.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default();
    assert!(reason.contains("restarted"), "{reason}");
    assert_eq!(task.artifacts.len(), 1, "what was done before stays");
}

#[tokio::test]
async fn a_task_that_waits_for_its_caller_is_left_waiting() {
    let store = Arc::new(HookedStore::over(MemoryStore::new()));
    let id = begin(&plane(&store, AfterRestart::Resume), "ask").await;
    let restarted = plane(&store, AfterRestart::Resume);
    assert_eq!(restarted.recover().await.unwrap(), Recovered::default());
    assert_eq!(get(&restarted, &id).await.status.state, TaskState::InputRequired);
}
