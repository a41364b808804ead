//! Which unit test stands at the edge of which limit that needs no connection.

const SOURCES: &str =
    concat!(include_str!("../../src/envelope.rs"), include_str!("../../src/validate.rs"), include_str!("../../src/traffic.rs"));

/// The limits of `[swp]` beyond these need a connection: the tests of `chancery` stand at their edges.
const EDGES: &[(&str, &str)] = &[
    ("max_payload_bytes", "the_extensions_and_the_payload_may_be_as_long_as_their_limits_and_no_longer"),
    ("min_msg_id_bytes", "message_ids_have_a_shortest_and_a_longest_length"),
    ("max_msg_id_bytes", "message_ids_have_a_shortest_and_a_longest_length"),
    ("max_clock_skew_ms", "a_timestamp_may_be_as_far_off_as_the_skew_and_not_a_millisecond_more"),
    ("rate_window_ms", "a_window_takes_so_many_frames_and_the_next_one_as_many_again"),
];

#[test]
fn every_limit_of_the_codec_has_a_test_at_its_edge() {
    for (limit, test) in EDGES {
        assert!(SOURCES.contains(limit), "{limit} is not a limit of the codec");
        assert!(SOURCES.contains(&format!("fn {test}(")), "{limit} names a test that is not there: {test}");
    }
}
