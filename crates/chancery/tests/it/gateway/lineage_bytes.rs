//! What lineage adds to the call of an agent: where it goes, how many bytes it has, and that it stays small from node to node.

use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted, card};
use super::{ANYWHERE_HERE, QUICK, in_front_of_with};
use crate::operating::cli::run;
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

const OURS: &str = "https://chancery.dev/a2a/governance/v1";
const IDENTITY: &str = "urn:chancery:identity:v1";
/// The longest name that an agent can have.
const NAME: usize = 64;
/// The bytes of a request that hands over memory, with all that lineage adds to it.
const FIRST_HOP: usize = 1_200;
const FIRST_HOP_ORIGINAL: usize = 1_344;
const FOUR_NODES: usize = 2_048;

/// An agent with these extensions that works on a task until its caller has looked.
async fn agent(extensions: &[&str], metadata: Value) -> Scripted {
    let extensions: Vec<Value> = extensions.iter().map(|uri| json!({ "uri": uri })).collect();
    Scripted::start(|url| {
        let mut page = card(url, json!({ "streaming": true, "extensions": extensions }));
        page["metadata"] = metadata;
        let page = Script::json(&page);
        move |asked: &Asked| match asked.path.contains(".well-known") {
            true => page.clone(),
            false => Script::result(asked, &done(asked)),
        }
    })
    .await
}

/// In 1.0 the task is a member of the answer, in the original protocol it is the answer.
fn done(asked: &Asked) -> Value {
    match asked.kind().as_str() {
        "tasks/send" => json!({ "id": asked.params()["id"], "status": { "state": "completed" } }),
        _ => json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } }),
    }
}

/// A message that hands over memory in a tier whose path has 131 characters.
fn handoff() -> Value {
    let data_ref = format!("file:///{}/collections/0123456789abcdef.ruvec", "t".repeat(131 - 8));
    let witness = json!({ "witness": "ab".repeat(32), "data_ref": data_ref, "capabilities": ["read", "write", "search"] });
    let kind = json!({ "ruvector": { "artifact_kind": "RuLakeWitness", "grant": "0".repeat(36) } });
    json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "data": witness, "metadata": kind }] })
}

async fn send(url: &str, headers: &[(&str, &str)]) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": handoff() } });
    let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("the node answers").json().await.expect("with JSON")
}

/// The bytes of the headers that speak of lineage.
fn header_bytes(asked: &Asked) -> usize {
    let ours = ["traceparent", "tracestate", "chancery-hop-token"];
    let line = |name: &str| asked.headers.get(name).map_or(0, |value| name.len() + value.len() + 4);
    ours.into_iter().map(line).sum()
}

/// How often the token of a call is in it.
fn tokens(asked: &Asked) -> usize {
    asked.body.matches(r#""hop_token":"#).count() + usize::from(asked.headers.contains_key("chancery-hop-token"))
}

fn asked_of(agent: &Scripted) -> Asked {
    // Beside the message the gateway may ask for the card that is for callers with credentials.
    agent.calls().into_iter().rfind(|asked| asked.body.contains("data_ref")).expect("it was sent the message")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_gets_lineage_where_its_card_its_version_or_a_setting_says() {
    let vendor = json!({ "ruvector": { "artifact_kind_version": "v1" } });
    let cases: [(&[&str], Value, &str, [bool; 4]); 8] = [
        // In the header, in our member, in the ADR's, and the context in one of them.
        (&[], Value::Null, "", [true, false, false, false]),
        (&[], Value::Null, "version = '0.3'", [true, false, false, false]),
        (&[OURS], Value::Null, "", [false, true, false, true]),
        (&[OURS, IDENTITY], Value::Null, "", [true, false, false, true]),
        (&[], vendor, "", [false, false, true, true]),
        (&[], Value::Null, "lineage = 'metadata'", [false, true, false, true]),
        (&[OURS], Value::Null, "lineage = 'header'", [true, false, false, false]),
        (&[], Value::Null, "version = 'original'", [true, true, false, true]),
    ];
    for (extensions, metadata, setting, [in_header, in_ours, in_vendor, context]) in cases {
        let what = format!("{extensions:?} {metadata} {setting}");
        let agent = agent(extensions, metadata).await;
        let gateway = in_front_of_with(&agent.url(), QUICK, setting);
        let answer = send(gateway.url(), &[]).await;
        assert!(answer.to_string().contains("COMPLETED"), "{what}: {answer}");
        let asked = asked_of(&agent);
        let said = &asked.params()["metadata"];
        assert_eq!(asked.headers.contains_key("chancery-hop-token"), in_header, "{what}: {:?}", asked.headers);
        assert_eq!(said[OURS]["hop_token"].is_string(), in_ours, "{what}: {said}");
        assert_eq!(said["ruvector"]["hop_token"].is_string(), in_vendor, "{what}: {said}");
        let contexts = [OURS, "ruvector"].iter().filter(|member| said[**member]["context"].is_object()).count();
        assert_eq!(contexts, usize::from(context), "{what}: {said}");
        let original = setting.contains("original");
        assert_eq!(tokens(&asked), 1 + usize::from(original), "{what}: once, and in the original protocol in both places");
        assert!(asked.headers["tracestate"].contains("@chancery="), "{what}");
        println!("{what}: {} B of headers, {} B of body", header_bytes(&asked), asked.body.len());
    }
}

/// Four nodes in a row, each with an agent whose name is as long as it may be, and last an agent elsewhere.
async fn row(agent: &Scripted, setting: &str) -> Vec<Server> {
    let mut nodes: Vec<Server> = Vec::new();
    let mut next = agent.url();
    for letter in ["d", "c", "b", "a"] {
        let name = letter.repeat(NAME);
        let setting = if nodes.is_empty() { setting } else { "" };
        let home = Home::new();
        let config =
            format!("{QUICK}{ANYWHERE_HERE}[budget.tree]\nmax_usd = '0.50'\n[agents.{name}]\nurl = '{next}'\n{setting}\n");
        let node = Setup::at(&home, lasting_address()).config(&config).start();
        next = format!("{}/agents/{name}", node.url());
        nodes.push(node);
    }
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lineage_stays_small_over_four_nodes_with_the_longest_names() {
    for (what, extensions, setting) in [
        ("a node", &[OURS, IDENTITY][..], ""),
        ("an agent with the extension", &[OURS][..], ""),
        ("any agent", &[][..], ""),
        ("the original protocol", &[][..], "version = 'original'"),
    ] {
        let agent = agent(extensions, Value::Null).await;
        let nodes = row(&agent, setting).await;
        let through = async |node: &Server, letter: &str| {
            let answer = send(&format!("{}/agents/{}", node.url(), letter.repeat(NAME)), &[]).await;
            assert!(answer.to_string().contains("COMPLETED"), "{what}: {answer}");
            asked_of(&agent)
        };
        let asked = through(&nodes[0], "d").await;
        println!("{what}: first hop {} B of body, {} B of headers", asked.body.len(), header_bytes(&asked));
        // The original protocol has the context twice: the ADR wants it in the metadata, rvagent-a2a beside the message.
        let most = if setting.is_empty() { FIRST_HOP } else { FIRST_HOP_ORIGINAL };
        assert!(asked.body.len() <= most, "{what}: {}: {}", asked.body.len(), asked.body);
        let asked = through(&nodes[3], "a").await;
        println!("{what}: after four nodes {} B of body, {} B of headers", asked.body.len(), header_bytes(&asked));
        assert!(asked.body.len() <= FOUR_NODES, "{what}: {}: {}", asked.body.len(), asked.body);
        let state = &asked.headers["tracestate"];
        assert_eq!(state.matches("@chancery=").count(), 4, "{what}: every node can be found again: {state}");
        let said = &asked.params()["metadata"];
        let context = if extensions.is_empty() { &said["ruvector"]["context"] } else { &said[OURS]["context"] };
        let path = context["visited_agents"].as_array().cloned().unwrap_or_default();
        let text = |agent: &Value| agent.as_str().unwrap_or_default().to_owned();
        let path: Vec<String> = path.iter().map(text).collect();
        match (setting, extensions) {
            ("", []) => assert!(path.is_empty(), "{what}: {said}"),
            ("", _) => {
                let tagged: Vec<&str> = path.iter().filter_map(|agent| agent.rsplit_once('#')).map(|(name, _)| name).collect();
                assert_eq!(tagged, ["a", "b", "c", "d"].map(|letter| letter.repeat(NAME)), "{what}: {path:?}");
            }
            _ => {
                // Of agents of other nodes only the tag is known here.
                let is_id = |agent: &str| agent.len() == 64 && agent.bytes().all(|byte| byte.is_ascii_hexdigit());
                let known = path.iter().filter(|agent| is_id(agent) || agent.contains('#'));
                assert_eq!(known.count(), 4, "{what}: {path:?}");
                assert!(path.last().is_some_and(|own| is_id(own)), "{what}: {path:?}");
            }
        }
        assert!(extensions.is_empty() || said[OURS]["budget"]["usd"] == "0.50", "{what}: the cap goes with it: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lineage_adds_is_bounded_by_a_setting_and_shown_by_explain() {
    for (max_bytes, has_token) in [(2_048, true), (256, false)] {
        let agent = agent(&[OURS], Value::Null).await;
        let config = format!("{QUICK}[lineage]\nmax_bytes = {max_bytes}\n");
        let gateway = in_front_of_with(&agent.url(), &config, "");
        let sent = send(gateway.url(), &[]).await;
        let task = sent["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
        let asked = asked_of(&agent);
        let said = asked.params()["metadata"].to_string();
        let added = header_bytes(&asked) + if said == "null" { 0 } else { said.len() };
        assert!(added <= max_bytes, "{max_bytes}: {added}");
        assert_eq!(said.contains("hop_token"), has_token, "{said}");
        let explained = run(gateway.home(), ["explain", &task, "--json"]).json();
        let shown = &explained["lineage_sent"];
        assert_eq!((&shown["by"], &shown["max_bytes"]), (&json!("metadata"), &json!(max_bytes)), "{explained}");
        assert_eq!(shown["bytes"], json!(added), "{explained}");
        assert_eq!(shown["cut"], json!(!has_token), "{explained}");
        let selector = explained["verdicts"].as_array().unwrap().iter().find(|verdict| verdict["rule"] == "selector").unwrap();
        for fact in [json!(["lineage", "metadata"]), json!(["lineage_max_bytes", max_bytes])] {
            assert!(selector["facts"].as_array().unwrap().contains(&fact), "{fact}: {selector}");
        }
        let text = run(gateway.home(), ["explain", &task]).stdout;
        assert!(text.contains(&format!("{added} bytes of lineage by metadata, of at most {max_bytes}")), "{text}");
    }
}

/// The AgentIDs on the cards of a node's agents.
fn agent_id(home: &Home, agent: &str) -> String {
    let keys = run(home, ["keys", "show", "--json"]).json();
    let of_agent = |key: &&Value| key["owner"] == agent && key["agent_id"].is_string();
    keys["keys"].as_array().expect("keys").iter().find(of_agent).expect("a key")["agent_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_and_an_allowlist_know_an_agent_by_its_name_and_by_its_agent_id() {
    let home = Home::new();
    let start = |allowed: &str| {
        let config = format!("[recursion]\nrevisit_allowlist = [{allowed}]\n[agents.conformance]\nrun = 'conformance'\n");
        Setup::in_home(&home).config(&config).start()
    };
    let claim = async |node: &Server, agent: &str| -> String {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
        let context = json!({ "depth": 1, "visited_agents": ["somebody", agent] });
        let params = json!({ "message": message, "metadata": { "ruvector": { "context": context } } });
        node.call("SendMessage", params).await.to_string()
    };
    let node = start("");
    let id = agent_id(&home, "conformance");
    let names = ["conformance".to_owned(), id.clone(), format!("conformance#{}", &id[..8]), format!("peer#{}", &id[..8])];
    for name in &names {
        let refused = claim(&node, name).await;
        assert!(
            refused.contains("RECURSION_REVISIT") && refused.contains("somebody → conformance → conformance"),
            "{name}: {refused}"
        );
    }
    for other in ["conformance#00000000", &"0".repeat(64), "other"] {
        let taken = claim(&node, other).await;
        assert!(taken.contains("TASK_STATE_COMPLETED"), "{other}: {taken}");
    }
    node.kill();
    for allowed in ["conformance", &id, &names[2]] {
        let node = start(&format!("'{allowed}'"));
        let taken = claim(&node, &id).await;
        assert!(taken.contains("TASK_STATE_COMPLETED"), "{allowed}: {taken}");
        node.kill();
    }
    // Who is nobody here is a fault, unless it may come later.
    let unknown = "f".repeat(64);
    let file = home.path().join("allow.toml");
    let config =
        |allowed: &str| format!("[recursion]\nrevisit_allowlist = ['{allowed}']\n[agents.conformance]\nrun = 'conformance'\n");
    for (allowed, code) in [("conformance", 0), (&*id, 0), ("conformnace", 2), (&*unknown, 2)] {
        std::fs::write(&file, config(allowed)).unwrap();
        let ran = run(&home, ["validate", file.to_str().unwrap()]);
        assert_eq!(ran.code, Some(code), "{allowed}: {} {}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.contains("recursion.revisit_allowlist"), code != 0, "{allowed}: {}", ran.stdout);
    }
    assert_eq!(run(&home, ["validate", "--unknown-ok", file.to_str().unwrap()]).code, Some(0));
}

/// Nodes that pass a task round: each lists the next by the same name, and the last lists the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rings_of_two_and_three_nodes_are_refused_at_the_second_visit_and_their_agents_told_apart() {
    // Without a look at signatures a node knows the next one's agent by its own card alone.
    for (count, verify, told_apart) in [(2, "off", 1), (3, "off", 2), (3, "if-present", 1)] {
        let places: Vec<_> = (0..count).map(|_| lasting_address()).collect();
        let node = |place: usize| {
            let next = places[(place + 1) % count];
            let config = format!("{QUICK}{ANYWHERE_HERE}[agents.peer]\nurl = 'http://{next}'\nverify = '{verify}'\n");
            Setup::at(&Home::new(), places[place]).config(&config).start()
        };
        let nodes: Vec<Server> = (0..count).map(node).collect();
        let tasks = async |node: &Server| {
            let listed = node.call("ListTasks", json!({})).await;
            listed["result"]["tasks"].as_array().map_or(0, Vec::len)
        };
        // A node that was started before the next one has to have seen the card of that.
        let (before, answer) = soon("every node knows the next", async || {
            let mut before = Vec::new();
            for node in &nodes {
                before.push(tasks(node).await);
            }
            let answer = send(nodes[0].url(), &[]).await.to_string();
            answer.contains("RECURSION_").then_some((before, answer))
        })
        .await;
        assert!(answer.contains("RECURSION_REVISIT") && !answer.contains("COMPLETED"), "{count}: {answer}");
        // The agent of this node by its name, and those of the others by the same name with their AgentIDs.
        let path = answer.split("answer to this chain of calls: ").nth(1).and_then(|rest| rest.split(" attribution").next());
        let path = path.unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(path.matches("peer#").count(), told_apart, "{count} {verify}: {path}");
        for (node, before) in nodes.iter().zip(before) {
            assert!(tasks(node).await <= before + 1, "{count}: one visit each");
        }
    }
}
