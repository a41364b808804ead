//! Agents whose answers to a message are none.

use chancery_protocol::{CancelTask, Reply, Request, Sent};
use serde_json::json;

use super::{HASTY_MS, Outcome, PATIENT_MS, everybody_gets, everybody_gets_after, fast, message};
use crate::gateway::scripted::{Asked, Script, Scripted};
use crate::gateway::{in_front_of, streaming_from};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::wire_client::{Combination, Conditions, WireClient};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_never_answers_fails_the_task() {
    let agent = Scripted::agent(|_| Script::default().hang()).await;
    everybody_gets_after(HASTY_MS, &agent, &Outcome::failed("the agent did not answer in time", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_answered_with_503_is_not_sent_again() {
    let agent = Scripted::agent(|_| Script::page(503, "text/plain", "later")).await;
    everybody_gets(&agent, &Outcome::failed("HTTP 503: later", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_answers_a_byte_at_a_time_runs_out_of_time() {
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n".to_owned() + &" ".repeat(4000);
    let agent = Scripted::agent(move |_| Script::default().drip(head.clone())).await;
    everybody_gets_after(HASTY_MS, &agent, &Outcome::failed("the agent did not answer in time", &[])).await;
}

/// A whole answer where a stream was asked for, whose head is there at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_begins_to_answer_and_goes_on_a_byte_at_a_time_runs_out_of_time() {
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n";
    let agent = Scripted::agent(move |_| Script::default().write(head).drip(" ".repeat(4000))).await;
    everybody_gets_after(HASTY_MS, &agent, &Outcome::failed("the agent did not answer in time", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_another_type_is_none() {
    let agent = Scripted::agent(|_| Script::page(200, "text/html", "<p>welcome</p>")).await;
    everybody_gets(&agent, &Outcome::failed("the agent's answer was not understood: it answered with bytes that are not A2A 1.0: it is \"text/html\" and not JSON", &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_breaks_off_is_no_answer() {
    let agent = Scripted::agent(|_| Script::page(200, "application/json", r#"{"jsonrpc":"2.0","id":1,"result":{"ta"#)).await;
    everybody_gets(
        &agent,
        &Outcome::failed("the agent's answer was not understood: it answered with bytes that are not A2A 1.0: not JSON", &[]),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_an_end_is_cut_off() {
    let head = "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n";
    let agent = Scripted::agent(move |_| Script::default().write(head).forever(vec![b' '; 8192])).await;
    everybody_gets(&agent, &Outcome::failed("the agent's answer was not understood: the answer is longer than 65536 bytes", &[]))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_fails_again_and_again_is_left_alone_and_callers_are_told_at_once() {
    let agent = Scripted::agent(|_| Script::page(503, "text/plain", "later")).await;
    let gateway = streaming_from(&agent.url(), "[health]\nfailures = 3\ncooldown_ms = 600000\nmax_cooldown_ms = 600000\n");
    for (round, combination) in Combination::ALL.into_iter().enumerate() {
        let client = WireClient::new(gateway.url(), combination);
        let sent = client.call(&Request::SendMessage(message(combination, "own")), &Conditions::default()).await;
        match sent {
            Ok(Reply::Sent(Sent::Task(shown))) if round < 3 => {
                let told = Outcome::failed("HTTP 503: later", &[]);
                assert_eq!(Outcome::of(&shown.task), told, "{}", combination.name());
            }
            Err(refused) if round >= 3 => {
                let told = format!("{refused:?}");
                assert!(
                    told.contains(
                        "no replica can take this task now (last failure: agent front: HTTP 503: later); try again later"
                    ),
                    "{}: {told}",
                    combination.name()
                );
            }
            other => panic!("{}: {other:?}", combination.name()),
        }
    }
    assert_eq!(agent.calls().len(), 3, "then nobody asked it any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_not_there_fails_the_task_whether_it_ever_was_or_not() {
    let agent = Scripted::agent(|_| Script::default()).await;
    let url = agent.url();
    let gateway = streaming_from(&url, &fast(PATIENT_MS));
    drop(agent);
    soon("nobody listens there", async || {
        tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.is_err().then_some(())
    })
    .await;
    let never = streaming_from(&url, &fast(PATIENT_MS));
    for (node, told) in [(&gateway, "the address could not be reached"), (&never, "cannot be reached")] {
        let callers = Combination::ALL.map(|combination| {
            let client = WireClient::new(node.url(), combination);
            async move {
                let sent = client.call(&Request::SendMessage(message(combination, "own")), &Conditions::default()).await;
                let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{}: {sent:?}", combination.name()) };
                Outcome::of(&shown.task)
            }
        });
        for outcome in futures::future::join_all(callers).await {
            assert_eq!(outcome.state, "failed");
            assert!(outcome.said.as_deref().is_some_and(|said| said.contains(told)), "{outcome:?}");
        }
    }
}

/// The agent never says a word, and nobody waits for it any more: it has nothing to do for us from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_cancelled_before_the_agent_answered_is_not_counted_as_open_for_ever() {
    let agent = Scripted::agent(|_| Script::default().hang()).await;
    let gateway = streaming_from(&agent.url(), "[limits]\ncancel_grace_ms = 50\n");
    // Callers of the original name their tasks, so they can speak of one that nobody has seen yet.
    let original = Combination::ALL[6];
    let client = WireClient::new(gateway.url(), original);
    let begun = client.clone();
    let sending =
        tokio::spawn(async move { begun.call(&Request::SendMessage(message(original, "own")), &Conditions::default()).await });
    let open = || run(gateway.home(), ["agents", "health", "front", "--json"]).json()["replicas"][0]["open_tasks"].as_u64();
    soon("the agent is asked", async || (agent.calls().len() == 1).then_some(())).await;
    assert_eq!(open(), Some(1));
    let cancel = Request::CancelTask(CancelTask { tenant: None, id: "own".into(), metadata: None });
    let canceled = client.call(&cancel, &Conditions::default()).await;
    assert!(matches!(&canceled, Ok(Reply::Task(shown)) if Outcome::of(&shown.task).state == "canceled"), "{canceled:?}");
    soon("it has nothing to do for us", async || (open() == Some(0)).then_some(())).await;
    drop(sending.await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_original_that_answers_when_it_is_done_may_take_longer_than_an_answer_may() {
    let agent = Scripted::start(|url| {
        let card = json!({
            "name": "Slow", "description": "Answers when it is done.", "version": "1", "url": url, "capabilities": { "streaming": false },
            "authentication": { "schemes": [] }, "skills": [{ "id": "s", "name": "S", "description": "Does it.", "tags": ["test"] }],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        });
        let card = Script::json(&card);
        move |asked: &Asked| {
            let done = asked.before > 1;
            let artifacts = json!([{ "index": 0, "parts": [{ "type": "text", "text": "late" }] }]);
            let mut task = json!({ "id": asked.task(), "status": { "state": if done { "completed" } else { "working" } } });
            if done {
                task["artifacts"] = artifacts;
            }
            match asked.kind().as_str() {
                "tasks/send" => Script::default().hang(),
                "tasks/get" => Script::result(asked, &task),
                _ => card.clone(),
            }
        }
    })
    .await;
    let gateway = in_front_of(&agent.url(), &fast(1_500));
    let client = WireClient::new(gateway.url(), Combination::ALL[0]);
    let sent = client.call(&Request::SendMessage(message(Combination::ALL[0], "own")), &Conditions::default()).await;
    let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{sent:?}\n{}", gateway.log()) };
    assert_eq!(Outcome::of(&shown.task), Outcome::completed(&["late"]), "{}", gateway.log());
    assert_eq!(agent.count("tasks/send"), 1);
}
