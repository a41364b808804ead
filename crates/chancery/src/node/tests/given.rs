//! Everything that a builder is given counts or is refused, in every order.

use chancery_core::{Clock as _, Names, Store as _};
use chancery_protocol::{Caller, ErrorKind, Message, PushConfig, Reply, Request, Role, SendConfiguration, SendMessage};
use chancery_rules::policy::{CallFacts, Expression, RuleKind};
use chancery_store::MemoryStore;
use chancery_testkit::ManualClock;

use super::*;
use crate::agents::{Echo, new_card};
use crate::config::AgentConfig;

fn message() -> Message {
    Message::text(Role::User, "m", "hello")
}

fn contradiction(built: Result<Node, BuildError>) -> &'static str {
    match built {
        Err(BuildError::Contradiction(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_of_the_program_has_the_tasks() {
    let store = Arc::new(MemoryStore::new());
    let home = tempfile::tempdir().unwrap();
    let node = Node::builder().store(Arc::clone(&store)).data(home.path());
    let node = node.agent("a", new_card("A", "Says it again."), Echo::default()).build().await.unwrap();
    let task = node.executor("a").run_task(message(), None).await.unwrap();
    let owner = Caller::new("default", "executor");
    let stored = store.find(&owner, task.id.as_str(), Names::Server).await.unwrap().unwrap();
    assert_eq!(stored.task.id, task.id);
    assert!(!node.data_folder().unwrap().database().exists(), "the folder has the keys alone");
}

#[tokio::test]
async fn two_places_for_tasks_are_refused_in_every_order() {
    let home = tempfile::tempdir().unwrap();
    let (here, there) = (home.path().join("here"), home.path().join("there"));
    let store = || Arc::new(MemoryStore::new());
    let pairs: [(NodeBuilder, NodeBuilder, &str); 4] = [
        (with_agents(&["a"]).store(store()).memory(), with_agents(&["a"]).memory().store(store()), "store() and memory()"),
        (with_agents(&["a"]).store(store()).sqlite(&here), with_agents(&["a"]).sqlite(&here).store(store()), "sqlite()"),
        (with_agents(&["a"]).memory().sqlite(&here), with_agents(&["a"]).sqlite(&here).memory(), "memory() and sqlite()"),
        (with_agents(&["a"]).data(&there).sqlite(&here), with_agents(&["a"]).sqlite(&here).data(&there), "different folders"),
    ];
    for (one, other, fault) in pairs {
        for builder in [one, other] {
            let said = contradiction(builder.build().await);
            assert!(said.contains(fault), "{said}");
        }
    }
    assert!(!here.exists() && !there.exists(), "nothing was made");
}

#[tokio::test]
async fn the_first_agent_that_callers_can_see_is_at_the_root_in_every_order() {
    let hidden_first = Node::builder().subagent("b", new_card("B", "b"), Echo::default());
    let node = hidden_first.agent("a", new_card("A", "a"), Echo::default()).build().await.unwrap();
    let agents = node.chancery().agents();
    assert_eq!(&*agents.first().name, "a");
    let all_hidden = Node::builder().subagent("b", new_card("B", "b"), Echo::default()).build().await;
    assert!(matches!(all_hidden, Err(BuildError::Hidden(name)) if name == "b"));
}

#[tokio::test]
async fn a_database_of_the_config_beside_another_store_or_without_a_folder_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let config = || Config::parse("[store]\nurl = 'postgres://ada:hidden@h/db'\n").unwrap();
    let with_database = || with_agents(&["a"]).config(Config { agents: Config::default().agents, ..config() });
    let own = || Arc::new(MemoryStore::new());
    let others = [with_database().memory(), with_database().store(own()), with_database().sqlite(home.path().join("s"))];
    for builder in others {
        let said = contradiction(builder.build().await);
        assert!(said.contains("store.url of the config another one"), "{said}");
    }
    let said = contradiction(with_database().build().await);
    assert!(said.contains("call data()"), "{said}");
    let contradicting = Config::parse("[store]\nurl = 'postgres://h/db'\nsynchronous = 'normal'\n").unwrap();
    let refused = with_agents(&["a"]).config(contradicting).data(home.path()).build().await;
    assert!(matches!(&refused, Err(BuildError::StoreSection(fault)) if fault.contains("is about SQLite")), "{refused:?}");
}

#[tokio::test]
async fn a_method_with_one_value_is_refused_the_second_time() {
    let home = tempfile::tempdir().unwrap();
    let store = || Arc::new(MemoryStore::new());
    let clock = || Arc::new(ManualClock::at(chancery_protocol::Timestamp::from_micros(1)));
    let card = || new_card("B", "b");
    let repeated = [
        ("store", with_agents(&["a"]).store(store()).store(store())),
        ("sqlite", with_agents(&["a"]).sqlite(home.path()).sqlite(home.path())),
        ("data", with_agents(&["a"]).data(home.path()).memory().data(home.path())),
        ("clock", with_agents(&["a"]).clock(clock()).clock(clock())),
        ("with_a2a_exposure", with_agents(&["a"]).with_a2a_exposure("a", true).with_a2a_exposure("a", false)),
        ("extended_card", with_agents(&["a"]).extended_card("a", card()).extended_card("a", card())),
        ("with_local", with_agents(&["a"]).with_local("a", Echo::default()).with_local("a", Echo::default())),
    ];
    for (expected, builder) in repeated {
        let built = builder.build().await;
        assert!(matches!(built, Err(BuildError::Repeated(method)) if method == expected), "{expected}: {built:?}");
    }
    let each = Node::builder().with_a2a_exposure("b", true).with_a2a_exposure("a", true);
    each.agent("a", card(), Echo::default()).agent("b", card(), Echo::default()).build().await.unwrap();
}

#[tokio::test]
async fn a_card_that_promises_what_the_node_does_not_keep_is_refused() {
    let hash = "sha256:".to_owned() + &"0".repeat(64);
    let closed = || Config::parse(&format!("[callers.ada]\nkey_hash = '{hash}'\n")).unwrap_or_else(|faults| panic!("{faults:?}"));
    let mut promising = new_card("A", "a");
    promising.capabilities.extended_agent_card = Some(true);
    let built = Node::builder().agent("a", promising.clone(), Echo::default()).config(closed()).build().await;
    assert!(matches!(built, Err(BuildError::NoExtendedCard(name)) if name == "a"));
    let given = Node::builder().agent("a", promising, Echo::default()).extended_card("a", new_card("A", "more"));
    given.config(closed()).build().await.unwrap();

    type Set = fn(&mut AgentCard, Option<bool>);
    let members: [(&str, Set); 2] = [
        ("streaming", |card, value| card.capabilities.streaming = value),
        ("pushNotifications", |card, value| card.capabilities.push_notifications = value),
    ];
    for (member, set) in members {
        for (plain, extended, agree) in
            [(Some(true), Some(false), false), (None, Some(false), false), (Some(false), None, true), (None, Some(true), true)]
        {
            let (mut card, mut more) = (new_card("A", "a"), new_card("A", "more"));
            set(&mut card, plain);
            set(&mut more, extended);
            let built = Node::builder().agent("a", card, Echo::default()).extended_card("a", more).config(closed()).build().await;
            match built {
                Ok(_) => assert!(agree, "{member}: {plain:?} and {extended:?}"),
                Err(BuildError::CardsDiffer { capability, .. }) => assert!(!agree && capability == member),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn a_config_and_a_config_file_are_refused_together_and_a_folder_counts_in_every_order() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("chancery.toml");
    std::fs::write(&file, "").unwrap();
    let read = || ConfigFile::read(&file).unwrap();
    let one = Node::builder().config(Config::default()).config_file(read(), |config| config);
    let other = Node::builder().config_file(read(), |config| config).config(Config::default());
    for builder in [one, other] {
        assert!(contradiction(builder.build().await).contains("config_file()"));
    }
    let data = home.path().join("data");
    for builder in [with_agents(&["a"]).memory().data(&data), with_agents(&["a"]).data(&data).memory()] {
        let node = builder.build().await.unwrap();
        assert!(!node.data_folder().unwrap().database().exists());
        node.shut_down(Duration::from_secs(60)).await.unwrap();
    }
}

#[tokio::test]
async fn a_clock_of_the_program_says_when_tasks_were_made() {
    let clock = Arc::new(ManualClock::at(chancery_protocol::Timestamp::from_micros(2_000_000_000_000_000)));
    let node = with_agents(&["a"]).clock(clock.clone()).build().await.unwrap();
    let first = node.executor("a").run_task(message(), None).await.unwrap();
    assert_eq!(first.status.timestamp, Some(clock.now()));
    clock.advance(Duration::from_secs(3600));
    let second = node.executor("a").run_task(message(), None).await.unwrap();
    assert_eq!(second.status.timestamp, Some(clock.now()));
    assert_ne!(first.status.timestamp, second.status.timestamp);
}

#[derive(Debug)]
struct CalledBy(&'static str);

impl Expression for CalledBy {
    fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String> {
        Ok(facts.caller == self.0)
    }
}

#[tokio::test]
async fn a_policy_of_the_program_holds_beside_the_config_s_and_after_a_reload() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("chancery.toml");
    let rule = "[[policy.rules]]\nname = 'configured'\ndeny_when = 'caller == \"bob\"'\n";
    std::fs::write(&file, rule).unwrap();
    let builder = Node::builder().policy("in code", RuleKind::DenyWhen, CalledBy("ada"));
    let node = builder.config_file(ConfigFile::read(&file).unwrap(), |config| config).build().await.unwrap();
    let denied = async |caller: &str| {
        let called = node.executor("echo").with_caller(Caller::new("default", caller)).run(message(), None).await;
        called.err().map(|error| error.kind)
    };
    for text in [rule, "[limits]\ncalls_per_second_per_caller = 0\n"] {
        std::fs::write(&file, text).unwrap();
        node.reload().await.unwrap();
        assert_eq!(denied("ada").await, Some(ErrorKind::PolicyDenied));
        assert_eq!(denied("carol").await, None);
    }
    assert_eq!(denied("bob").await, None, "the config's own rule is gone with its text");
    let twice =
        with_agents(&["a"]).policy("x", RuleKind::DenyWhen, CalledBy("a")).policy("x", RuleKind::AllowWhen, CalledBy("b"));
    assert!(matches!(twice.build().await, Err(BuildError::Rules(faults)) if faults[0].contains("twice")));
}

#[tokio::test]
async fn what_is_said_of_an_agent_counts_before_and_after_the_agent_is_given() {
    let exposed = |node: &Node, name: &str| node.chancery().agents().get(name).unwrap().exposed;
    let said_first = Node::builder().with_a2a_exposure("b", true).with_a2a_exposure("c", false);
    let given = |builder: NodeBuilder| {
        let builder = builder.agent("a", new_card("A", "a"), Echo::default()).subagent("b", new_card("B", "b"), Echo::default());
        builder.agent("c", new_card("C", "c"), Echo::default())
    };
    let said_last = given(Node::builder()).with_a2a_exposure("c", false).with_a2a_exposure("b", true);
    for builder in [given(said_first), said_last] {
        let node = builder.build().await.unwrap();
        assert_eq!((exposed(&node, "a"), exposed(&node, "b"), exposed(&node, "c")), (true, true, false));
    }
    let far = || AgentConfig::at("http://127.0.0.1:7421");
    let falls_back = || Config::parse("[routing]\nfallback = 'local'\n").unwrap_or_else(|faults| panic!("{faults:?}"));
    let said_first = Node::builder().with_local("far", Echo::default()).remote_agent("far", far());
    let said_last = Node::builder().remote_agent("far", far()).with_local("far", Echo::default());
    for builder in [said_first, said_last] {
        builder.config(falls_back()).build().await.unwrap();
    }
    let unknown = [
        with_agents(&["a"]).with_a2a_exposure("b", true),
        with_agents(&["a"]).extended_card("b", new_card("B", "b")),
        with_agents(&["a"]).with_local("a", Echo::default()),
    ];
    for builder in unknown {
        assert!(matches!(builder.build().await, Err(BuildError::UnknownAgent { .. })));
    }
}

#[tokio::test]
async fn an_extended_card_is_shown_to_callers_and_refused_where_there_are_none() {
    let extended = || new_card("All of A", "With more skills.");
    let open = with_agents(&["a"]).extended_card("a", extended()).build().await;
    assert!(matches!(open, Err(BuildError::ExtendedCard(name)) if name == "a"));
    let hash = "sha256:".to_owned() + &"0".repeat(64);
    let config = Config::parse(&format!("[callers.ada]\nkey_hash = '{hash}'\n"));
    let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    let node = Node::builder().extended_card("a", extended()).config(config);
    let node = node.agent("a", new_card("A", "a"), Echo::default()).build().await.unwrap();
    let agents = node.chancery().agents();
    let agent = agents.get("a").unwrap();
    assert_eq!(agent.extended.as_ref().map(|card| &*card.name), Some("All of A"));
    assert_eq!(agent.card.capabilities.extended_agent_card, Some(true));
}

#[tokio::test]
async fn a_card_keeps_its_version_and_what_it_says_of_streams_and_webhooks() {
    let mut card = new_card("A", "a").with_version("7.3.1");
    card.capabilities.streaming = Some(false);
    card.capabilities.push_notifications = Some(false);
    let node = Node::builder().agent("a", card.clone(), Echo::default()).agent("b", new_card("B", "b"), Echo::default());
    let node = node.build().await.unwrap();
    let agents = node.chancery().agents();
    let mounted = &agents.get("a").unwrap().card;
    assert_eq!(mounted.version, "7.3.1");
    assert_eq!((mounted.capabilities.streaming, mounted.capabilities.push_notifications), (Some(false), Some(false)));
    assert!(mounted.capabilities.extensions.iter().all(|extension| !extension.uri.contains("/push-")));
    assert_eq!(agents.get("b").unwrap().card.capabilities.push_notifications, Some(true), "a card that says nothing of it");

    let webhook = PushConfig {
        tenant: None,
        id: None,
        task_id: None,
        url: "https://example.org/hook".to_owned(),
        token: None,
        authentication: None,
    };
    let send = SendMessage {
        configuration: SendConfiguration { task_push_notification_config: Some(Box::new(webhook)), ..Default::default() },
        ..SendMessage::new(message())
    };
    let context = chancery_protocol::CallContext {
        agent: Some("a".into()),
        ..chancery_protocol::CallContext::new(Caller::new("default", "ada"), chancery_protocol::TraceId(1))
    };
    let refused = node.chancery().call(&context, Request::SendMessage(send)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::PushNotificationNotSupported);
    let plain = node.chancery().call(&context, Request::SendMessage(SendMessage::new(message()))).await.unwrap();
    assert!(matches!(plain, chancery_core::Answer::Reply(Reply::Sent(_))));

    card.capabilities.push_notifications = Some(true);
    let silent = Config::parse("[push]\nenabled = false\n").unwrap();
    let promised = Node::builder().agent("a", card, Echo::default()).config(silent).build().await;
    assert!(matches!(promised, Err(BuildError::NoPush(name)) if name == "a"));
}
