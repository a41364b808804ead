//! A cancel races the end of its task: whichever wins, everybody sees the same one end.

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{Kept, serve};
use crate::support::counts::full_counts;
use crate::support::line::{Beside, Line, is_terminal};
use crate::support::server::Home;
use crate::tasks::crash::chance::Chance;

const AT_ONCE: usize = 16;

/// Runs one race and answers how the task ended.
async fn race(line: &Line, mut chance: Chance) -> String {
    let mut events = line.streaming_send(&format!("sleep {}", chance.within(0..=12))).await;
    let first = events.next().await.unwrap().expect("a first event");
    let id = first.payload["task"]["id"].clone();
    let params = json!({ "id": id });
    let (cancelled, rest) = futures::join!(line.call("CancelTask", &params, Beside::default()), events.all());
    let (cancelled, rest) = (cancelled.unwrap(), rest.unwrap());

    let endings: Vec<&str> = rest
        .iter()
        .filter_map(|event| event.payload["statusUpdate"]["status"]["state"].as_str())
        .filter(|state| is_terminal(state))
        .collect();
    assert_eq!(endings.len(), 1, "one end on the stream: {rest:?}");
    assert!(rest.last().is_some_and(|event| event.ends_the_task()), "and nothing after it: {rest:?}");
    let ending = endings[0].to_owned();

    match cancelled["result"]["status"]["state"].as_str() {
        Some(state) => assert_eq!(state, ending, "what the cancel was told: {cancelled}"),
        None => {
            assert_eq!((cancelled["error"]["code"].as_i64(), &*ending), (Some(-32002), "TASK_STATE_COMPLETED"), "{cancelled}")
        }
    }
    let got = line.call("GetTask", &params, Beside::default()).await.unwrap();
    assert_eq!(got["result"]["status"]["state"], ending, "what get says");
    let log = line.admin(&format!("/tasks/{}/events", id.as_str().unwrap())).await.unwrap();
    let states: Vec<&Value> =
        log["events"].as_array().unwrap().iter().map(|entry| &entry["event"]["status"]["status"]["state"]).collect();
    assert_eq!(states.iter().filter(|state| state.as_str().is_some_and(is_terminal)).count(), 1, "one end in the log: {log}");
    assert_eq!(**states.last().unwrap(), ending, "the same as everywhere: {log}");
    ending
}

#[tokio::test]
async fn a_cancel_against_a_completion_ends_in_exactly_one_terminal_event_the_same_everywhere() {
    let races = full_counts(500, 10_000);
    let home = Home::new();
    let (_server, line) = serve(&home, Kept::OnDisk, "");
    let mut chance = Chance::new("cancel against complete");
    let chances: Vec<Chance> = (0..races).map(|_| chance.fork()).collect();
    let endings: Vec<String> =
        futures::stream::iter(chances).map(|chance| race(&line, chance)).buffer_unordered(AT_ONCE).collect().await;
    let completed = endings.iter().filter(|ending| *ending == "TASK_STATE_COMPLETED").count();
    println!("{completed} of {races} races were won by the runner");
    assert!(endings.iter().all(|ending| ["TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"].contains(&ending.as_str())));
    assert!(completed > 0 && completed < races, "a race that only one side can win is none: {completed} of {races}");
}
