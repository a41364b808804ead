//! Agents that deviate from the text of their version in one way each. Every one of them says the same words.

use serde_json::{Value, json};

use super::WORDS;
use crate::gateway::scripted::{Asked, Script};

const TIME: &str = "2026-11-16T15:34:05.623625";

/// What an agent answers to a method, given the request.
pub(super) type Answers = Box<dyn Fn(&Asked) -> Script + Send + Sync>;

/// One agent. Its address stands in for `{url}` in the card.
pub(super) struct ShapeAgent {
    pub(super) name: &'static str,
    pub(super) card: Value,
    pub(super) unary: Answers,
    pub(super) stream: Answers,
    pub(super) get: Answers,
    /// Nothing where the words arrive; otherwise what the reason of the failure must contain.
    pub(super) fails_with: Option<&'static [&'static str]>,
    /// The host that an operator types.
    pub(super) typed: &'static str,
}

fn base_card() -> Value {
    json!({
        "name": "Shape", "description": "Deviates in one way.", "version": "1", "capabilities": { "streaming": true },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "Says it.", "tags": ["test"] }],
    })
}

fn card_1_0() -> Value {
    let mut card = base_card();
    card["supportedInterfaces"] = json!([{ "url": "{url}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }]);
    card
}

fn card_0_3() -> Value {
    let mut card = base_card();
    (card["url"], card["protocolVersion"], card["preferredTransport"]) = (json!("{url}"), json!("0.3.0"), json!("JSONRPC"));
    card
}

/// A status, with or without a time.
fn status(state: &str, time: Option<&str>) -> Value {
    let mut status = json!({ "state": state });
    if let Some(time) = time {
        status["timestamp"] = json!(time);
    }
    status
}

/// A task of 1.0 with a good time, and the words in an artifact if it has ended.
fn task(state: &str) -> Value {
    timed_task(state, Some(&format!("{TIME}Z")))
}

fn timed_task(state: &str, time: Option<&str>) -> Value {
    let mut task = json!({ "id": "t", "contextId": "c", "status": status(state, time) });
    if state.to_lowercase().ends_with("completed") {
        task["artifacts"] = json!([{ "artifactId": "a", "parts": [{ "text": WORDS }] }]);
    }
    task
}

fn update(state: &str) -> Value {
    json!({ "taskId": "t", "contextId": "c", "status": status(state, Some(&format!("{TIME}Z"))) })
}

fn piece(text: &str) -> Value {
    json!({ "taskId": "t", "contextId": "c", "artifact": { "artifactId": "a", "parts": [{ "text": text }] } })
}

/// The same object as 0.3 writes it: known by its `kind`, and so are its parts.
fn of_kind(kind: &str, mut object: Value) -> Value {
    object["kind"] = json!(kind);
    for parts in ["/artifact/parts", "/artifacts/0/parts", "/parts"] {
        for part in object.pointer_mut(parts).and_then(Value::as_array_mut).into_iter().flatten() {
            part["kind"] = json!("text");
        }
    }
    object
}

fn message() -> Value {
    json!({ "messageId": "answer", "role": "ROLE_AGENT", "parts": [{ "text": WORDS }] })
}

fn working() -> Value {
    json!({ "task": task("TASK_STATE_WORKING") })
}

fn completed() -> Value {
    json!({ "statusUpdate": update("TASK_STATE_COMPLETED") })
}

fn good_events() -> Vec<Value> {
    vec![working(), json!({ "artifactUpdate": piece(WORDS) }), completed()]
}

fn good_events_0_3() -> Vec<Value> {
    vec![
        of_kind("task", task("working")),
        of_kind("artifact-update", piece(WORDS)),
        of_kind("status-update", update("completed")),
    ]
}

fn json_answer(result: Value) -> Answers {
    Box::new(move |asked| Script::result(asked, &result))
}

fn error(code: i64, message: &'static str) -> Answers {
    Box::new(move |asked| Script::error(asked, code, message))
}

fn page(status: u16, kind: &'static str, body: &'static str) -> Answers {
    Box::new(move |_| Script::page(status, kind, body))
}

fn events(events: Vec<Value>) -> Answers {
    Box::new(move |asked| Script::events(asked, &events).end())
}

/// A body of server-sent events, framed by the test.
fn framed(events: Vec<Value>, frame: fn(&str) -> String) -> Answers {
    Box::new(move |asked| {
        let call: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let wrap = |event: &Value| json!({ "jsonrpc": "2.0", "id": call["id"], "result": event });
        let body: String =
            events.iter().map(|event| frame(&serde_json::to_string_pretty(&wrap(event)).unwrap_or_default())).collect();
        Script::page(200, "text/event-stream", &body)
    })
}

fn one_line(pretty: &str) -> String {
    serde_json::from_str::<Value>(pretty).unwrap_or_default().to_string()
}

fn not_found() -> Answers {
    error(-32001, "Task not found")
}

impl ShapeAgent {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            card: card_1_0(),
            unary: json_answer(json!({ "task": task("TASK_STATE_COMPLETED") })),
            stream: events(good_events()),
            get: json_answer(task("TASK_STATE_COMPLETED")),
            fails_with: None,
            typed: "127.0.0.1",
        }
    }

    fn new_0_3(name: &'static str) -> Self {
        let done = of_kind("task", task("completed"));
        let (unary, stream, get) = (json_answer(done.clone()), events(good_events_0_3()), json_answer(done));
        Self { card: card_0_3(), unary, stream, get, ..Self::new(name) }
    }

    fn unary(self, unary: Answers) -> Self {
        Self { unary, ..self }
    }

    fn stream(self, stream: Answers) -> Self {
        Self { stream, ..self }
    }

    fn get(self, get: Answers) -> Self {
        Self { get, ..self }
    }

    fn card(mut self, edit: impl FnOnce(&mut Value)) -> Self {
        edit(&mut self.card);
        self
    }

    fn url(self, url: &'static str) -> Self {
        self.card(|card| card["supportedInterfaces"][0]["url"] = json!(url))
    }

    fn fails(self, with: &'static [&'static str]) -> Self {
        Self { fails_with: Some(with), ..self }
    }
}

/// Deviations in what agents answer.
pub(super) fn answers() -> Vec<ShapeAgent> {
    let untimed = |state: &str| timed_task(state, Some(TIME));
    let bare = |name: &'static str| ShapeAgent::new(name);
    let old = |name: &'static str| ShapeAgent::new_0_3(name);
    let in_history = || {
        let mut done = json!({ "id": "t", "contextId": "c", "status": status("TASK_STATE_COMPLETED", None) });
        done["history"] = json!([message()]);
        done
    };
    let mut said = json!({ "statusUpdate": update("TASK_STATE_WORKING") });
    said["statusUpdate"]["status"]["message"] = message();
    let mut stray = of_kind("message", message());
    (stray["role"], stray["taskId"]) = (json!("agent"), json!("nowhere"));
    let grows = |text: &str| {
        let mut grows = json!({ "artifactUpdate": piece(text) });
        grows["artifactUpdate"]["append"] = json!(true);
        grows
    };
    let wat = || json!({ "wat": 1 });
    vec![
        bare("good"),
        old("good in 0.3"),
        bare("updates without a wrapper").get(json_answer(in_history())).stream(events(vec![
            working(),
            of_kind("artifact-update", piece(WORDS)),
            of_kind("status-update", update("TASK_STATE_COMPLETED")),
        ])),
        bare("times without a zone")
            .unary(json_answer(json!({ "task": untimed("TASK_STATE_COMPLETED") })))
            .stream(events(vec![
                json!({ "task": untimed("TASK_STATE_WORKING") }),
                json!({ "artifactUpdate": piece(WORDS) }),
                completed(),
            ]))
            .get(json_answer(untimed("TASK_STATE_COMPLETED"))),
        old("times with an offset, empty, or none").unary(json_answer(of_kind("task", timed_task("completed", None)))).stream(
            events(vec![
                of_kind("task", timed_task("working", Some(&format!("{TIME}+02:00")))),
                of_kind("artifact-update", piece(WORDS)),
                of_kind("status-update", json!({ "taskId": "t", "contextId": "c", "status": status("completed", Some("")) })),
            ]),
        ),
        bare("a unary answer at once").unary(json_answer(json!({ "task": task("TASK_STATE_SUBMITTED") }))),
        bare("append to an unknown artifact, then the whole").stream(events(vec![
            working(),
            grows("alpha "),
            grows("beta "),
            json!({ "artifactUpdate": piece(WORDS) }),
            completed(),
        ])),
        bare("the answer in the history only")
            .unary(json_answer(json!({ "task": in_history() })))
            .stream(events(vec![working(), said, completed()]))
            .get(json_answer(in_history())),
        old("the wrapper of 1.0 in 0.3").unary(json_answer(json!({ "task": task("completed") }))).stream(events(vec![
            json!({ "task": task("working") }),
            json!({ "artifactUpdate": piece(WORDS) }),
            json!({ "statusUpdate": update("completed") }),
        ])),
        old("a message that names an unknown task")
            .unary(json_answer(stray.clone()))
            .stream(events(vec![stray]))
            .get(not_found()),
        bare("JSON without an envelope").stream(Box::new(|_| {
            let body: String = good_events().iter().map(|event| format!("data: {event}\n\n")).collect();
            Script::page(200, "text/event-stream", &body)
        })),
        bare("JSON for a stream").stream(json_answer(json!({ "task": task("TASK_STATE_COMPLETED") }))),
        bare("an error that says no streaming").stream(error(-32004, "Streaming is not supported by the agent")),
        bare("a stream for JSON").unary(events(good_events())),
        bare("one unreadable event").get(not_found()).stream(events(vec![
            working(),
            wat(),
            json!({ "artifactUpdate": piece(WORDS) }),
            completed(),
        ])),
        bare("an unreadable stream with a task behind it").stream(events(vec![working(), wat(), wat()])),
        bare("nothing readable")
            .unary(json_answer(wat()))
            .stream(events(vec![wat(), wat()]))
            .get(not_found())
            .fails(&["agent front: "]),
        bare("a stream without an end").stream(events(vec![working(), json!({ "artifactUpdate": piece(WORDS) })])),
        bare("HTTP 500 as text")
            .unary(page(500, "text/plain", "Internal Server Error"))
            .stream(page(500, "text/plain", "Internal Server Error"))
            .get(not_found())
            .fails(&["500", "Internal Server Error"]),
        bare("a JSON-RPC error under HTTP 400")
            .unary(page(400, "application/json", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"model down"}}"#))
            .stream(page(
                400,
                "application/json",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"model down"}}"#,
            ))
            .get(not_found())
            .fails(&["model down"]),
        old("ids left out")
            .unary(json_answer(
                json!({ "id": "t", "status": { "state": "completed" }, "artifacts": [{ "parts": [{ "text": WORDS }] }] }),
            ))
            .stream(events(vec![
                json!({ "id": "t", "status": { "state": "working" } }),
                json!({ "taskId": "t", "artifact": { "parts": [{ "text": WORDS }] } }),
                json!({ "taskId": "t", "status": { "state": "completed" } }),
            ])),
        old("the task after its end").stream(events(vec![
            of_kind("status-update", update("working")),
            of_kind("status-update", update("completed")),
            of_kind("task", task("completed")),
        ])),
    ]
}

/// Deviations in how a stream is framed.
pub(super) fn framings() -> Vec<ShapeAgent> {
    let new = |name: &'static str, frame: fn(&str) -> String| ShapeAgent::new(name).stream(framed(good_events(), frame));
    vec![
        new("data over many lines, CRLF", |pretty| {
            let lines: String = pretty.lines().map(|line| format!("data: {line}\r\n")).collect();
            format!("{lines}\r\n")
        }),
        new("CR only", |pretty| format!("data: {}\r\r", one_line(pretty))),
        new("no space, comments, names", |pretty| format!(": hi\nevent: message\nretry: 5\ndata:{}\n\n", one_line(pretty))),
        new("control bytes around the JSON", |pretty| format!("data: \u{1}{}\u{1e}\n\n", one_line(pretty))),
        ShapeAgent::new("a byte order mark, and [DONE] at the end").stream(Box::new(|asked| {
            let call: Value = serde_json::from_str(&asked.body).unwrap_or_default();
            let wrap = |event: &Value| json!({ "jsonrpc": "2.0", "id": call["id"], "result": event });
            let events: String = good_events().iter().map(|event| format!("data: {}\n\n", wrap(event))).collect();
            Script::page(200, "text/event-stream", &format!("\u{feff}: hi\n\n{events}data: {{}}\n\ndata: [DONE]\n\n"))
        })),
        ShapeAgent::new("no blank line at the end").stream(Box::new(|asked| {
            let call: Value = serde_json::from_str(&asked.body).unwrap_or_default();
            let wrap = |event: &Value| json!({ "jsonrpc": "2.0", "id": call["id"], "result": event });
            let events: Vec<String> = good_events().iter().map(|event| format!("data: {}", wrap(event))).collect();
            Script::page(200, "text/event-stream", &events.join("\n\n"))
        })),
    ]
}

/// Deviations in cards and addresses.
pub(super) fn cards() -> Vec<ShapeAgent> {
    let new = |name: &'static str| ShapeAgent::new(name);
    let without = |name: &'static str, member: &'static str| {
        new(name).card(|card| {
            card.as_object_mut().and_then(|card| card.remove(member));
        })
    };
    vec![
        new("the card says localhost").url("http://localhost:{port}/"),
        new("the card says 0.0.0.0").url("http://0.0.0.0:{port}/"),
        new("the card says ::1").url("http://[::1]:{port}/"),
        new("the card names another host").url("http://192.0.2.77:{port}/"),
        new("the card names another port").url("http://127.0.0.1:1/"),
        new("a relative address").url("/"),
        new("an empty address").url(""),
        new("an address without a scheme").url("127.0.0.1:{port}/"),
        new("a placeholder for an address").url("dummy"),
        ShapeAgent { typed: "localhost", ..new("the operator types localhost") },
        without("no description", "description"),
        without("no version", "version"),
        without("no capabilities", "capabilities"),
        without("no skills", "skills"),
        new("no version of the interface").card(|card| {
            card["supportedInterfaces"][0].as_object_mut().and_then(|interface| interface.remove("protocolVersion"));
            (card["protocolVersion"], card["url"], card["preferredTransport"]) = (json!("0.3"), json!("{url}"), json!("JSONRPC"));
        }),
        new("no description of a skill").card(|card| {
            card["skills"][0].as_object_mut().and_then(|skill| skill.remove("description"));
        }),
        new("null for absent").card(|card| (card["capabilities"], card["provider"]) = (Value::Null, Value::Null)),
    ]
}
