//! Every type that public methods of the facade mention can be named by a program that depends on `chancery` alone.

use chancery::{CancellationToken, MicroUsd, Part, bytes, serde_json};

/// Compiles only if each type has a path below `chancery`.
macro_rules! named {
    ($($path:path),* $(,)?) => {
        [$(std::any::type_name::<$path>()),*]
    };
}

#[test]
fn what_runners_and_nodes_mention_has_a_name() {
    let names = named![
        chancery::AfterRestart,
        chancery::AgentCard,
        chancery::AgentRegistryError,
        chancery::Artifact,
        chancery::BuildError,
        chancery::CallerRegistryError,
        chancery::Chancery,
        chancery::Config,
        chancery::DataFolder,
        chancery::Delegation,
        chancery::Executor,
        chancery::Finished,
        chancery::FolderError,
        chancery::KeyRegistryError,
        chancery::Link,
        chancery::MemoryBuildError,
        chancery::MemoryRecall,
        chancery::Message,
        chancery::Metadata,
        chancery::Node,
        chancery::NodeBuilder,
        chancery::PartStoreError,
        chancery::Passed,
        chancery::Rejected,
        chancery::ReloadError,
        chancery::Reloaded,
        chancery::ReplyMode,
        chancery::RunError,
        chancery::SelectorQuery<'static>,
        chancery::SinkClosed,
        chancery::StoreError,
        chancery::Subscription,
        chancery::Task,
        chancery::TaskState,
        chancery::TaskUpdateSink,
        chancery::TestTurn,
        chancery::TestedTurn,
        chancery::Turn,
        chancery::WaitingTask,
        chancery::axum::Router,
        chancery::protocol::CallContext,
        chancery::protocol::Caller,
        chancery::protocol::Error,
        chancery::protocol::TaskEvent,
        chancery::protocol::Unknown<chancery::protocol::SendMessage>,
    ];
    assert!(names.iter().all(|name| name.starts_with("chancery") || name.starts_with("axum")), "{names:?}");
}

#[test]
fn rules_budgets_services_stores_clients_and_receivers_have_names() {
    let names = named![
        chancery::rules::budget::BudgetConfig,
        chancery::rules::budget::Caps,
        chancery::rules::budget::ScopeBudget,
        chancery::rules::lineage::TaskContext,
        chancery::rules::policy::PolicyConfig,
        chancery::rules::policy::Rules,
        chancery::rules::recursion::RecursionPolicy,
        chancery::rules::routing::PeerSnapshot,
        chancery::service::Answer,
        chancery::service::Agents,
        chancery::service::Bill,
        chancery::service::CallTree,
        chancery::service::Decision,
        chancery::service::Freeze,
        chancery::service::LateReply,
        chancery::service::LineageHeaders,
        chancery::service::LoopTracker,
        chancery::service::NextEvents,
        chancery::service::RecallRequest,
        chancery::service::SentLineage,
        chancery::store::Append,
        chancery::store::LogEntry,
        chancery::store::MemoryStore,
        chancery::store::SqliteStore,
        chancery::store::StoreTrouble,
        chancery::store::SystemClock,
        chancery::store::push::NewRegistration,
        chancery::client::AgentClient,
        chancery::client::CallConditions,
        chancery::client::ClientError,
        chancery::client::EventStream,
        chancery::client::Guard,
        chancery::receiver::ReceivedDelivery,
        chancery::receiver::Receiver,
        chancery::identity::KeyRing,
        chancery::config::CardVerification,
        chancery::config::EvidenceConfig,
        chancery::config::InboundLimits,
        chancery::config::RetentionConfig,
        chancery::config::TaskLimits,
    ];
    assert!(names.iter().all(|name| name.starts_with("chancery")), "{names:?}");
    fn is_port<T: ?Sized>() {}
    is_port::<dyn chancery::store::Store>();
    is_port::<dyn chancery::store::Outbox>();
    is_port::<dyn chancery::store::Clock>();
    is_port::<dyn chancery::rules::policy::Expression>();
    is_port::<dyn chancery::rules::routing::PeerSelector>();
}

#[test]
fn crates_whose_types_are_arguments_are_re_exported() {
    let raw = Part::raw(bytes::Bytes::from_static(b"x")).named("x.bin");
    let data = Part::data(&serde_json::json!({ "a": 1 }));
    let url = Part::url("https://example.org/x").named("x");
    assert_eq!((raw.filename.as_deref(), data.filename, url.filename.as_deref()), (Some("x.bin"), None, Some("x")));
    assert!(!CancellationToken::new().is_cancelled());
    assert_eq!(MicroUsd(20_000).to_string(), "0.02");
}
