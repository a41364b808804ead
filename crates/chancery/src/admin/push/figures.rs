//! The figures of deliveries, and of how calls were placed, in the text form that Prometheus reads.

use std::fmt::Write as _;

use chancery_core::PlacedCalls;
use chancery_core::notify::{Engine, Metrics, TIME_BOUNDS_MS, Times};
use chancery_core::push::OutboxLoad;

pub(super) fn text(engine: &Engine, load: OutboxLoad) -> String {
    let mut text = String::new();
    let metrics = engine.metrics();
    counted(&mut text, metrics);
    timed(&mut text, metrics);
    let (in_flight, standings) = engine.standings();
    let breakers = |name: &str| {
        standings.iter().filter(|standing| format!("{:?}", standing.breaker).to_lowercase().starts_with(name)).count() as u64
    };
    let gauges = [
        ("inflight", u64::from(in_flight), "Deliveries under way"),
        ("lanes_due", load.pending, "Active registrations with undelivered events"),
        ("lanes", load.lanes, "Registrations"),
        ("backlog_events", load.backlog_events, "Undelivered events"),
        ("dead_letters", load.dead, "Stored dead letters"),
    ];
    for (name, value, help) in gauges {
        head(&mut text, name, "gauge", help);
        let _ = writeln!(text, "a2a_push_{name} {value}");
    }
    head(&mut text, "breaker_state", "gauge", "Origins by the state of their circuit breaker");
    for state in ["closed", "open", "half"] {
        let _ = writeln!(text, "a2a_push_breaker_state{{state=\"{state}\"}} {}", breakers(state));
    }
    text
}

/// How calls were placed in their trees. Each attribution has its line from the start, so that a rate can be taken of the first call.
pub(super) fn placed(totals: &PlacedCalls) -> String {
    let mut text = String::from(
        "# HELP chancery_lineage_total Calls that created a task, by how the node found their parent\n\
         # TYPE chancery_lineage_total counter\n",
    );
    for (attribution, count) in totals {
        let _ = writeln!(text, "chancery_lineage_total{{attribution=\"{attribution}\"}} {count}");
    }
    text
}

fn counted(text: &mut String, metrics: &Metrics) {
    head(text, "deliveries_total", "counter", "Delivery attempts by outcome");
    for ([outcome, profile], count) in metrics.deliveries.read() {
        let _ = writeln!(text, "a2a_push_deliveries_total{{outcome=\"{outcome}\",profile=\"{profile}\"}} {count}");
    }
    for (name, label, counts, what) in [
        ("dead_total", "reason", &metrics.dead, "Deliveries that became dead letters"),
        ("blocked_total", "why", &metrics.blocked, "Deliveries that the node refused before it sent them"),
    ] {
        head(text, name, "counter", what);
        for ([word], count) in counts.read() {
            let _ = writeln!(text, "a2a_push_{name}{{{label}=\"{word}\"}} {count}");
        }
    }
    let counters = [
        ("duplicates_suppressed_total", &metrics.fenced, "Settlements that came too late and changed nothing"),
        ("compacted_events_total", &metrics.compacted, "Entries that went out as part of a delivery for several"),
        ("receipts_total", &metrics.receipts, "Receipts that were kept"),
        ("replays_total", &metrics.replays, "Dead letters that were sent again"),
    ];
    for (name, count, help) in counters {
        head(text, name, "counter", help);
        let _ = writeln!(text, "a2a_push_{name} {}", count.read());
    }
}

fn timed(text: &mut String, metrics: &Metrics) {
    let times = [
        ("attempt_seconds", &metrics.attempt, "One exchange"),
        ("lag_seconds", &metrics.lag, "From recorded to delivered"),
        ("first_attempt_seconds", &metrics.first_attempt, "From recorded to the beginning of the first attempt"),
        ("barrier_seconds", &metrics.barrier, "How long answers waited for first attempts"),
    ];
    for (name, times, help) in times {
        head(text, name, "histogram", help);
        histogram(text, name, times);
    }
}

fn histogram(text: &mut String, name: &str, times: &Times) {
    let (counts, sum) = times.read();
    let mut so_far = 0;
    for (bound, count) in TIME_BOUNDS_MS.iter().zip(counts) {
        so_far += count;
        let seconds = *bound as f64 / 1_000.0;
        let _ = writeln!(text, "a2a_push_{name}_bucket{{le=\"{seconds}\"}} {so_far}");
    }
    let all: u64 = counts.iter().sum();
    let _ = writeln!(text, "a2a_push_{name}_bucket{{le=\"+Inf\"}} {all}");
    let _ = writeln!(text, "a2a_push_{name}_sum {}", sum.as_secs_f64());
    let _ = writeln!(text, "a2a_push_{name}_count {all}");
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP a2a_push_{name} {help}\n# TYPE a2a_push_{name} {kind}");
}
