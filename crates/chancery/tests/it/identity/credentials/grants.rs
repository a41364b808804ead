//! What a caller may call: agents, and single skills of them.

use chancery_identity::credentials::KeyHash;
use chancery_protocol::{Binding, GetTask, Message, Metadata, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::json;

use super::{assert_accepted, assert_not_permitted, hello, server};
use crate::support::server::Home;
use crate::support::wire_client::{Combination, RawCall, RawClient};

fn asking(combination: Combination, skill: Option<&str>) -> RawCall {
    let metadata = skill.map(|skill| match json!({ "skill": skill }) {
        serde_json::Value::Object(members) => Metadata::from_object(members),
        _ => unreachable!(),
    });
    let mut message = Message::text(Role::User, "m", "hello");
    message.metadata = metadata;
    let send = SendMessage {
        tenant: None,
        message: message.into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("skill-{}", skill.unwrap_or("no")).into()),
        unknown: Default::default(),
    };
    RawCall::of(combination, &Request::SendMessage(send)).expect("every version can send")
}

/// The same call to the agent of this name. gRPC knows only the first.
fn to_agent(mut call: RawCall, name: &str) -> RawCall {
    call.path = format!("/agents/{name}{}", call.path);
    call
}

#[tokio::test]
async fn a_caller_calls_the_agents_and_skills_it_was_granted_and_no_others() {
    let home = Home::new();
    let caller = |name: &str, grants: &str| {
        format!("[callers.{name}]\nkey_hash = '{}'\nmay_call = {grants}\n", KeyHash::of(&format!("the-key-of-{name}-alone")))
    };
    let config = [
        "[agents.first]\nrun = 'echo'\n[agents.second]\nrun = 'echo'\n".to_owned(),
        caller("whole", "['first']"),
        caller("skilled", "['first/translate']"),
        caller("elsewhere", "['second']"),
        caller("nowhere", "[]"),
    ];
    let server = server(&home, &config.concat());
    let client = RawClient::new(server.url());
    let ask =
        async |caller: &str, call: RawCall| client.ask(&call.with("x-api-key", &format!("the-key-of-{caller}-alone"))).await;
    for combination in Combination::ALL {
        assert_accepted(&ask("whole", hello(combination)).await, "the agent it may call");
        assert_accepted(&ask("skilled", asking(combination, Some("translate"))).await, "the skill it may ask for");
        for (caller, call, what) in [
            ("elsewhere", hello(combination), "an agent it may not call"),
            ("nowhere", hello(combination), "nothing it may call"),
            ("skilled", asking(combination, None), "no skill named"),
            ("skilled", asking(combination, Some("audit")), "another skill"),
        ] {
            assert_not_permitted(combination, &ask(caller, call).await, what);
        }
        // Not even whether there is a task is told to whom the agent is closed.
        let get = Request::GetTask(GetTask { tenant: None, id: "no-such-task".into(), history_length: None });
        let answer = ask("elsewhere", RawCall::of(combination, &get).expect("getting")).await;
        assert_not_permitted(Combination { version: answered_in(combination), ..combination }, &answer, "a task there");
        if combination.binding != Binding::Grpc {
            assert_accepted(&ask("elsewhere", to_agent(hello(combination), "second")).await, "its agent, by its name");
            assert_not_permitted(combination, &ask("whole", to_agent(hello(combination), "second")).await, "the other agent");
        }
    }
}

/// `tasks/get` is a method of 0.3 too, and answered in that version if nothing speaks for the original.
fn answered_in(combination: Combination) -> Version {
    if combination.version == Version::Original { Version::V0_3 } else { combination.version }
}
