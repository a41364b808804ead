//! What a node refuses to be built from, the addresses it puts on cards, and what outlives it.

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
    let push = mounted.capabilities.extensions.pop();
    assert!(push.is_some_and(|extension| extension.uri.ends_with("/push-delivery/v1")));
    assert_eq!(mounted.capabilities.push_notifications.replace(false), Some(true));
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
