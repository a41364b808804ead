//! What an operator is told of agents: where they are, what was approved of them, what waits, and how they do.

use chancery_core::Agent;
use chancery_core::health::{BreakerState, PeerStanding};
use chancery_outbound::discovery::changes;
use chancery_outbound::remote::{Replica, Seen};
use serde_json::{Value, json};

use super::remote::Remote;
use crate::agent_book::AgentRecord;

pub(super) fn built_in(agent: &Agent) -> Value {
    let state = if agent.exposed { "served" } else { "hidden" };
    json!({ "name": agent.name, "source": "here", "state": state, "replicas": [] })
}

/// An added agent that no node serves at present.
pub fn show_added(record: &AgentRecord) -> Value {
    let replicas: Vec<Value> = record.urls.iter().map(|url| json!({ "url": url })).collect();
    json!({ "name": record.name, "source": "added", "pin": record.pin, "state": "not served", "replicas": replicas })
}

pub(super) fn agent(remote: &Remote) -> Value {
    let seen: Vec<(&str, Seen)> = remote.pool().replicas().map(|replica| (address(replica), replica.seen())).collect();
    json!({
        "name": remote.name,
        "source": if remote.added { "added" } else { "config" },
        "pin": remote.config.pin,
        "state": state(&seen),
        "replicas": remote.pool().replicas().zip(&seen).map(|(one, (_, seen))| replica(one, seen)).collect::<Vec<_>>(),
    })
}

fn address(replica: &Replica) -> &str {
    &replica.address().url
}

/// The one thing an operator should know first.
fn state(seen: &[(&str, Seen)]) -> &'static str {
    if seen.iter().any(|(_, seen)| seen.pending.is_some()) {
        "changed, waiting for approval"
    } else if seen.iter().any(|(_, seen)| seen.refusal().is_some()) {
        "refused"
    } else if seen.iter().all(|(_, seen)| seen.fault.is_some() || seen.counts.is_none()) {
        "not reached"
    } else {
        "served"
    }
}

fn replica(replica: &Replica, seen: &Seen) -> Value {
    let counts = seen.counts.as_deref();
    json!({
        "name": replica.name(),
        "url": address(replica),
        "card": counts.map(|found| &found.url),
        "version": counts.map(|found| found.version.to_string()),
        "verification": counts.map(|found| found.verification.name()),
        "agent_ids": counts.map(|found| found.verification.agent_ids()),
        "kids": counts.map(|found| found.verification.kids()),
        "structure": counts.map(|found| &found.structure),
        "fetched_at": counts.map(|found| found.fetched_at),
        "approved_at": seen.approved_at,
        "fault": seen.fault.as_ref().map(ToString::to_string),
        "pending": pending_of(seen),
    })
}

/// What waits for approval, replica by replica.
pub(super) fn pending(remote: &Remote) -> Vec<Value> {
    let waiting = remote.pool().replicas().filter_map(|replica| {
        let mut pending = pending_of(&replica.seen())?;
        pending["replica"] = json!(replica.name());
        Some(pending)
    });
    waiting.collect()
}

fn pending_of(seen: &Seen) -> Option<Value> {
    let (pending, counts) = (seen.pending.as_ref()?, seen.counts.as_ref()?);
    Some(json!({
        "structure": pending.structure,
        "seen_at": pending.fetched_at,
        "verification": pending.verification.name(),
        "agent_ids": pending.verification.agent_ids(),
        "changes": changes(&counts.card, &pending.card),
    }))
}

pub(super) fn health(remote: &Remote) -> Vec<Value> {
    let url_of = |standing: &PeerStanding| {
        let mut replicas = remote.pool().replicas();
        replicas.find(|replica| *replica.name() == *standing.snapshot.id.as_str()).map(|replica| address(replica).to_owned())
    };
    remote.pool().standings().iter().map(|one| standing(one, url_of(one))).collect()
}

fn standing(standing: &PeerStanding, url: Option<String>) -> Value {
    let (breaker, until) = match standing.breaker {
        BreakerState::Closed => ("closed", None),
        BreakerState::Open { until } => ("open", Some(until)),
        BreakerState::HalfOpen { probe_until } => ("half-open", Some(probe_until)),
    };
    let seen = &standing.snapshot;
    json!({
        "replica": seen.id.as_str(),
        "url": url,
        "breaker": breaker,
        "breaker_until": until,
        "ejected_until": standing.ejected_until,
        "latency_ms": seen.ewma_latency.map(|latency| latency.as_secs_f64() * 1000.0),
        "open_tasks": seen.open_tasks,
        "failure_share": f64::from(seen.failure_rate.millionths()) / 1e6,
        "results": seen.recent_results,
        "last_heard": standing.last_heard,
        "next_check": standing.next_check,
    })
}
