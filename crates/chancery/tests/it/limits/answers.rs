//! Limits on answers: how much of a list is one page, and how much may be unread.

use chancery::agents::BuiltIn;
use chancery::config::TaskLimits;
use chancery_core::Answer;
use chancery_protocol::{Binding, CallContext, Caller, ErrorKind, GetTask, ListTasks, Reply, Request, Version};
use chancery_store::MemoryStore;
use serde_json::json;

use super::{assert_refused, limited};
use crate::support::bare_service::BareService;
use crate::support::server::Server;
use crate::support::wire_client::{Combination, Conditions, WireClient};

const UNAVAILABLE: i64 = -32044;

fn list(page_token: Option<&str>) -> Request {
    Request::ListTasks(ListTasks { include_artifacts: true, page_token: page_token.map(str::to_owned), ..ListTasks::default() })
}

/// Whether there is a way to ask for a list: the original protocol has none, and neither has gRPC before 1.0.
fn can_list(combination: Combination) -> bool {
    !matches!((combination.version, combination.binding), (Version::Original, _) | (Version::V0_3, Binding::Grpc))
}

/// How many tasks each page has, read to the end.
async fn pages(client: &WireClient) -> Vec<usize> {
    let (mut pages, mut token, mut ids) = (Vec::new(), None, Vec::new());
    loop {
        let reply = client.call(&list(token.as_deref()), &Conditions::default()).await;
        let Ok(Reply::Tasks(page)) = reply else { panic!("{:?}: {reply:?}", client.combination) };
        pages.push(page.tasks.len());
        ids.extend(page.tasks.iter().map(|shown| shown.task.id.clone()));
        if page.next_page_token.is_empty() {
            let all = ids.len();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), all, "no task is on two pages");
            return pages;
        }
        token = Some(page.next_page_token);
    }
}

#[tokio::test]
async fn a_page_weighs_as_much_as_it_may_and_no_more_in_every_version_and_binding() {
    // A task with a text of so many bytes has it twice, in its history and in its artifact, and counts 64 bytes more.
    let weight = |text: usize| 64 + 2 * text + "complete ".len();
    let server = limited(&format!("answer_bytes = {}", 2 * weight(1000)));
    for bytes in [1000, 1000, 1000, 1001, 1000, 50_000, 1000] {
        assert_eq!(
            server.send(&format!("complete {}", "x".repeat(bytes))).await["task"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
    }
    for combination in Combination::ALL.into_iter().filter(|combination| can_list(*combination)) {
        let client = WireClient::new(server.url(), combination);
        // The newest first. One that is larger than a page by itself is a page; one byte too many is the next page's.
        assert_eq!(pages(&client).await, [1, 1, 1, 1, 2, 1], "{combination:?}");
    }
}

/// A task of at least so many bytes, which waits for its caller.
async fn large(server: &Server, bytes: usize) -> String {
    let sent = server.send(&format!("ask {}", "x".repeat(bytes))).await;
    sent["task"]["id"].as_str().expect("a task").to_owned()
}

#[tokio::test]
async fn answers_of_one_caller_that_nobody_reads_are_held_at_their_bytes_in_every_binding() {
    let server = limited("answering_bytes_per_caller = 3000000");
    let id = large(&server, 1_000_000).await;
    // An answer of 2 MB that nobody reads, and then a second one is too much.
    let windowless =
        reqwest::Client::builder().http2_prior_knowledge().http2_initial_stream_window_size(0).build().expect("a client");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": id } });
    let unread = windowless.post(server.url()).header("A2A-Version", "1.0").json(&body).send().await.unwrap();
    assert_eq!(unread.status(), 200);
    for combination in Combination::ALL {
        let client = WireClient::new(server.url(), combination);
        let get = Request::GetTask(GetTask { tenant: None, id: id.as_str().into(), history_length: None });
        for request in [Some(get), can_list(combination).then(|| list(None))].into_iter().flatten() {
            let refused = client.call(&request, &Conditions::default()).await.expect_err("there is no room");
            refused.check(ErrorKind::Unavailable, combination).unwrap_or_else(|fault| panic!("{combination:?}: {fault}"));
            assert!(refused.message().contains("limits.answering_bytes_per_caller"), "{combination:?}: {refused:?}");
        }
    }
    assert_eq!(server.send("complete it").await["task"]["status"]["state"], "TASK_STATE_COMPLETED", "what is small is answered");
    let page = server.call("ListTasks", json!({ "includeArtifacts": true })).await;
    let ended_early = page["result"]["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1);
    assert!(ended_early && page["result"]["nextPageToken"] != "", "a page ends before what there is no room for: {page}");
    let again = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body).send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    assert_refused(&again.json().await.unwrap(), UNAVAILABLE, "limits.answering_bytes_per_caller");
    drop(unread);
    crate::support::patience::soon("there is room again", async || {
        let answer = server.call("GetTask", json!({ "id": id })).await;
        (answer["result"]["id"] == id.as_str()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn answers_of_a_node_that_nobody_reads_are_held_at_their_bytes() {
    let (each, context) = (100_000, |name: &str| CallContext { caller: Caller::new("default", name), ..BareService::context() });
    let bare_service = BareService::new(MemoryStore::new(), BuiltIn::Conformance.runner(), TaskLimits::default());
    let mut ids = Vec::new();
    let mut weight = 0;
    for name in ["a", "b", "c"] {
        let task = bare_service.send_with(&context(name), &format!("complete {}", "x".repeat(each)), false).await.unwrap();
        ids.push((context(name), task.id.clone()));
        weight = 2 * each as u64 + "complete ".len() as u64 + 3 * 64;
    }
    let get = async |which: usize| {
        let (context, id) = &ids[which];
        let get = Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None });
        bare_service.chancery.call_until(context, get, None).await
    };
    let limited = |answering_bytes_per_node| TaskLimits { answering_bytes_per_node, ..TaskLimits::default() };
    bare_service.chancery.set_limits(limited(2 * weight));
    let (first, second) = (get(0).await.unwrap(), get(1).await.unwrap());
    assert!(matches!(first, Answer::Large(..)) && matches!(second, Answer::Large(..)));
    let refused = get(2).await.unwrap_err();
    assert_eq!(refused.facts, [("limit", "limits.answering_bytes_per_node".to_owned())]);
    // A call that has changed something is answered all the same: its caller has nothing unread.
    let sent = bare_service.send_with(&ids[2].0, &format!("complete {}", "x".repeat(each)), false).await;
    assert!(sent.is_ok());
    drop(first);
    get(2).await.unwrap();
    bare_service.chancery.set_limits(limited(2 * weight - 1));
    assert!(get(2).await.is_err(), "one byte too many");
}
