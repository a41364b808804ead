//! The report on agents for operators: addresses, approved cards, cards that wait for approval, and health.

use chancery_core::Agent;
use chancery_core::health::{BreakerState, PeerStanding};
use chancery_outbound::discovery::{DiscoveryError, changes};
use chancery_outbound::remote::{Replica, Seen};
use chancery_wire::tolerant::Leniency;
use serde_json::{Value, json};

use super::remote::Remote;
use crate::agent_registry::AgentRecord;

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
    let replicas: Vec<Value> = remote.pool().replicas().map(|one| replica(one, &one.seen())).collect();
    json!({
        "name": remote.name,
        "source": if remote.added { "added" } else { "config" },
        "pin": remote.config.pin,
        "state": state(remote),
        "settings": remote.config.calls,
        "replicas": replicas,
    })
}

/// One line for the start of a node: who stands behind it, and how it is called.
pub(super) fn line(remote: &Remote) -> String {
    let mut replicas = remote.pool().replicas().map(|replica| {
        let used = match replica.in_use() {
            Some(Ok(used)) => used,
            Some(Err(error)) => return format!("{}: {error}", address(replica)),
            None => {
                let reason = match replica.seen().fault {
                    Some(DiscoveryError::Discovery { reason, .. } | DiscoveryError::CardSignatureInvalid { reason, .. }) => {
                        format!("card rejected: {reason}")
                    }
                    Some(DiscoveryError::Transport { cause, .. }) => {
                        format!("no card yet: {cause}; it is called as soon as its card can be read")
                    }
                    None => "no card yet".to_owned(),
                };
                return format!("{}: {reason}", address(replica));
            }
        };
        let way = if used.streams { "streaming" } else { "no streaming" };
        let mut line =
            format!("A2A {} {}, {way}, at {}", used.interface.version, used.interface.binding.as_str(), used.interface.url);
        if let Some(change) = used.change {
            line.push_str(&format!(" (its card has {:?}: {})", used.listed, change.reason()));
        }
        let facts = replica.notes().facts();
        if !facts.leniencies.is_empty() {
            let names: Vec<String> = facts.leniencies.keys().map(word).collect();
            line.push_str(&format!("; deviates: {}", names.join(", ")));
        }
        line
    });
    let first = replicas.next().unwrap_or_default();
    replicas.fold(format!("{}: {first}", remote.name), |line, next| format!("{line}\n  {next}"))
}

/// A leniency by its name.
fn word(leniency: &Leniency) -> String {
    json!(leniency).as_str().unwrap_or_default().to_owned()
}

fn address(replica: &Replica) -> &str {
    &replica.address().url
}

/// The one thing an operator should know first.
pub(super) fn state(remote: &Remote) -> String {
    let seen: Vec<Seen> = remote.pool().replicas().map(|replica| replica.seen()).collect();
    if seen.iter().any(|seen| seen.pending.is_some()) {
        return "changed, waiting for approval".to_owned();
    }
    if seen.iter().any(|seen| seen.refusal().is_some()) {
        return "refused".to_owned();
    }
    // A card that cannot be read is the agent's fault, and no reason to wait for it.
    if let Some(Some(DiscoveryError::Discovery { reason, .. })) =
        seen.iter().all(|seen| seen.counts.is_none()).then(|| seen.iter().find_map(|seen| seen.fault.clone()))
    {
        return format!("card rejected: {reason}");
    }
    if seen.iter().all(|seen| seen.fault.is_some() || seen.counts.is_none()) {
        return "not reached".to_owned();
    }
    let faults: Vec<Option<String>> = remote.pool().replicas().map(|replica| failing(replica)).collect();
    match faults.iter().all(Option::is_some).then(|| faults.into_iter().flatten().next()).flatten() {
        Some(reason) => format!("failing: {reason}"),
        None => "served".to_owned(),
    }
}

/// Why calls to a replica fail, if the last one did or none can be made.
fn failing(replica: &Replica) -> Option<String> {
    match replica.in_use() {
        Some(Err(error)) => Some(error.to_string()),
        _ => replica.notes().facts().last_fault.map(|fault| fault.reason),
    }
}

fn replica(replica: &Replica, seen: &Seen) -> Value {
    let counts = seen.counts.as_deref();
    let facts = replica.notes().facts();
    let mut shown = json!({
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
        "fault": seen.fault.as_ref().map(DiscoveryError::for_operator),
        "pending": pending_of(seen),
        "calls": calls(replica),
        "leniencies": facts.leniencies,
        "prefers": facts.prefers,
        "speaks": facts.speaks,
        "last_fault": facts.last_fault,
    });
    let deviations =
        counts.map(|found| found.deviations.iter().map(|one| format!("{} {}", one.member, one.fault)).collect::<Vec<_>>());
    shown["deviations"] = json!(deviations);
    shown
}

/// Where and how a replica is called.
fn calls(replica: &Replica) -> Option<Value> {
    Some(match replica.in_use()? {
        Ok(used) => used.to_json(),
        Err(error) => json!({ "fault": error.to_string() }),
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
    let fault_of = |standing: &PeerStanding| {
        let mut replicas = remote.pool().replicas();
        replicas.find(|replica| *replica.name() == *standing.snapshot.id.as_str()).and_then(|replica| failing(replica))
    };
    let shown = |one: &PeerStanding| {
        let mut shown = standing(one, url_of(one));
        shown["failing"] = json!(fault_of(one));
        shown
    };
    remote.pool().standings().iter().map(shown).collect()
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
