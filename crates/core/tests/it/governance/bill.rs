//! A bill has what the ledger has, to the millionth of a dollar, whatever the traffic was and however often the node began anew.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::budget::BudgetScope;
use chancery_core::{
    Agent, Agents, Answer, BillBy, Chancery, ChanceryParts, Dedupe, RetentionConfig, RunError, TaskLimits, TaskRunner,
    TaskUpdateSink, Turn,
};
use chancery_protocol::{AgentCard, AgentSkill, CallContext, Caller, Message, Reply, Request, Sent, TaskId, Timestamp};
use chancery_store::{SqliteOptions, SqliteStore};
use chancery_testkit::{ManualClock, PlainSeal};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, caller, message, metadata, rulebook, to};

const AGENTS: [&str; 3] = ["a", "b", "c"];
const CALLERS: [(&str, &str); 4] = [("acme", "ada"), ("acme", "bob"), ("lab", "ada"), ("lab", "=eve")];
const PERIOD: Duration = Duration::from_secs(20 * 3_600);

/// Says what its work cost, in millionths of a dollar, calls another agent, asks back, fails, or never ends.
fn working() -> impl TaskRunner {
    Acts(|turn: Turn, mut updates: TaskUpdateSink| async move {
        let text = turn.message.first_text().unwrap_or_default().to_owned();
        let (word, number) = text.split_once(' ').unwrap_or((&text, "0"));
        let cost = number.parse::<u64>().unwrap_or(0);
        if cost > 0 {
            let usd = format!("{}.{:06}", cost / 1_000_000, cost % 1_000_000);
            updates.annotate(metadata(json!({ "usage": { "cost_usd": usd, "input_tokens": cost % 97 } }))).await?;
        }
        match word {
            "fail" => Err(RunError::new("as it was told")),
            "ask" => {
                let question = updates.text("more?");
                Ok(updates.input_required(question))
            }
            "hang" => std::future::pending().await,
            "delegate" => {
                let _ = turn.delegation.call("c", message("done 17", json!({ "skill": "draw" })).message.as_ref().clone()).await;
                Ok(updates.complete(None))
            }
            _ => Ok(updates.complete(None)),
        }
    })
}

fn agent(name: &str) -> Agent {
    let skill = |id: &str| -> AgentSkill { serde_json::from_value(json!({ "id": id, "name": id, "description": id })).unwrap() };
    let card =
        AgentCard { default_input_modes: vec!["*/*".into()], skills: vec![skill("sum"), skill("draw")], ..AgentCard::default() };
    Agent {
        name: name.into(),
        card: Arc::new(card),
        extended: None,
        runner: Arc::new(working()),
        exposed: true,
        enforces_input_modes: true,
    }
}

fn plane(folder: &Path, clock: &Arc<ManualClock>) -> Chancery {
    let wide = json!({ "*": { "max_usd": "1000000", "window": "24h" } });
    let rules = json!({
        "budget": { "tenant": wide, "caller": wide, "agent": wide, "skill": wide },
        "prices": { "a": "0.013337", "b": "0.000001" },
    });
    let [first, second, third] = AGENTS.map(agent);
    Chancery::new(ChanceryParts {
        agents: Agents::new(first).with(second).with(third),
        store: Arc::new(SqliteStore::open(folder.join("chancery.db"), SqliteOptions::default()).unwrap()),
        clock: Arc::clone(clock) as _,
        seal: Arc::new(PlainSeal),
        limits: TaskLimits::default(),
        // Most tasks are forgotten while the test runs.
        retention: RetentionConfig { max_tasks: 4, ..RetentionConfig::default() },
        dedupe: Dedupe::Off,
        rules: rulebook(&rules),
        hops: None,
        push: None,
    })
}

/// Random calls, one after the other.
async fn traffic(plane: &Chancery, clock: &ManualClock, dice: &mut SmallRng) {
    let mut waiting: Vec<(CallContext, TaskId)> = Vec::new();
    for _ in 0..dice.random_range(10..25) {
        clock.advance(Duration::from_millis(dice.random_range(1..5_000)));
        let (tenant, name) = CALLERS[dice.random_range(0..CALLERS.len())];
        let context = CallContext { caller: Caller::new(tenant, name), ..caller(name) };
        let context = to(AGENTS[dice.random_range(0..AGENTS.len())], context);
        let word = ["done", "done", "fail", "ask", "ask", "hang", "delegate"][dice.random_range(0..7)];
        let cost = if dice.random_bool(0.7) { dice.random_range(1..3_000_000_u64) } else { 0 };
        let said = [Value::Null, json!({ "skill": "sum" }), json!({ "skill": "draw" }), json!({ "skill": "made-up" })];
        let mut send = message(&format!("{word} {cost}"), said[dice.random_range(0..said.len())].clone());
        send.configuration.return_immediately = word == "hang";
        let (context, going_on) = match waiting.pop().filter(|_| dice.random_bool(0.6)) {
            Some((context, id)) => (context, Some(id)),
            None => (context, None),
        };
        send.message = Arc::new(Message { task_id: going_on, ..send.message.as_ref().clone() });
        // A task that was forgotten, or ended, takes no more messages. A message to one that hangs would wait behind its turn for ever, and
        // the answer to the message that made it hang may still show the state before.
        if let Ok(Answer::Reply(Reply::Sent(Sent::Task(shown)))) = plane.call(&context, Request::SendMessage(send)).await
            && shown.task.status.state.is_interrupted()
            && word != "hang"
        {
            waiting.push((context, shown.task.id.clone()));
        }
        if dice.random_bool(0.2) {
            plane.sweep().await;
        }
    }
}

type Lines = BTreeMap<String, (i64, u64)>;

/// What the budgets of a kind count as spent, by name.
fn ledger(plane: &Chancery, kind: BillBy) -> Lines {
    let mut lines = Lines::new();
    for (account, standing) in plane.budgets() {
        let name = match (kind, account.scope()) {
            (BillBy::Tenant, BudgetScope::Tenant(name)) | (BillBy::Agent, BudgetScope::Agent(name)) => name.to_string(),
            (BillBy::Caller, BudgetScope::Caller { tenant, name }) => format!("{tenant}/{name}"),
            (BillBy::Skill, BudgetScope::Skill { skill, .. }) => skill.to_string(),
            _ => continue,
        };
        let line = lines.entry(name).or_default();
        let cost = standing.settled.saturating_add(standing.overrun);
        *line = (line.0 + cost.usd.0, line.1 + cost.tokens);
    }
    lines.retain(|_, line| *line != (0, 0));
    lines
}

async fn billed(plane: &Chancery, by: BillBy) -> (Lines, (i64, u64)) {
    let bill = plane.bill(PERIOD, by).await.unwrap();
    let named =
        bill.lines.iter().map(|line| (line.name.as_deref().unwrap_or_default().to_owned(), (line.cost.usd.0, line.cost.tokens)));
    let mut lines: Lines = named.collect();
    assert_eq!(lines.len(), bill.lines.len(), "a name has one line");
    let sum = lines.values().fold((0, 0), |sum, line| (sum.0 + line.0, sum.1 + line.1));
    assert_eq!(sum, (bill.total.usd.0, bill.total.tokens), "the lines add up to the total");
    lines.retain(|_, line| *line != (0, 0));
    (lines, sum)
}

/// Compares once all that was settled is written down.
async fn check(plane: &Chancery, what: &str) {
    let mut faults = Vec::new();
    for _ in 0..2_000 {
        faults.clear();
        let mut totals = Vec::new();
        for by in BillBy::ALL {
            let (lines, total) = billed(plane, by).await;
            totals.push(total);
            // A task is billed to the skill it was begun with; budgets count each of its turns by the skill that turn names.
            if !matches!(by, BillBy::Root | BillBy::Skill) && lines != ledger(plane, by) {
                faults.push(format!("by {}: billed {lines:?}, counted {:?}", by.as_str(), ledger(plane, by)));
            }
        }
        if totals.iter().any(|total| *total != totals[0]) {
            faults.push(format!("the totals differ: {totals:?}"));
        }
        if faults.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: {faults:#?}");
}

#[test]
fn a_bill_is_what_the_ledger_counts_over_random_traffic_and_restarts() {
    let first = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    let count = if std::env::var_os("CHANCERY_SOAK").is_some() { 500 } else { 6 };
    for seed in first..first + count {
        println!("seed {seed}");
        let (folder, mut dice) = (tempfile::tempdir().unwrap(), SmallRng::seed_from_u64(seed));
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000_000_000)));
        for life in 0..3 {
            // What runs when a life ends is cut off with its runtime.
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let plane = plane(folder.path(), &clock);
                plane.recover().await.unwrap();
                check(&plane, &format!("seed {seed}, life {life}, after the start")).await;
                traffic(&plane, &clock, &mut dice).await;
                check(&plane, &format!("seed {seed}, life {life}, after its traffic")).await;
                let (lines, total) = billed(&plane, BillBy::Agent).await;
                assert!(life == 0 || (lines.len() == 3 && total.0 > 0), "seed {seed}: nothing was spent: {lines:?}");
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}
