//! Holds what clients were told against what a restarted server has. Answers with everything that does not agree.

use std::collections::HashMap;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::clients::{Told, Watched, texts};
use crate::support::line::{Beside, Gone, Line, is_terminal};

const AT_ONCE: usize = 32;
const PARKED: &str = "TASK_STATE_INPUT_REQUIRED";

pub(super) type Complaints = Vec<String>;

/// Every acknowledged task is there, with at least what was acknowledged of it.
pub(super) async fn answers(line: &Line, told: impl Iterator<Item = &Told>) -> Complaints {
    let checks = futures::stream::iter(told).map(async |told| {
        let id = &told.task["id"];
        let answer = line.call("GetTask", &json!({ "id": id }), Beside::default()).await.map_err(unreachable)?;
        answer_holds(told, &answer["result"])
            .map_err(|why| format!("{}: {why}; told {}, found {answer}", told.call.key, told.task))?;
        let again = line.call("SendMessage", &told.call.params(), Beside::key(&told.call.key)).await.map_err(unreachable)?;
        if again["result"]["task"]["id"] != *id {
            return Err(format!("{}: told {id}, but sent again it is another task: {again}", told.call.key));
        }
        Ok(())
    });
    checks.buffer_unordered(AT_ONCE).filter_map(async |checked: Result<(), String>| checked.err()).collect().await
}

fn unreachable(_: Gone) -> String {
    "the restarted server did not answer".to_owned()
}

fn answer_holds(told: &Told, found: &Value) -> Result<(), &'static str> {
    if found.is_null() {
        return Err("an acknowledged task is lost");
    }
    // One that waits for its caller waits on: nobody was working on it.
    if state(&told.task).is_some_and(|state| is_terminal(state) || state == PARKED) {
        return if told.task == *found { Ok(()) } else { Err("an ended or parked task has changed") };
    }
    let (told_text, found_text) = (text(&told.task), text(found));
    if !found_text.starts_with(&told_text) {
        return Err("acknowledged artifacts are lost");
    }
    ended_in_order(found)
}

fn state(task: &Value) -> Option<&str> {
    task["status"]["state"].as_str()
}

fn text(task: &Value) -> String {
    task["artifacts"].as_array().into_iter().flatten().flat_map(texts).collect()
}

/// Nobody works on a task of the last run: it is done, waits for its caller, or has failed and says why.
fn ended_in_order(task: &Value) -> Result<(), &'static str> {
    match state(task) {
        Some("TASK_STATE_COMPLETED" | PARKED) => Ok(()),
        Some("TASK_STATE_FAILED") if texts(&task["status"]["message"]).concat().contains("restarted") => Ok(()),
        Some("TASK_STATE_FAILED") => Err("a task failed without naming the restart"),
        _ => Err("a task of the last run has not ended"),
    }
}

/// Every event a reader saw is in the log, under the same id, with the same content, in the same order.
pub(super) async fn events(line: &Line, watched: impl Iterator<Item = &Watched>) -> Complaints {
    let checks = futures::stream::iter(watched.filter(|watched| !watched.seen.is_empty())).map(async |watched| {
        // The same message under the same key attaches to the task there is, and shows its events from the first on.
        let beside = Beside::key(&watched.call.key);
        let replay = line.stream("SendStreamingMessage", &watched.call.params(), beside).await.map_err(unreachable)?;
        let replay =
            replay.map_err(|refusal| format!("{}: refused: {refusal}", watched.call.key))?.all().await.map_err(unreachable)?;
        if !replay.starts_with(&watched.seen) || (watched.has_ended() && replay.len() > watched.seen.len()) {
            return Err(format!("{}: saw {:#?}, the log has {replay:#?}", watched.call.key, watched.seen));
        }
        if !replay.last().is_some_and(|event| event.ends_the_task()) {
            return Err(format!("{}: the log has no end: {replay:#?}", watched.call.key));
        }
        let log = line.admin(&format!("/tasks/{}/events", watched.task_id().unwrap_or_default())).await.map_err(unreachable)?;
        let log = log["events"].as_array().cloned().unwrap_or_default();
        let agrees = log.len() == replay.len()
            && log.iter().zip(&replay).all(|(entry, event)| {
                entry["seq"] == event.id && entry["event"]["artifact"]["artifact"] == event.payload["artifactUpdate"]["artifact"]
            });
        if agrees { Ok(()) } else { Err(format!("{}: replayed {replay:#?}, but the operator sees {log:#?}", watched.call.key)) }
    });
    checks.buffer_unordered(AT_ONCE).filter_map(async |checked: Result<(), String>| checked.err()).collect().await
}

/// What the whole list of tasks came to.
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) tasks: u64,
    pub(super) cut_short: u64,
}

/// No message made two tasks, every task has ended, and the operator sees as many as the caller.
pub(super) async fn census(line: &Line, complaints: &mut Complaints) -> Result<Census, Gone> {
    let mut census = Census::default();
    let mut made: HashMap<String, Value> = HashMap::new();
    let mut place = String::new();
    loop {
        let page = line.call("ListTasks", &json!({ "pageSize": 100, "pageToken": place }), Beside::default()).await?;
        for task in page["result"]["tasks"].as_array().into_iter().flatten() {
            census.tasks += 1;
            census.cut_short += u64::from(state(task) == Some("TASK_STATE_FAILED"));
            let key = texts(&task["history"][0]).concat();
            if let Some(other) = made.insert(key.clone(), task["id"].clone()) {
                complaints.push(format!("{key} made two tasks: {other} and {}", task["id"]));
            }
            if let Err(why) = ended_in_order(task) {
                complaints.push(format!("{key}: {why}: {task}"));
            }
        }
        match page["result"]["nextPageToken"].as_str() {
            Some(token) if !token.is_empty() => token.clone_into(&mut place),
            Some(_) => break,
            None => {
                complaints.push(format!("a list was refused: {page}"));
                break;
            }
        }
    }
    let operator = line.admin("/tasks?limit=1&total=true").await?;
    if operator["total"] != census.tasks {
        complaints.push(format!("the caller has {} tasks, the operator sees {}", census.tasks, operator["total"]));
    }
    Ok(census)
}
