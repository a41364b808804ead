//! Agents that took a message and fail while they work on it.

use std::sync::Arc;

use chancery_protocol::{CancelTask, Reply, Request, Sent};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Outcome, SEND, everybody_gets, everybody_gets_after, message, picture, piece, shown, status, task};
use crate::gateway::scripted::{Script, Scripted};
use crate::gateway::streaming_from;
use crate::support::patience::soon;
use crate::support::wire_client::{Combination, Conditions, WireClient};
use crate::tasks::scenarios::lines;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_in_the_middle_and_stays_away_fails_the_task() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[]), &piece(asked, "one", false, true)]),
        _ => Script::default(),
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the address could not be reached", &["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_falls_silent_is_listened_to_anew() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]).hang(),
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &["done"])]).end(),
    })
    .await;
    everybody_gets_after(1_500, &agent, &Outcome::completed(&["done"])).await;
}

/// Twice as often as it would be looked for in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_works_without_a_word_is_listened_to_for_as_long_as_it_shows_that_it_does() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (SEND, _) => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        (_, 0..6) => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &["done"])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["done"])).await;
}

/// As agents of 0.3 do it, whose new streams show nothing before there is news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_streams_stay_empty_is_looked_at_and_lost_only_if_that_shows_nothing_either() {
    let quiet = |shown: usize| {
        Scripted::agent(move |asked| match (asked.kind().as_str(), asked.before) {
            (SEND, _) => Script::events(asked, [&picture(asked, "WORKING", &[])]),
            ("SubscribeToTask", _) => Script::stream(),
            (_, before) if before < shown => Script::result(asked, &task(asked, "WORKING", &[])),
            (_, before) if before == shown && shown > 0 => Script::result(asked, &task(asked, "COMPLETED", &["done"])),
            _ => Script::page(503, "text/plain", "later"),
        })
    };
    everybody_gets(&quiet(6).await, &Outcome::completed(&["done"])).await;
    let lost = Outcome::failed("the agent was lost while it worked on the task", &[]);
    everybody_gets(&quiet(0).await, &lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_flaps_while_it_works_is_looked_for_until_it_is_back() {
    let agent = Scripted::agent(|asked| match (asked.kind().as_str(), asked.before) {
        (SEND, _) => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        ("SubscribeToTask", 0) => Script::page(503, "text/plain", "later"),
        ("SubscribeToTask", 1) => Script::events(asked, [&picture(asked, "WORKING", &["one"])]),
        ("SubscribeToTask", 2) => Script::page(503, "text/plain", "later"),
        ("SubscribeToTask", _) => Script::events(asked, [&picture(asked, "COMPLETED", &["one"])]).end(),
        _ => Script::page(503, "text/plain", "later"),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_breaks_off_is_a_cut_and_the_task_is_looked_at() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]).chunk("data: {\"jsonrpc\":\"2.0\",\"res\n\n"),
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &["whole"])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["whole"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_without_an_end_is_cut_off_and_the_task_is_looked_at() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let stream = Script::events(asked, [&picture(asked, "WORKING", &[])]);
            stream.chunk("data: ").forever(format!("400\r\n{}\r\n", "x".repeat(1024)))
        }
        _ => Script::events(asked, [&picture(asked, "COMPLETED", &[])]).end(),
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_speaks_of_another_task_is_not_believed() {
    let agent = Scripted::agent(|asked| {
        let mut other = status(asked, "COMPLETED", Some("somebody else's"));
        other["statusUpdate"]["taskId"] = json!("another");
        Script::events(asked, [&picture(asked, "WORKING", &[]), &other]).end()
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the agent spoke of another task", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_comes_after_the_end() {
    let agent = Scripted::agent(|asked| {
        let late =
            [piece(asked, "late", false, true), status(asked, "FAILED", Some("after all")), picture(asked, "WORKING", &[])];
        let early = [picture(asked, "WORKING", &[]), piece(asked, "one", false, true), status(asked, "COMPLETED", None)];
        Script::events(asked, early.iter().chain(&late)).end()
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["one"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_twice_is_passed_on_once() {
    let agent = Scripted::agent(|asked| {
        let said = [
            picture(asked, "SUBMITTED", &[]),
            status(asked, "WORKING", Some("on it")),
            piece(asked, "one", false, true),
            status(asked, "COMPLETED", Some("done")),
        ];
        Script::events(asked, said.iter().flat_map(|event| [event, event])).end()
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(lines, ["task submitted", "status working: on it", "artifact one (last)", "status completed: done"]);
    assert_eq!(outcome, Outcome { said: Some("done".into()), ..Outcome::completed(&["one"]) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cut_what_was_missed_is_passed_on_and_nothing_else() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let said = [picture(asked, "WORKING", &[]), piece(asked, "1", false, false), piece(asked, "2", true, false)];
            Script::events(asked, &said)
        }
        "GetTask" => Script::result(asked, &task(asked, "WORKING", &["1", "2", "3", "4"])),
        _ => {
            let said = [
                picture(asked, "WORKING", &["1", "2", "3", "4"]),
                piece(asked, "5", true, true),
                status(asked, "COMPLETED", None),
            ];
            Script::events(asked, &said).end()
        }
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(
        lines,
        [
            "task submitted",
            "status working",
            "artifact 1",
            "artifact+ 2",
            "artifact+ 3|4",
            "artifact+ 5 (last)",
            "status completed"
        ]
    );
    assert_eq!(outcome, Outcome::completed(&["1|2|3|4|5"]));
}

/// As agents of 0.3 do it: the new stream begins with whatever comes next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cut_a_stream_that_shows_no_picture_makes_us_look() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => {
            let said = [picture(asked, "WORKING", &[]), piece(asked, "1", false, false), piece(asked, "2", true, false)];
            Script::events(asked, &said)
        }
        "SubscribeToTask" => Script::events(asked, [&piece(asked, "5", true, true), &status(asked, "COMPLETED", None)]).end(),
        _ => Script::result(asked, &task(asked, "COMPLETED", &["1", "2", "3", "4", "5"])),
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(
        lines,
        ["task submitted", "status working", "artifact 1", "artifact+ 2", "artifact+ 3|4|5 (last)", "status completed"]
    );
    assert_eq!(outcome, Outcome::completed(&["1|2|3|4|5"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_streams_is_asked_how_far_it_is() {
    let agent = Scripted::with_card(json!({}), |asked| match (asked.kind().as_str(), asked.before) {
        ("SendMessage", _) => Script::result(asked, &picture(asked, "SUBMITTED", &[])),
        ("GetTask", 0) => Script::result(asked, &task(asked, "WORKING", &["1"])),
        ("GetTask", 1) => Script::page(503, "text/plain", "later"),
        ("GetTask", 2) => Script::result(asked, &task(asked, "WORKING", &["1", "2"])),
        _ => Script::result(asked, &task(asked, "COMPLETED", &["1", "2"])),
    })
    .await;
    let (lines, outcome) = shown(&agent).await;
    assert_eq!(outcome, Outcome::completed(&["1|2"]));
    assert_eq!(lines, ["task submitted", "status working", "artifact 1", "artifact+ 2", "status completed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_no_longer_knows_the_task_fails_it() {
    let agent = Scripted::agent(|asked| match asked.kind().as_str() {
        SEND => Script::events(asked, [&picture(asked, "WORKING", &[])]),
        _ => Script::error(asked, -32001, "never heard of it"),
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the agent no longer knows the task", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_comes_before_the_agent_has_named_the_task_reaches_it_afterwards() {
    let cue = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&cue);
    let agent = Scripted::agent(move |asked| match asked.kind().as_str() {
        SEND => Script::stream().wait(&waits).event(asked, &picture(asked, "WORKING", &[])).hang(),
        _ => Script::result(asked, &task(asked, "CANCELED", &[])),
    })
    .await;
    let gateway = streaming_from(&agent.url(), "[limits]\ncancel_grace_ms = 60000\n");
    // Callers of the original name their tasks, so they can speak of one that nobody has seen yet.
    let original = Combination::ALL[6];
    let client = WireClient::new(gateway.url(), original);
    let none = Conditions::default();
    let begun = client.clone();
    let sending = tokio::spawn(async move {
        let sent = begun.call(&Request::SendMessage(message(original, "own")), &Conditions::default()).await;
        let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{sent:?}") };
        lines::state(shown.task.status.state)
    });
    soon("the agent is asked", async || (agent.count(SEND) == 1).then_some(())).await;
    let cancel = Request::CancelTask(CancelTask { tenant: None, id: "own".into(), metadata: None });
    let (canceled, ()) = futures::join!(client.call(&cancel, &none), async {
        tokio::task::yield_now().await;
        cue.add_permits(1);
    });
    assert!(matches!(&canceled, Ok(Reply::Task(shown)) if lines::state(shown.task.status.state) == "canceled"), "{canceled:?}");
    assert_eq!(sending.await.expect("no panic"), "canceled");
    assert_eq!(agent.count("CancelTask"), 1, "the agent is told to stop as soon as it can be");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_piece_of_nothing_begins_the_artifact() {
    let agent = Scripted::agent(|asked| {
        Script::events(
            asked,
            [&picture(asked, "WORKING", &[]), &piece(asked, "more", true, true), &status(asked, "COMPLETED", None)],
        )
        .end()
    })
    .await;
    everybody_gets(&agent, &Outcome::completed(&["more"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_artifact_with_an_endless_name_fails_the_task() {
    let agent = Scripted::agent(|asked| {
        let mut made = piece(asked, "all", false, true);
        made["artifactUpdate"]["artifact"]["artifactId"] = json!("a".repeat(1025));
        Script::events(asked, [&picture(asked, "WORKING", &[]), &made, &status(asked, "COMPLETED", None)]).end()
    })
    .await;
    everybody_gets(&agent, &Outcome::failed("the agent gave an artifact an id of 1025 bytes, more than 1024", &[])).await;
}
