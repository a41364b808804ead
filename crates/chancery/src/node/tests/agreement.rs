//! Nothing that a program gives beside its config is dropped: it counts, or the node cannot be built.

use chancery_protocol::{Message, Role};
use chancery_rules::routing::LowestLatency;
use chancery_store::MemoryStore;

use super::*;
use crate::agents::{Echo, new_card};
use crate::config::AgentConfig;

fn parse(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Builds a node of each pair of builders, and returns each error.
async fn refused(builders: impl IntoIterator<Item = NodeBuilder>) -> Vec<String> {
    let mut faults = Vec::new();
    for builder in builders {
        faults.push(builder.memory().build().await.map(|_| ()).unwrap_err().to_string());
    }
    faults
}

fn remote(builder: NodeBuilder) -> NodeBuilder {
    builder.remote_agent("far", AgentConfig::at("http://127.0.0.1:7421"))
}

#[tokio::test]
async fn agents_of_a_config_are_served_or_refused() {
    let config = || parse("[agents.other]\nrun = 'conformance'\n");
    for fault in refused([
        with_agents(&["a"]).config(config()),
        Node::builder().config(config()).agent("a", new_card("A", "a"), Echo::default()),
    ])
    .await
    {
        assert!(fault.contains("the agent other") && fault.contains("configured_agents()"), "{fault}");
    }
    for builder in
        [with_agents(&["a"]).config(config()).configured_agents(), with_agents(&["a"]).configured_agents().config(config())]
    {
        let node = builder.build().await.unwrap();
        assert!(node.chancery().agents().get("other").is_some());
    }
    let silent = with_agents(&["a"]).config(parse("")).build().await.unwrap();
    assert!(silent.chancery().agents().get("echo").is_none(), "the agent of an empty config is none that somebody gave");
}

#[tokio::test]
async fn a_config_can_set_price_and_names_of_an_agent_of_the_program_and_not_its_card() {
    let config = || {
        parse(
            "[agents.a]\nrun = 'echo'\ntenants = ['team']\nprice = { per_call_usd = '0.02' }\n[budget.agent.a]\nmax_usd = '0.01'\nwindow = '1h'\n",
        )
    };
    for builder in
        [with_agents(&["a"]).config(config()), Node::builder().config(config()).agent("a", new_card("A", "a"), Echo::default())]
    {
        let node = builder.build().await.unwrap();
        let called = node.executor("a").run(Message::text(Role::User, "m", "hello"), None).await;
        assert!(called.is_err(), "one call costs more than the budget");
        let agents = node.chancery().agents();
        let card = &agents.get("a").unwrap().card;
        assert!(card.supported_interfaces.iter().any(|interface| interface.tenant.as_deref() == Some("team")), "{card:?}");
    }
    for key in ["title = 'T'", "description = 'D'"] {
        let config = parse(&format!("[agents.a]\nrun = 'echo'\n{key}\n"));
        assert!(refused([with_agents(&["a"]).config(config)]).await[0].contains("the program gives this one"), "{key}");
    }
}

#[tokio::test]
async fn the_data_folder_of_a_config_counts_and_another_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (here, there) = (home.path().join("here"), home.path().join("there"));
    let config = || parse(&format!("data = '{}'\n", here.display()));
    let builders = [
        (with_agents(&["a"]).config(config()), true),
        (with_agents(&["a"]).sqlite(&here).config(config()), true),
        (with_agents(&["a"]).config(config()).data(&here).memory(), false),
        (with_agents(&["a"]).store(Arc::new(MemoryStore::new())).config(config()), false),
    ];
    for (builder, has_database) in builders {
        let node = builder.build().await.unwrap();
        assert_eq!(node.data_folder().unwrap().database().exists(), has_database);
        node.shut_down(Duration::from_secs(60)).await.unwrap();
        drop(node);
        std::fs::remove_dir_all(&here).unwrap();
    }
    let other = [with_agents(&["a"]).config(config()).data(&there), with_agents(&["a"]).data(&there).config(config())];
    assert!(refused(other).await.iter().all(|fault| fault.contains("another folder than data of the config")));
    assert!(!here.exists() && !there.exists(), "nothing was made");
}

#[tokio::test]
async fn the_address_to_listen_at_is_the_one_that_bind_binds() {
    let node =
        with_agents(&["a"]).config(parse("listen = '127.0.0.2:0'\n[swp]\nlisten = '127.0.0.3:0'\n")).build().await.unwrap();
    assert_eq!(node.bind().await.unwrap().local_addr().unwrap().ip().to_string(), "127.0.0.2");
    #[cfg(feature = "swp")]
    assert_eq!(node.bind_swp().await.unwrap().unwrap().local_addr().unwrap().ip().to_string(), "127.0.0.3");
}

#[tokio::test]
async fn a_url_of_the_program_is_that_of_the_config_or_refused() {
    let config = || parse("public_url = 'https://here'\n[swp]\nlisten = '127.0.0.1:0'\npublic_url = 'swp://here:1'\n");
    let slim = |url: &str| SwpUrl::try_from(url.to_owned()).unwrap();
    let same = [
        with_agents(&["a"]).config(config()).public_url("https://here/").swp_url(slim("swp://here:1")),
        with_agents(&["a"]).swp_url(slim("swp://here:1")).public_url("https://here").config(config()),
    ];
    for builder in same {
        let node = builder.build().await.unwrap();
        let agents = node.chancery().agents();
        let urls: Vec<_> = agents.get("a").unwrap().card.supported_interfaces.iter().map(|one| one.url.clone()).collect();
        assert!(urls.iter().any(|url| url == "https://here") && urls.iter().any(|url| url == "swp://here:1/a"), "{urls:?}");
    }
    let differ = [
        with_agents(&["a"]).config(config()).public_url("https://there"),
        with_agents(&["a"]).public_url("https://there").config(config()),
    ];
    assert!(refused(differ).await.iter().all(|fault| fault.contains("public_url() and public_url of the config differ")));
    let differ = [
        with_agents(&["a"]).config(config()).swp_url(slim("swp://there:1")),
        with_agents(&["a"]).swp_url(slim("swp://there:1")).config(config()),
    ];
    assert!(refused(differ).await.iter().all(|fault| fault.contains("swp.public_url of the config differ")));
    let twice = with_agents(&["a"]).swp_url(slim("swp://here:1")).swp_url(slim("swp://here:1")).build().await;
    assert!(matches!(twice, Err(BuildError::Repeated("swp_url"))));
}

#[tokio::test]
async fn a_selector_and_a_config_that_choose_both_are_refused_unless_the_program_says_which_counts() {
    let config = || parse("[routing]\ndefault_selector = 'round_robin'\n");
    let both = [
        remote(Node::builder()).peer_selector(LowestLatency).config(config()),
        remote(Node::builder().config(config()).peer_selector(LowestLatency)),
    ];
    assert!(refused(both).await.iter().all(|fault| fault.contains("config_override_allowed()")));
    for allowed in [true, false] {
        let builders = [
            remote(Node::builder()).config_override_allowed(allowed).peer_selector(LowestLatency).config(config()),
            remote(Node::builder().config(config()).peer_selector(LowestLatency)).config_override_allowed(allowed),
        ];
        for builder in builders {
            builder.build().await.unwrap();
        }
    }
    let alone = [with_agents(&["a"]).config_override_allowed(true), remote(Node::builder()).config_override_allowed(false)];
    assert!(refused(alone).await.iter().all(|fault| fault.contains("without peer_selector()")));
    let twice = remote(Node::builder()).peer_selector(LowestLatency).config_override_allowed(true).config_override_allowed(true);
    assert!(matches!(twice.build().await, Err(BuildError::Repeated("config_override_allowed"))));
}

#[tokio::test]
async fn a_selector_without_a_choice_is_refused() {
    let by_address = || parse("[routing]\nby_skill = false\n");
    let none = [
        with_agents(&["a"]).peer_selector(LowestLatency),
        Node::builder().peer_selector(LowestLatency).agent("a", new_card("A", "a"), Echo::default()),
        with_agents(&["a", "b"]).peer_selector(LowestLatency).config(by_address()),
    ];
    assert!(refused(none).await.iter().all(|fault| fault.contains("nothing to choose from")));
    let home = tempfile::tempdir().unwrap();
    let some = [
        remote(with_agents(&["a"]).peer_selector(LowestLatency)),
        with_agents(&["a", "b"]).peer_selector(LowestLatency),
        with_agents(&["a"]).peer_selector(LowestLatency).data(home.path()),
    ];
    for builder in some {
        builder.memory().build().await.unwrap();
    }
}

#[tokio::test]
async fn hosts_and_tenants_of_an_agent_are_named_without_a_config_of_it() {
    let (host, tenant) = (HostName::try_from("a.example".to_owned()).unwrap(), TenantName::try_from("team".to_owned()).unwrap());
    let named = |builder: NodeBuilder| builder.names_of("a", [host.clone()], [tenant.clone()]);
    let last = named(with_agents(&["a"]));
    let first = named(Node::builder()).agent("a", new_card("A", "a"), Echo::default());
    for builder in [last, first] {
        let node = builder.build().await.unwrap();
        let agents = node.chancery().agents();
        let card = &agents.get("a").unwrap().card;
        assert!(card.supported_interfaces.iter().any(|interface| interface.tenant.as_deref() == Some("team")), "{card:?}");
    }
    let unknown = with_agents(&["b"]).names_of("a", [host.clone()], [tenant.clone()]);
    assert!(refused([unknown]).await[0].contains("no agent a"));
}

#[cfg(feature = "cli")]
#[tokio::test]
async fn a_node_without_a_config_file_has_none_to_watch() {
    let node = with_agents(&["a"]).config(Config::default()).build().await.unwrap();
    assert!(matches!(node.watch_config(), Err(BuildError::NoConfigFile)));
}
