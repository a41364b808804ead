//! What hangs on a task: contexts, references, page tokens, idempotency keys, event ids, places at its streams. Others' are no
//! better than made-up ones.

use chancery_protocol::{ListTasks, Operation, Request, SubscribeToTask, Version};

use super::{CALLERS, NEWEST, Town, changed, message};
use crate::support::wire_client::{Combination, RawCall};
use crate::tasks::scenarios::tampered;

const ME: &str = "red-one";
const OTHERS: [&str; 3] = ["red-two", "blue-one", "blue-two"];
const NEVER_A_CONTEXT: &str = "01907a3c-5b1e-8c44-9d6e-2f1a0b3c4d5e";
const NEVER_A_TASK: &str = "01907a3c-5b1e-7c44-9d6e-2f1a0b3c4d5e";

/// Every way of sending a message, with this one.
fn sends(send: &chancery_protocol::SendMessage) -> Vec<RawCall> {
    let both = [Request::SendMessage(send.clone()), Request::StreamMessage(send.clone())];
    let ways = Combination::ALL.into_iter().flat_map(|combination| {
        both.iter().filter_map(move |request| {
            let mut request = request.clone();
            if let (Version::Original, Request::SendMessage(send) | Request::StreamMessage(send)) =
                (combination.version, &mut request)
            {
                // Each a new task: the name would be a task's otherwise.
                send.client_task_id = Some(format!("fresh-{NEVER_A_TASK}").into());
            }
            RawCall::of(combination, &request)
        })
    });
    ways.collect()
}

#[tokio::test]
async fn a_context_of_somebody_else_is_refused_like_one_that_never_was() {
    let town = Town::new("");
    let (_, own) = town.waiting_task(ME, Version::V1_0, "").await;
    let in_context = |context: &str| changed(message("complete"), |message| message.context_id = Some(context.into()));
    let made_up = sends(&in_context(NEVER_A_CONTEXT));
    for other in OTHERS {
        let (_, context) = town.waiting_task(other, Version::V1_0, "").await;
        for (call, made_up) in sends(&in_context(context.as_str())).into_iter().zip(&made_up) {
            let (seen, expected) = (town.ask(ME, call.clone()).await, town.ask(ME, made_up.clone()).await);
            assert!(expected.is_refusal(), "{expected:?}");
            assert_eq!(seen.replacing(context.as_str(), NEVER_A_CONTEXT), expected, "{:?}", call.combination);
        }
    }
    let goes_on = town.request(ME, NEWEST, &Request::SendMessage(in_context(own.as_str()))).await;
    assert!(!goes_on.is_refusal() && goes_on.text().contains(own.as_str()), "{goes_on:?}");
    // A name of one's own choosing is one's own, whoever else chose it.
    for (_, caller) in CALLERS {
        let named = town.request(caller, NEWEST, &Request::SendMessage(in_context("our-talk"))).await;
        assert!(!named.is_refusal(), "{named:?}");
        let list = ListTasks { context_id: Some("our-talk".into()), ..ListTasks::default() };
        let listed = town.request(caller, NEWEST, &Request::ListTasks(list)).await.json();
        assert_eq!(listed["result"]["totalSize"], 1, "{listed}");
    }
}

#[tokio::test]
async fn a_reference_to_somebody_elses_task_is_refused_like_one_to_none() {
    let town = Town::new("");
    let (own, _) = town.waiting_task(ME, Version::V1_0, "").await;
    let pointing = |task: &str| changed(message("complete"), |message| message.reference_task_ids = vec![task.into()]);
    let made_up = sends(&pointing(NEVER_A_TASK));
    // Some messages have no place for references: the original protocol's, and those of 0.3's protobuf schema.
    let points = |call: &RawCall, task: &str| call.body.windows(task.len()).any(|bytes| bytes == task.as_bytes());
    for other in OTHERS {
        let (task, _) = town.waiting_task(other, Version::V1_0, "").await;
        let mut told = 0;
        for (call, made_up) in sends(&pointing(task.as_str())).into_iter().zip(&made_up) {
            if !points(&call, task.as_str()) {
                continue;
            }
            let (seen, expected) = (town.ask(ME, call.clone()).await, town.ask(ME, made_up.clone()).await);
            assert!(expected.is_refusal(), "{expected:?}");
            assert_eq!(seen.replacing(task.as_str(), NEVER_A_TASK), expected, "{:?}", call.combination);
            told += 1;
        }
        assert_eq!(told, 8, "both ways to send: over every binding of 1.0, and JSON-RPC of 0.3");
    }
    let answer = town.request(ME, NEWEST, &Request::SendMessage(pointing(own.as_str()))).await;
    assert!(!answer.is_refusal(), "{answer:?}");
}

#[tokio::test]
async fn a_page_token_of_somebody_else_is_no_token() {
    let town = Town::new("");
    let page =
        |token: Option<String>| Request::ListTasks(ListTasks { page_size: Some(1), page_token: token, ..ListTasks::default() });
    let mut tokens = Vec::new();
    for (_, caller) in CALLERS {
        for _ in 0..3 {
            town.waiting_task(caller, Version::V1_0, "").await;
        }
        let first = town.request(caller, NEWEST, &page(None)).await.json();
        tokens.push(first["result"]["nextPageToken"].as_str().expect("a token").to_owned());
    }
    let garbage = tampered(&tokens[0]);
    for combination in Combination::ALL {
        let Some(call) = RawCall::of(combination, &page(Some(garbage.clone()))) else { continue };
        let expected = town.ask(ME, call).await.replacing(&garbage, "TOKEN");
        assert!(expected.is_refusal(), "{expected:?}");
        for token in &tokens[1..] {
            let seen = town.request(ME, combination, &page(Some(token.clone()))).await;
            assert_eq!(seen.replacing(token, "TOKEN"), expected, "{combination:?}");
        }
        let own = town.request(ME, combination, &page(Some(tokens[0].clone()))).await;
        assert!(!own.is_refusal(), "{own:?}");
    }
}

#[tokio::test]
async fn the_same_idempotency_key_in_two_hands_is_two_keys() {
    let town = Town::new("");
    for (number, combination) in Combination::ALL.into_iter().enumerate() {
        let key = format!("key-{number}");
        let mut made: Vec<String> = Vec::new();
        for (_, caller) in CALLERS {
            // Other words each time: with a key that is known, that would be a conflict.
            let mut send = message(&format!("complete {caller}"));
            if combination.version == Version::Original {
                send.client_task_id = Some(format!("named-{number}").into());
            }
            let call = RawCall::of(combination, &Request::SendMessage(send)).expect("sending").with("idempotency-key", &key);
            let (first, again) = (town.ask(caller, call.clone()).await, town.ask(caller, call).await);
            assert!(!first.is_refusal() && first.text().contains(caller), "{combination:?} {first:?}");
            assert_eq!(first, again, "the same key in the same hand is the same task");
            assert!(made.iter().all(|other| *other != first.text()), "{made:?}");
            made.push(first.text());
        }
    }
}

#[tokio::test]
async fn an_event_id_tells_nothing_about_tasks_of_others() {
    let town = Town::new("");
    let (own, _) = town.waiting_task(ME, Version::V1_0, "").await;
    let subscribe = |id: &str| Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.into() });
    for other in OTHERS {
        let (task, _) = town.waiting_task(other, Version::V1_0, "").await;
        // Within the log, and far past its end.
        for seen_last in ["0", "1", "999"] {
            for combination in Combination::ALL {
                let ask = async |id: &str| {
                    let call = RawCall::of(combination, &subscribe(id)).expect("subscribing").with("last-event-id", seen_last);
                    town.ask(ME, call).await.replacing(id, "TASK")
                };
                let expected = ask(NEVER_A_TASK).await;
                assert!(expected.is_refusal(), "{expected:?}");
                assert_eq!(ask(task.as_str()).await, expected, "{combination:?} {seen_last}");
                assert_eq!(ask(own.as_str()).await.is_refusal(), seen_last == "999", "{combination:?} {seen_last}");
            }
        }
    }
}

#[tokio::test]
async fn whether_the_streams_of_a_task_are_all_taken_is_its_owners_business() {
    let town = Town::new("streams_per_task = 1");
    let (task, _) = town.waiting_task("red-two", Version::V1_0, "").await;
    let subscribe = RawCall::of(NEWEST, &Request::SubscribeToTask(SubscribeToTask { tenant: None, id: task.clone() }));
    let call = subscribe.expect("subscribing").with("x-api-key", &super::key("red-two"));
    let watching = town.client.try_ask(&call).await.expect("an answer");
    assert_eq!(watching.headers()["content-type"], "text/event-stream");
    let operations = [Operation::SubscribeToTask, Operation::StreamMessage];
    for (combination, operation) in Combination::ALL.into_iter().flat_map(|one| operations.map(|operation| (one, operation))) {
        if combination.version == Version::Original && operation == Operation::StreamMessage {
            continue;
        }
        let ask = async |id: &str| {
            let request = match operation {
                Operation::StreamMessage => {
                    Request::StreamMessage(changed(message("ask again"), |message| message.task_id = Some(id.into())))
                }
                _ => Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.into() }),
            };
            town.request(ME, combination, &request).await.replacing(id, "TASK")
        };
        assert_eq!(ask(task.as_str()).await, ask(NEVER_A_TASK).await, "{operation:?} {combination:?}");
    }
    drop(watching);
}
