//! Every named limit at its edge: what is exactly at it passes, one more is refused in words that name it.

mod answers;
mod bodies;
mod calls;
mod connections;
mod floods;
mod governance;
mod handshakes;
mod neighbours;
mod rates;
mod streams;
mod tasks;

use std::collections::BTreeMap;

use chancery::config::LimitsConfig;
use serde_json::Value;

use crate::support::server::{Server, Setup};

/// A server of the conformance agent with these lines in its `[limits]`.
fn limited(lines: &str) -> Server {
    Setup::conformance().config(&format!("[limits]\n{lines}\n")).start()
}

/// Code and words of a refusal over JSON-RPC.
fn refusal(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[track_caller]
fn assert_refused(answer: &Value, code: i64, limit: &str) {
    let (found, words) = refusal(answer);
    let named = words.contains(limit) || answer["error"]["data"].to_string().contains(limit);
    assert!(found == code && named, "{limit} should refuse with {code}: {answer}");
}

/// Which test stands at the edge of which limit.
const EDGES: &[(&str, &str)] = &[
    ("body_bytes", "a_body_at_its_limit_is_read_and_a_longer_one_refused_however_it_is_sent"),
    ("header_bytes", "a_head_within_its_limit_is_read_and_a_longer_one_refused"),
    ("header_count", "headers_up_to_their_number_are_read_and_one_more_is_refused"),
    ("header_read_ms", "a_head_that_does_not_arrive_in_time_ends_its_connection"),
    ("tls_handshake_ms", "a_handshake_that_is_not_done_in_time_ends_its_connection"),
    ("tls_handshakes_per_address", "handshakes_of_one_address_are_held_at_their_number_and_the_oldest_makes_room"),
    ("tls_hellos_per_address", "a_flood_of_whole_first_messages_does_not_close_a_caller_that_is_further_away"),
    ("tls_handshakes", "handshakes_of_a_node_are_held_at_their_number_and_the_address_with_most_makes_room"),
    ("reading_bytes_per_caller", "bodies_that_are_being_read_are_bounded_for_a_caller_and_for_the_node"),
    ("reading_bytes_per_node", "bodies_that_are_being_read_are_bounded_for_a_caller_and_for_the_node"),
    ("body_read_ms", "a_body_that_does_not_arrive_in_time_is_refused"),
    ("write_stall_ms", "a_peer_that_takes_nothing_loses_its_connection"),
    ("connections", "connections_are_held_at_their_number"),
    ("connections_per_address", "connections_of_one_address_are_held_at_their_number"),
    ("trusted_proxies", "a_trusted_proxy_names_the_address_in_limits_and_logs"),
    ("http2_streams", "calls_in_flight_on_one_connection_are_held_at_their_number"),
    ("calls_per_second_per_caller", "a_caller_over_its_rate_is_told_to_wait_on_every_transport"),
    ("calls_burst_per_caller", "a_caller_over_its_rate_is_told_to_wait_on_every_transport"),
    ("calls_per_second_per_address", "an_address_over_its_rate_is_told_to_wait_on_every_transport"),
    ("calls_burst_per_address", "an_address_over_its_rate_is_told_to_wait_on_every_transport"),
    ("json_rpc_id_bytes", "the_id_of_a_json_rpc_call_is_as_long_as_it_may_be_and_no_longer"),
    ("catalog_page", "a_page_of_the_catalog_is_as_large_as_it_may_be_and_no_larger"),
    ("stream_heartbeat_ms", "an_idle_stream_says_that_it_is_still_there"),
    ("unary_keepalive_ms", "a_blocking_call_gets_its_head_and_white_space_before_its_answer"),
    ("listen_ms", "a_listener_for_a_task_that_never_comes_is_told_so"),
    ("drain_ms", "a_stop_waits_no_longer_than_it_was_told_to"),
    ("json_depth", "json_is_held_at_its_depth_its_values_and_its_names"),
    ("json_nodes", "json_is_held_at_its_depth_its_values_and_its_names"),
    ("json_key_bytes", "json_is_held_at_its_depth_its_values_and_its_names"),
    ("message_parts", "a_message_has_as_many_parts_as_it_may_and_no_more"),
    ("reference_tasks", "a_message_points_at_as_many_tasks_as_it_may_and_no_more"),
    ("metadata_bytes", "metadata_is_as_long_as_it_may_be_and_no_longer"),
    ("id_bytes", "ids_that_callers_choose_are_as_long_as_they_may_be_and_no_longer"),
    ("page_size", "a_page_is_as_large_as_it_may_be_and_no_larger"),
    ("page_size_default", "a_page_is_as_large_as_it_may_be_and_no_larger"),
    ("answer_bytes", "a_page_weighs_as_much_as_it_may_and_no_more_in_every_version_and_binding"),
    ("answering_bytes_per_caller", "answers_of_one_caller_that_nobody_reads_are_held_at_their_bytes_in_every_binding"),
    ("answering_bytes_per_node", "answers_of_a_node_that_nobody_reads_are_held_at_their_bytes"),
    ("task_events", "a_task_has_as_many_events_as_it_may_and_then_fails_with_that_reason"),
    ("task_bytes", "a_task_weighs_as_much_as_it_may_and_then_fails_with_that_reason"),
    ("task_updates_pending", "a_runner_far_ahead_of_the_store_waits_and_loses_nothing"),
    ("task_messages_queued", "messages_wait_in_line_up_to_their_number_and_one_more_is_refused_whole"),
    ("cancel_grace_ms", "a_runner_that_does_not_stop_is_dropped_after_its_grace"),
    ("budget_wait_ms", "a_call_waits_for_its_budget_as_long_as_it_may_and_no_longer"),
    ("cascade_ms", "a_task_that_does_not_end_in_time_is_left_behind_by_the_cascade"),
    ("idempotency_hours", "an_idempotency_key_is_known_up_to_its_last_moment"),
    ("streams_per_caller", "streams_of_one_caller_are_held_at_their_number"),
    ("streams_per_task", "streams_of_one_task_are_held_at_their_number"),
    ("streams_per_node", "streams_of_a_node_are_held_at_their_number"),
    ("stream_buffer_events", "a_reader_further_behind_than_its_buffer_is_served_from_the_log"),
    ("stream_buffer_bytes", "events_are_held_for_readers_up_to_their_bytes_and_the_log_serves_the_rest"),
];

const SOURCES: &str = concat!(
    include_str!("../doors/keepalive.rs"),
    include_str!("answers.rs"),
    include_str!("bodies.rs"),
    include_str!("calls.rs"),
    include_str!("connections.rs"),
    include_str!("governance.rs"),
    include_str!("handshakes.rs"),
    include_str!("rates.rs"),
    include_str!("streams.rs"),
    include_str!("tasks.rs"),
);

#[test]
fn every_limit_has_a_test_at_its_edge() {
    let limits = LimitsConfig::default();
    let mut names: Vec<String> = Vec::new();
    for part in [serde_json::to_value(limits.tasks), serde_json::to_value(limits.inbound), serde_json::to_value(limits.json)] {
        let part: BTreeMap<String, Value> = serde_json::from_value(part.unwrap()).unwrap();
        names.extend(part.into_keys());
    }
    names.sort();
    let mut tested: Vec<&str> = EDGES.iter().map(|(limit, _)| *limit).collect();
    tested.sort_unstable();
    assert_eq!(names, tested, "limits on the left, those with a test on the right");
    for (limit, test) in EDGES {
        assert!(SOURCES.contains(&format!("fn {test}(")), "{limit} names a test that is not there: {test}");
    }
}
