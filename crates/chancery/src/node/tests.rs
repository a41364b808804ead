//! What a node refuses to be built from, the addresses it puts on cards, and what outlives it.

mod agreement;
mod given;

use std::time::Duration;

use super::*;
use crate::agents::BuiltIn;

fn with_agents(names: &[&str]) -> NodeBuilder {
    let echo = BuiltIn::Echo;
    names.iter().fold(Node::builder(), |builder, name| builder.shared_agent(*name, echo.card(), echo.runner()))
}

#[tokio::test]
async fn what_cannot_be_served_is_refused() {
    assert!(matches!(with_agents(&[]).build().await, Err(BuildError::NoAgent)));
    for names in [&["a", "a"][..], &["A"], &[""], &["a/b"]] {
        assert!(matches!(with_agents(names).build().await, Err(BuildError::AgentName(_))), "{names:?}");
    }
    let nowhere = with_agents(&["a"]).public_url("nowhere").build().await;
    assert!(matches!(nowhere, Err(BuildError::PublicUrl { .. })));
}

#[tokio::test]
async fn cards_name_the_addresses_their_agents_answer_at() {
    let node = with_agents(&["a", "b"]).public_url("http://h:1/x/").build().await.unwrap();
    let urls = |name: &str| {
        let agents = node.chancery().agents();
        let card = &agents.get(name).unwrap().card;
        card.supported_interfaces.iter().map(|one| one.url.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(urls("a"), ["http://h:1".to_owned(), "http://h:1/x".to_owned()].into());
    assert_eq!(urls("b"), ["http://h:1/x/agents/b".to_owned()].into(), "gRPC has no paths to mount agents under");

    let mut own = BuiltIn::Echo.card();
    own.supported_interfaces =
        crate::agents::interfaces("https://elsewhere", false, &crate::config::CardConfig::default().bindings);
    let node = Node::builder().agent("a", own.clone(), crate::agents::Echo::default()).build().await.unwrap();
    let mut mounted = AgentCard::clone(&node.chancery().agents().first().card);
    for added in ["/push-envelope/v1", "/push-delivery/v1"] {
        let extension = mounted.capabilities.extensions.pop();
        assert!(extension.is_some_and(|extension| extension.uri.ends_with(added)), "{added}");
    }
    assert_eq!(mounted.capabilities.push_notifications.take(), Some(true));
    let declared = mounted.capabilities.extensions.pop();
    assert_eq!(declared.map(|extension| extension.uri).as_deref(), Some(chancery_core::GOVERNANCE_EXTENSION));
    assert_eq!(mounted, own, "what the author wrote stays");
}

#[tokio::test]
async fn tasks_in_a_folder_outlive_the_node_and_the_folder_is_free_again() {
    let home = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let node = with_agents(&["a"]).sqlite(home.path()).build().await.unwrap();
        assert!(node.data_folder().unwrap().database().exists());
        let second = with_agents(&["a"]).sqlite(home.path()).build().await;
        assert!(matches!(second, Err(BuildError::Folder(crate::FolderError::InUse { .. }))));
        node.shut_down(Duration::from_secs(60)).await.unwrap();
    }
}

/// Serves a node until something ends it.
async fn serve(node: &Node) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    node.serve(listener, tokio_util::sync::CancellationToken::new()).await;
}

#[tokio::test]
async fn a_panic_in_a_loop_that_the_node_needs_ends_its_serving_and_in_another_one_does_not() {
    let node = with_agents(&["a"]).build().await.unwrap();
    let loops = node.chancery().loops();
    loops.start("decoration", LoopNeed::Optional, async { panic!("for a test") });
    while node.loop_panics().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!node.failed().is_cancelled());
    loops.start("heart", LoopNeed::Vital, async { panic!("for a test") });
    serve(&node).await;
    assert_eq!(node.loop_panics(), [("decoration", 1), ("heart", 1)].into());
}

#[tokio::test]
async fn a_panic_in_a_loop_is_logged_with_its_name_and_its_reason() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("log");
    let log = Arc::new(std::fs::File::create(&file).unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log).finish();
    // With one dispatcher, a thread of another test that meets the event first would switch it off for all threads.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let _logged = tracing::subscriber::set_default(subscriber);
    let node = with_agents(&["a"]).build().await.unwrap();
    let loops = node.chancery().loops();
    loops.start("decoration", LoopNeed::Optional, async { panic!("reason one") });
    loops.start("heart", LoopNeed::Vital, async { panic!("reason two") });
    serve(&node).await;
    let log = std::fs::read_to_string(file).unwrap();
    for (name, reason, fate) in [("decoration", "reason one", "runs without it"), ("heart", "reason two", "the node ends")] {
        let line = log.lines().find(|line| line.contains(&format!("name=\"{name}\"")));
        assert!(line.is_some_and(|line| line.contains("ERROR") && line.contains(reason) && line.contains(fate)), "{log}");
    }
}

#[tokio::test]
async fn a_stop_waits_for_every_loop_of_the_node_and_each_has_a_name() {
    let home = tempfile::tempdir().unwrap();
    let node = with_agents(&["a"]).sqlite(home.path()).build().await.unwrap();
    let names: Vec<_> = node.chancery().loops().running().into_keys().collect();
    assert_eq!(names, ["agent cards", "keys and cards", "record", "retention", "webhook deliveries", "webhook retention"]);
    node.shut_down(Duration::from_secs(60)).await.unwrap();
    assert!(node.chancery().loops().running().is_empty());
    assert!(node.loop_panics().is_empty());
}

#[tokio::test]
async fn a_router_keeps_its_node_and_the_last_of_both_to_go_ends_it() {
    let node = with_agents(&["a"]).build().await.unwrap();
    let (router, stopping) = (node.router(), node.chancery().shutdown_token());
    drop(node);
    assert!(!stopping.is_cancelled(), "the router answers on");
    drop(router);
    assert!(stopping.is_cancelled());
}
