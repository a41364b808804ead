//! `chancery demo`: what it shows is what its control plane did, and other settings make another show.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::operating::cli::{Ran, run};
use crate::support::ports::lasting_address;
use crate::support::server::Home;

/// The events of a run with these settings, if it ended well.
struct Shown {
    events: Vec<Value>,
}

fn demo(settings: &[&str]) -> Ran {
    let set = settings.iter().flat_map(|setting| ["--set", setting]);
    run(&Home::new(), ["demo", "--json"].into_iter().chain(set))
}

impl Shown {
    fn with(settings: &[&str]) -> Self {
        let ran = demo(settings);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let events = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
        Self { events }
    }

    fn events(&self, kind: &str, scene: u64) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["event"] == kind && event["scene"] == scene)
    }

    fn refused(&self, scene: u64) -> Vec<(&str, &str)> {
        let refused = self.events("refused", scene);
        refused.map(|event| (event["code"].as_str().unwrap(), event["attribution"].as_str().unwrap_or("-"))).collect()
    }

    /// Agent and attribution of each task, from the root down.
    fn tasks(&self, scene: u64) -> Vec<(&str, &str)> {
        let by_id: BTreeMap<_, _> = self.events("task", scene).map(|event| (event["task"].as_str().unwrap(), event)).collect();
        let mut tasks: Vec<&Value> = by_id.into_values().collect();
        tasks.sort_by_key(|task| task["depth"].as_u64());
        tasks.iter().map(|task| (task["agent"].as_str().unwrap(), task["attribution"].as_str().unwrap())).collect()
    }

    fn summary(&self) -> &Value {
        let last = self.events.last().expect("a last line");
        assert_eq!(last["event"], "summary");
        last
    }

    /// Nowhere and at no time was more spent and held than may be.
    fn stays_within_every_cap(&self) {
        let budgets: Vec<&Value> = self.events.iter().filter(|event| event["event"] == "budget").collect();
        assert!(!budgets.is_empty());
        for budget in budgets {
            let micros = |value: &Value| (value.as_str().unwrap().parse::<f64>().unwrap() * 1e6).round() as u64;
            let taken = micros(&budget["settled"]["usd"]) + micros(&budget["reserved"]["usd"]);
            assert!(taken <= micros(&budget["cap"]["usd"]), "{budget}");
        }
        assert_eq!(self.summary()["ok"], true);
    }
}

#[test]
fn the_loop_is_refused_with_its_path_whether_its_agents_echo_their_tokens_or_not_and_the_fan_out_by_its_budget() {
    let shown = Shown::with(&[]);
    shown.stays_within_every_cap();

    assert_eq!(shown.tasks(1), [("a", "root"), ("b", "verified"), ("c", "verified")]);
    assert_eq!(shown.refused(1), [("RECURSION_REVISIT", "verified")]);
    assert_eq!(shown.tasks(2), [("a", "root"), ("b", "verified"), ("c", "inferred")]);
    assert_eq!(shown.refused(2), [("RECURSION_REVISIT", "inferred")]);
    for scene in [1, 2] {
        let refused = shown.events("refused", scene).next().unwrap();
        assert_eq!(refused["facts"]["path"], "you → a → b → c → a");
        let root = shown.events("task", scene).find(|task| task["depth"] == 0).unwrap();
        assert_eq!(refused["root"], root["task"], "a refusal is kept with its tree");
    }

    let refused: Vec<&Value> = shown.events("refused", 3).collect();
    let tasks = shown.tasks(3);
    assert_eq!(tasks.len() - 1 + refused.len(), 8, "each call was let through or refused");
    assert!(refused.len() >= 3, "eight of them cost more than there is: {refused:?}");
    for refusal in refused {
        assert_eq!(refusal["code"], "BUDGET_EXHAUSTED");
        let facts = &refusal["facts"];
        assert_eq!((&facts["limit"], &facts["requested"]), (&Value::from("0.10"), &Value::from("0.02")));
    }
}

/// No callers, and agents that are known by the addresses they call at.
#[test]
fn on_an_open_node_the_same_scenes_end_the_same_way() {
    let ran = run(&Home::new(), ["demo", "--open", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(!ran.stdout.contains("/via/"), "an address is nobody else's to see");
    let shown = Shown { events: ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect() };
    shown.stays_within_every_cap();
    assert_eq!(shown.tasks(1), [("a", "root"), ("b", "verified"), ("c", "verified")]);
    assert_eq!(shown.refused(1), [("RECURSION_REVISIT", "verified")]);
    assert_eq!(shown.tasks(2), [("a", "root"), ("b", "verified"), ("c", "inferred")]);
    assert_eq!(shown.refused(2), [("RECURSION_REVISIT", "inferred")]);
    assert!(shown.refused(3).iter().all(|(code, _)| *code == "BUDGET_EXHAUSTED"), "{:?}", shown.refused(3));
}

#[test]
fn without_the_rule_that_stops_it_the_loop_runs_until_it_is_too_deep() {
    let shown = Shown::with(&["recursion.deny_revisit=false"]);
    shown.stays_within_every_cap();
    for scene in [1, 2] {
        assert_eq!(shown.tasks(scene).len(), 9, "depths 0 to 8");
        let refused: Vec<&Value> = shown.events("refused", scene).collect();
        assert_eq!(refused.len(), 1);
        assert_eq!((&refused[0]["code"], &refused[0]["facts"]["depth"]), (&Value::from("RECURSION_DEPTH"), &Value::from("9")));
    }
}

#[test]
fn with_less_money_the_loop_is_refused_earlier_and_for_that() {
    let shown = Shown::with(&["budget.tree.max_usd=\"0.02\""]);
    shown.stays_within_every_cap();
    assert_eq!(shown.tasks(1).len(), 2);
    assert_eq!(shown.refused(1), [("BUDGET_EXHAUSTED", "verified")]);
    assert_eq!(shown.refused(2), [("BUDGET_EXHAUSTED", "inferred")]);
}

#[test]
fn a_setting_that_is_none_is_named_and_nothing_starts() {
    for (setting, words) in [
        ("recursion", "KEY=VALUE"),
        ("recursion.deny_revisit=maybe", "--set recursion.deny_revisit=maybe"),
        ("recursion.deny_revisits=true", "did you mean `deny_revisit`?"),
        ("budget.tree.max_usd=-1", "budget.tree"),
        ("listen='0.0.0.0:0'", "loopback"),
        ("policy.rules=[{name='x',deny_when='nobody('}]", "--set"),
    ] {
        let ran = demo(&[setting]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{setting}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{setting}: {}", ran.stderr);
    }
}

#[test]
fn a_loop_that_no_rule_stopped_is_not_called_a_success() {
    // Nobody can be asked, so the loop ends, but nothing that governs it ended it.
    let ran = demo(&[&format!("agents.b.url='http://{}'", lasting_address())]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no rule stopped it"), "{}", ran.stderr);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["ok"], false);
}

#[test]
fn into_a_pipe_go_plain_lines_that_fit_and_the_data_folder_stays_as_it_was() {
    let home = Home::new();
    let ran = run(&home, ["demo"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "no colours and no drawing over");
    for line in ran.stdout.lines() {
        assert!(line.chars().count() < 80, "{line}");
    }
    for words in ["you → a → b → c → a", "RECURSION_REVISIT", "inferred", "BUDGET_EXHAUSTED", "of $0.10", "chancery serve"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert!(!home.data().exists(), "nothing is kept");
}
