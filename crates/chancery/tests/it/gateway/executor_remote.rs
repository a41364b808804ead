//! The ADR's `executor_remote`: an agent behind a gateway cannot be told from one that is here, over every front and every
//! back.

use std::sync::Arc;

use chancery::agents::BuiltIn;
use chancery::config::AgentConfig;
use chancery::{Config, Executor, Node};
use chancery_protocol::{Binding, GetTask, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskId, Version};

use super::one_way::{cards_of, path};
use super::{ANYWHERE_HERE, CROWD, QUICK, conformance, in_front_of};
use crate::support::wire_client::{Combination, Conditions, RawCall, RawClient, WireClient};
use crate::tasks::scenarios::{CELLS, Matrix};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_the_same_through_a_gateway_over_every_front() {
    let back = conformance();
    let gateway = in_front_of(back.url(), &format!("{QUICK}{CROWD}"));
    let matrix = Matrix::tell(gateway.url(), &Combination::ALL, |_| None).await;
    println!("{}", matrix.table());
    let faults = matrix.faults();
    assert!(faults.is_empty(), "{} failed:\n{}\n{}", faults.len(), faults.join("\n"), gateway.log());
    assert_eq!(matrix.told(), CELLS, "as many as without a gateway");
}

/// What cannot come back from an agent that has no word for it.
fn unsaid(back: Combination) -> impl Fn(&str) -> Option<&'static str> {
    move |story| match (back.version, story) {
        (Version::Original, "reject") => Some("the original says failed for rejected"),
        (Version::Original, "auth-required") => Some("the original says input-required for auth-required"),
        (Version::Original, "message-reply") => Some("the original knows only tasks"),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_is_the_same_through_a_gateway_over_every_back() {
    let back = conformance();
    let cards = cards_of(back.url()).await;
    let tellings = Combination::ALL.map(|combination| {
        let url = format!("{}{}", cards.url(), path(combination));
        async move {
            let gateway = in_front_of(&url, &format!("{QUICK}{CROWD}{ANYWHERE_HERE}"));
            let matrix = Matrix::tell(gateway.url(), &Combination::ALL[..1], unsaid(combination)).await;
            let faults: Vec<String> =
                matrix.faults().into_iter().map(|fault| format!("{}: {fault}", combination.name())).collect();
            println!("{}: {} told", combination.name(), matrix.told());
            if !faults.is_empty() {
                println!("{}", gateway.log());
            }
            faults
        }
    });
    let faults = futures::future::join_all(tellings).await.concat();
    assert!(faults.is_empty(), "{} failed:\n{}", faults.len(), faults.join("\n"));
}

const DIRECTIVES: [&str; 13] = [
    "complete hello",
    "complete",
    "fail no luck",
    "reject not this",
    "ask which colour?",
    "auth please",
    "artifact many",
    "steps 3",
    "stream 3",
    "message hello yourself",
    "tool search",
    "error given up",
    "just an echo",
];

fn message(combination: Combination, text: &str) -> SendMessage {
    let client_task_id = (combination.version == Version::Original).then(|| format!("own {text}").as_str().into());
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "message-1", text)),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id,
        unknown: Default::default(),
    }
}

/// Everything a caller sees when it sends a text, watches another, and looks at the first again: over HTTP the bytes, over
/// gRPC the messages.
async fn seen((client, raw): &(WireClient, RawClient), text: &str) -> Vec<String> {
    let combination = client.combination;
    let none = Conditions::default();
    let mut seen = Vec::new();
    let mut requests = vec![Request::SendMessage(message(combination, text))];
    let mut streamed = message(combination, text);
    streamed.client_task_id = streamed.client_task_id.map(|_| format!("own streamed {text}").as_str().into());
    requests.push(Request::StreamMessage(streamed));
    if let Ok(Reply::Sent(Sent::Task(shown))) = client.call(&requests[0], &none).await {
        let id = shown.client_task_id.map_or_else(|| shown.task.id.clone(), |own| TaskId::from(own.to_string()));
        requests.push(Request::GetTask(GetTask { tenant: None, id, history_length: None }));
        // The original has its callers name their tasks, and one name is one task.
        if combination.version == Version::Original {
            requests.remove(0);
        }
    }
    for request in requests {
        if combination.binding == Binding::Grpc {
            if request.operation().streams() {
                let mut events = client.stream(&request, &none).await.expect("a stream");
                while let Some(event) = events.next().await.expect("an event") {
                    seen.push(format!("{:?} {:?}", event.face, event.event));
                }
            } else {
                seen.push(format!("{:?}", client.call(&request, &none).await));
            }
            continue;
        }
        let call = RawCall::of(combination, &request).expect("every version has it");
        let answer = raw.try_ask(&call).await.expect("an answer");
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().expect("ASCII").to_owned());
        seen.push(format!("{} {kind:?} {}", answer.status(), answer.text().await.expect("to its end")));
    }
    let mut seen: Vec<String> = seen.iter().map(|text| shown_once(&without_times(&Names::default().without(text)))).collect();
    seen.dedup();
    seen
}

/// Takes out an event that the next one repeats as the final one. An agent here says with `auth-required` that its turn is over. One
/// behind a gateway shows it by the end of its stream, so the gateway says it in an event of its own.
fn shown_once(text: &str) -> String {
    let events: Vec<&str> = text.split("\n\n").collect();
    let is_repeated = |place: usize, event: &str| {
        events.get(place + 1).is_some_and(|next| event != *next && event.replace("\"final\":false", "\"final\":true") == *next)
    };
    let shown = events.iter().enumerate().filter(|(place, event)| !is_repeated(*place, event)).map(|(_, event)| *event);
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Takes ids and times out of a text: the first id is 1 wherever it stands, the next one 2.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn without(&mut self, text: &str) -> String {
        let mut rest = String::new();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_');
        let mut word = String::new();
        for c in text.chars().chain(['\n']) {
            if is_word(c) {
                word.push(c);
                continue;
            }
            rest += &self.name(&std::mem::take(&mut word));
            rest.push(c);
        }
        rest
    }

    fn name(&mut self, word: &str) -> String {
        let bytes = word.as_bytes();
        let is_time = word.len() >= 19 && word.starts_with("20") && bytes[4] == b'-' && bytes[10] == b'T';
        let dashes = word.matches('-').count();
        let is_id = word.len() == 36 && dashes == 4;
        if is_time {
            return "TIME".to_owned();
        }
        if !is_id {
            return word.to_owned();
        }
        let place = self.0.iter().position(|known| known == word).unwrap_or_else(|| {
            self.0.push(word.to_owned());
            self.0.len() - 1
        });
        format!("ID-{}", place + 1)
    }
}

/// `Timestamp(…)` in what gRPC answers show.
fn without_times(text: &str) -> String {
    let mut parts = text.split("Timestamp(");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest += "Timestamp(";
        rest += part.split_once(')').map_or(part, |(_, after)| after);
    }
    rest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executor_remote() {
    let local = conformance();
    let gateway = in_front_of(local.url(), QUICK);
    let callers = |url: &str, combination| (WireClient::new(url, combination), RawClient::new(url));
    let comparisons = Combination::ALL.map(|combination| {
        let (here, there) = (callers(local.url(), combination), callers(gateway.url(), combination));
        async move {
            let mut compared = 0;
            for text in DIRECTIVES {
                let (here, there) = (seen(&here, text).await, seen(&there, text).await);
                assert_eq!(here, there, "{text:?} over {}", combination.name());
                assert!(here.len() >= 2, "{here:?}");
                compared += here.len();
            }
            compared
        }
    });
    let compared: usize = futures::future::join_all(comparisons).await.into_iter().sum();
    println!("{compared} answers and streams compared");
}

/// Tasks as JSON, without ids and times, as far as a version has words for them.
async fn done(executor: &Executor, version: Version, text: &str) -> String {
    let told = Message::text(Role::User, "message-1", text);
    let task = executor.run_task(told, None).await.map(|task| serde_json::to_string(&*task).expect("JSON"));
    let task = as_said_in(version, task.unwrap_or_else(|error| format!("{error:?}")));
    Names::default().without(&task)
}

/// Before 1.0 texts and data had no media type to say, and in the original artifacts had numbers and no ids.
fn as_said_in(version: Version, mut task: String) -> String {
    if version == Version::Original {
        let mut pieces = task.split(r#""artifactId":""#);
        let begin = pieces.next().unwrap_or_default().to_owned();
        let named = |piece: &str| format!(r#""artifactId":"{}"#, &piece[piece.find('"').unwrap_or(0)..]);
        task = pieces.map(named).fold(begin, |task, piece| task + &piece);
    }
    match version {
        Version::V1_0 => task,
        _ => ["text/plain", "application/json", "application/vnd.chancery.tool+json"]
            .iter()
            .fold(task, |task, media_type| task.replace(&format!(r#","mediaType":"{media_type}"}}"#), "}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executor_remote_is_executor_local_to_the_byte_over_every_version_and_binding() {
    let back = conformance();
    let cards = cards_of(back.url()).await;
    let config = Config::parse(&format!("{QUICK}{ANYWHERE_HERE}")).expect("a config");
    let agent = BuiltIn::Conformance;
    let mut compared = 0;
    for combination in Combination::ALL {
        let there = AgentConfig::at(format!("{}{}", cards.url(), path(combination)));
        let node = Node::builder().shared_agent("here", agent.card(), agent.runner()).remote_agent("there", there);
        let node = node.config(config.clone()).build().await.expect("a node");
        let (here, there) = (node.executor("here"), node.executor("there"));
        for text in DIRECTIVES {
            let unsaid = ["reject", "auth", "message"].iter().any(|word| text.starts_with(word));
            if combination.version == Version::Original && unsaid {
                continue;
            }
            let (here, there) = (done(&here, combination.version, text).await, done(&there, combination.version, text).await);
            assert_eq!(there, here, "{text:?} over {}", combination.name());
            compared += 1;
        }
    }
    println!("{compared} tasks compared");
    assert_eq!(compared, 7 * DIRECTIVES.len() - 3);
}
