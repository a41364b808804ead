//! When a change of a key takes effect, for the sections whose structs belong to the components they configure.

use chancery_core::notify::{Bounds, NotifyConfig, SlotLimits};
use chancery_core::push::PushLimits;
use chancery_core::{RetentionConfig, TaskLimits};
use chancery_evidence::record::EvidenceConfig;
use chancery_inbound::{InboundLimits, SwpRules};
use chancery_memory::{ArtifactsConfig, MemoryConfig};
use chancery_outbound::client::ClientLimits;
use chancery_outbound::discovery::DiscoveryConfig;
use chancery_outbound::push::{CourierConfig, OriginRules};
use chancery_outbound::remote::FollowLimits;
use chancery_outbound::{GuardConfig, JwksLimits};
use chancery_rules::budget::BudgetConfig;
use chancery_rules::health::{BreakerConfig, CheckConfig, OutlierConfig};
use chancery_rules::lineage::LineageConfig;
use chancery_rules::policy::PolicyConfig;
use chancery_rules::recursion::RecursionPolicy;
use chancery_rules::routing::RoutingConfig;
use chancery_wire::JsonLimits;
use chancery_wire::swp::codec::SwpLimits;

use super::effect::{declare_keys, declare_section};

declare_section!(TaskLimits {
    message_parts: Live,
    reference_tasks: Live,
    metadata_bytes: Live,
    id_bytes: Live,
    task_events: Live,
    task_bytes: Live,
    task_updates_pending: Live,
    task_messages_queued: Live,
    streams_per_caller: Live,
    streams_per_task: Live,
    streams_per_node: Live,
    stream_buffer_events: Live,
    stream_buffer_bytes: Live,
    answer_bytes: Live,
    answering_bytes_per_caller: Live,
    answering_bytes_per_node: Live,
    page_size: Live,
    page_size_default: Live,
    cancel_grace_ms: Live,
    budget_wait_ms: Live,
    cascade_ms: Live,
    idempotency_hours: Live,
});

declare_section!(InboundLimits {
    body_bytes: Live,
    header_bytes: NewConnections,
    header_count: NewConnections,
    header_read_ms: NewConnections,
    tls_handshake_ms: NewConnections,
    tls_handshakes_per_address: NewConnections,
    tls_hellos_per_address: NewConnections,
    tls_handshakes: NewConnections,
    reading_bytes_per_caller: Live,
    reading_bytes_per_node: Live,
    body_read_ms: Live,
    write_stall_ms: NewConnections,
    connections: NewConnections,
    connections_per_address: NewConnections,
    trusted_proxies: Live,
    http2_streams: NewConnections,
    calls_per_second_per_caller: Live,
    calls_burst_per_caller: Live,
    calls_per_second_per_address: Live,
    calls_burst_per_address: Live,
    json_rpc_id_bytes: Live,
    catalog_page: Live,
    stream_heartbeat_ms: Live,
    unary_keepalive_ms: Live,
    listen_ms: Live,
    drain_ms: NewConnections,
});

declare_section!(JsonLimits { json_depth: Live, json_nodes: Live, json_key_bytes: Live });

declare_section!(RetentionConfig {
    max_age_hours: Live,
    max_tasks: Live,
    max_bytes: Live,
    max_decisions: Live,
    max_keys: Live,
    max_keys_per_caller: Live,
    max_cost_age_hours: Live,
    sweep_every_seconds: Live,
});

declare_section!(EvidenceConfig {
    record: Restart,
    checkpoint_entries: Restart,
    checkpoint_seconds: Restart,
    segment_entries: Restart,
    keep_days: Restart,
    keep_entries: Restart,
});

declare_section!(JwksLimits {
    min_age_s: Live,
    max_age_s: Live,
    usual_age_s: Live,
    stale_s: Live,
    refresh_s: Live,
    retry_s: Live,
    body_bytes: Live,
    sets: Live,
});

declare_section!(SwpRules { idle_ms: NewConnections, timestamps: NewConnections });

declare_section!(SwpLimits {
    max_frame_bytes: NewConnections,
    max_payload_bytes: NewConnections,
    min_msg_id_bytes: NewConnections,
    max_msg_id_bytes: NewConnections,
    max_ext_bytes: NewConnections,
    max_clock_skew_ms: NewConnections,
    max_frames_per_window: NewConnections,
    rate_window_ms: NewConnections,
    duplicate_window_ms: NewConnections,
    max_handshake_bytes: NewConnections,
    max_task_id_bytes: NewConnections,
    max_open_tasks: NewConnections,
    max_closed_tasks: NewConnections,
});

declare_section!(GuardConfig {
    allow_nets: Live,
    allow_hosts: Live,
    deny_hosts: Live,
    allow_http: Live,
    proxy: Live,
    ca_file: Live,
    connect_ms: Live,
    tls_ms: Live,
    exchange_ms: Live,
    response_header_bytes: Live,
    response_body_bytes: Live,
    url_bytes: Live,
    addresses: Live,
    informational_responses: Live,
});

declare_section!(DiscoveryConfig { ttl_s: Live, fetches_per_peer: Live, fetch_ms: Live, card_bytes: Live, key_origins: Live });

declare_section!(ClientLimits {
    connect_ms: Live,
    read_ms: Live,
    queue_ms: Live,
    answer_bytes: Live,
    event_bytes: Live,
    json_depth: Live,
    json_nodes: Live,
    calls_in_flight: Live,
    streams: Live,
    retries: Live,
    retry_pause_ms: Live,
    rate_limit: Live,
    swp_frames: Live,
    swp_idle: Live,
});

declare_section!(FollowLimits {
    answer_ms: Live,
    reconnects: Live,
    reconnect_ms: Live,
    max_reconnect_ms: Live,
    poll_ms: Live,
    max_poll_ms: Live,
});

declare_section!(RoutingConfig {
    by_skill: Live,
    default_selector: Live,
    latency_budget_ms: Live,
    fallback: Live,
    seed: Live,
    forget_after_ms: Live,
});

declare_section!(BreakerConfig {
    failures: Live,
    failure_percent: Live,
    failure_percent_of: Live,
    window_ms: Live,
    cooldown_ms: Live,
    max_cooldown_ms: Live,
    probe_ms: Live,
});

declare_section!(OutlierConfig {
    eject_failure_points: Live,
    eject_latency_multiple: Live,
    eject_latency_above_ms: Live,
    eject_results: Live,
    eject_ms: Live,
    max_eject_ms: Live,
    ejected_percent: Live,
});

declare_section!(CheckConfig { check_every_ms: Live });

declare_section!(BudgetConfig {
    global: Live,
    unknown_share: Live,
    tree: Live,
    tenant: Live,
    caller: Live,
    agent: Live,
    skill: Live,
});

declare_section!(PolicyConfig { default: Live, caller: Live, skill: Live, rules: Live });

declare_section!(RecursionPolicy { max_call_depth: Live, deny_revisit: Live, revisit_allowlist: Live });

declare_section!(LineageConfig {
    unattributed: Live,
    traces: Live,
    claims: Live,
    linger_s: Live,
    max_ended: Live,
    max_bytes: Live,
});

declare_section!(MemoryConfig {
    tier: Restart,
    shard: Restart,
    issuers: Restart,
    max_collection_bytes: Restart,
    resident_bytes: Restart,
    max_grant_hours: Restart,
});

declare_section!(ArtifactsConfig {
    schemas: Restart,
    accept_lower_version_artifacts: Restart,
    offload: Restart,
    offload_above_bytes: Restart,
    restore_bytes: Restart,
    offload_task_bytes: Restart,
});

declare_section!(PushLimits {
    url_bytes: Restart,
    token_bytes: Restart,
    credentials_bytes: Restart,
    configs_per_task: Restart,
    configs_per_tenant: Restart,
    page_size: Restart,
});

declare_section!(CourierConfig {
    allow_nets: Restart,
    allow_hosts: Restart,
    deny_hosts: Restart,
    allow_http: Restart,
    challenge: Restart,
    connect_ms: Restart,
    tls_ms: Restart,
    exchange_ms: Restart,
    response_header_bytes: Restart,
    response_body_bytes: Restart,
    task_bytes: Restart,
    task_history: Restart,
    ed25519: Restart,
    body_hmac: Restart,
});

declare_section!(NotifyConfig {
    schedule_s: Restart,
    give_up_after_s: Restart,
    barrier_ms: Restart,
    in_a_row: Restart,
    lease_ms: Restart,
    receipts: Restart,
    keep_hours: Restart,
    keep_dead_hours: Restart,
    keep_receipts_hours: Restart,
});

declare_section!(Bounds { backlog_events: Restart, backlog_bytes: Restart, preserve: Restart });

declare_section!(SlotLimits {
    in_flight: Restart,
    in_flight_per_tenant: Restart,
    in_flight_per_origin: Restart,
    max_in_flight_per_origin: Restart,
    host_requests_per_second: Restart,
});

declare_keys!(OriginRules { content_type: Restart, profile: Restart, events: Restart, retry_4xx: Restart, secret_env: Restart });
