//! Each bound of a task policy refuses what it bounds, in their order, and a refused call holds nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chancery_protocol::{Caller, ErrorKind};
use chancery_rules::MicroUsd;
use chancery_rules::budget::Price;
use chancery_rules::lineage::Attribution;
use chancery_rules::policy::{
    AskedSkill, CallFacts, DEFAULT_CONCURRENCY, Expression, PolicyBook, PolicyConfig, PolicyError, PolicyQuestion, Rules, Slots,
    TaskPolicy, judge,
};
use proptest::prelude::*;

fn book(json: &str) -> PolicyBook {
    PolicyBook::new(&serde_json::from_str(json).unwrap())
}

fn named(skill: &str) -> AskedSkill {
    AskedSkill::Named(skill.into())
}

fn caller() -> Caller {
    Caller::new("t", "planner")
}

#[test]
fn a_skill_that_is_not_allowed_is_refused_and_so_is_one_nobody_knows() {
    let policy = TaskPolicy { allowed_skills: Some(["search".into()].into()), ..TaskPolicy::default() };
    let slots = Arc::new(Slots::default());
    let ask = |skill| {
        judge(
            &policy,
            &PolicyQuestion {
                caller: &caller(),
                skill: &skill,
                estimate: None,
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
        .map(drop)
    };
    assert_eq!(ask(named("search")), Ok(()));
    assert_eq!(ask(AskedSkill::Only("search".into())), Ok(()));
    assert_eq!(ask(named("write")), Err(PolicyError::SkillDenied(Some("write".into()))));
    assert_eq!(ask(AskedSkill::Only("write".into())), Err(PolicyError::SkillDenied(Some("write".into()))));
    assert_eq!(ask(AskedSkill::Unknown), Err(PolicyError::SkillDenied(None)));
    let free = TaskPolicy::default();
    drop(
        judge(
            &free,
            &PolicyQuestion {
                caller: &caller(),
                skill: &AskedSkill::Unknown,
                estimate: None,
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
        .unwrap(),
    );
}

#[test]
fn a_skill_that_nobody_lists_is_judged_by_its_name_and_counted_with_those_that_have_none() {
    let slots = Arc::new(Slots::default());
    let policy = TaskPolicy { allowed_skills: Some(["hidden".into()].into()), max_concurrency: Some(1), ..TaskPolicy::default() };
    let ask = |policy: &TaskPolicy, skill: AskedSkill| {
        judge(
            policy,
            &PolicyQuestion {
                caller: &caller(),
                skill: &skill,
                estimate: None,
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
    };
    let unlisted = |name: &str| AskedSkill::Unlisted(name.into());
    assert_eq!(ask(&policy, unlisted("other")).map(drop), Err(PolicyError::SkillDenied(Some("other".into()))));
    let held = ask(&policy, unlisted("hidden")).unwrap();
    let any = TaskPolicy { allowed_skills: None, ..policy };
    for skill in [unlisted("other"), AskedSkill::Unknown] {
        assert!(matches!(ask(&any, skill).map(drop), Err(PolicyError::ConcurrencyFull { .. })));
    }
    drop(ask(&any, named("search")).unwrap());
    drop(held);
    drop(ask(&any, unlisted("other")).unwrap());
}

#[test]
fn the_skill_is_the_one_named_or_the_only_one() {
    let agents: [Arc<str>; 2] = ["a".into(), "b".into()];
    assert_eq!(AskedSkill::of(Some(&"x".into()), &agents), named("x"));
    assert_eq!(AskedSkill::of(None, &agents[..1]), AskedSkill::Only("a".into()));
    assert_eq!(AskedSkill::of(None, &agents), AskedSkill::Unknown);
    assert_eq!(AskedSkill::of(None, &[]), AskedSkill::Unknown);
}

#[test]
fn the_seventeenth_task_of_a_caller_and_skill_is_refused_until_one_ends() {
    let slots = Arc::new(Slots::default());
    let policy = book("{}").resolve("default", "planner", Some("search"));
    let ask = |caller: &Caller, skill: &str| {
        judge(
            &policy,
            &PolicyQuestion {
                caller,
                skill: &named(skill),
                estimate: None,
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
    };
    let mut held: Vec<_> = (0..DEFAULT_CONCURRENCY).map(|_| ask(&caller(), "search").unwrap()).collect();
    let full = ask(&caller(), "search").unwrap_err();
    assert_eq!(full.kind(), ErrorKind::ConcurrencyFull);
    assert_eq!(full, PolicyError::ConcurrencyFull { caller: "planner".into(), skill: Some("search".into()), limit: 16 });
    // Neither another skill nor another caller nor the same name in another tenant is held up.
    for (caller, skill) in [(caller(), "write"), (Caller::new("t", "other"), "search"), (Caller::new("u", "planner"), "search")] {
        drop(ask(&caller, skill).unwrap());
    }
    held.pop();
    held.push(ask(&caller(), "search").unwrap());
    ask(&caller(), "search").unwrap_err();
    drop(held);
    assert!(slots.is_empty(), "whoever runs nothing is forgotten");
}

#[test]
fn a_task_that_is_expected_to_cost_too_much_is_refused_and_gives_its_slot_back() {
    let slots = Arc::new(Slots::default());
    let policy = TaskPolicy { max_cost_usd: Some(MicroUsd(50_000)), max_concurrency: Some(1), ..TaskPolicy::default() };
    let ask = |estimate| {
        judge(
            &policy,
            &PolicyQuestion {
                caller: &caller(),
                skill: &named("x"),
                estimate,
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
    };
    let over = ask(Some(MicroUsd(50_001))).unwrap_err();
    assert_eq!(over.kind(), ErrorKind::CostOverPolicy);
    assert!(
        matches!(&over, PolicyError::Exceeded { field: "max_cost_usd", actual, .. } if *actual == MicroUsd(50_001).to_string())
    );
    assert!(slots.is_empty());
    drop(ask(Some(MicroUsd(50_000))).unwrap());
    drop(ask(None).unwrap());
}

#[test]
fn a_caller_that_expects_more_than_the_policy_allows_is_refused_whatever_the_price_is() {
    let slots = Arc::new(Slots::default());
    let policy = TaskPolicy { max_cost_usd: Some(MicroUsd(50)), max_tokens: Some(9), ..TaskPolicy::default() };
    let ask = |usd, tokens| {
        let (hint, estimate) = (Price { usd: Some(MicroUsd(usd)), tokens: Some(tokens) }, Some(MicroUsd(1)));
        let ask = PolicyQuestion { caller: &caller(), skill: &named("x"), estimate, hint, concurrency: DEFAULT_CONCURRENCY };
        judge(&policy, &ask, &slots).map(drop)
    };
    assert_eq!(ask(50, 9), Ok(()));
    assert!(matches!(ask(51, 0), Err(PolicyError::Exceeded { field: "max_cost_usd", .. })));
    assert!(matches!(ask(0, 10), Err(PolicyError::Exceeded { field: "max_tokens", .. })));
    assert!(slots.is_empty());
}

#[test]
fn the_skill_is_asked_before_the_slot_and_the_slot_before_the_cost() {
    let slots = Arc::new(Slots::default());
    let policy = TaskPolicy {
        allowed_skills: Some(["x".into()].into()),
        max_concurrency: Some(1),
        max_cost_usd: Some(MicroUsd(1)),
        ..TaskPolicy::default()
    };
    let ask = |skill: &str, cost| {
        judge(
            &policy,
            &PolicyQuestion {
                caller: &caller(),
                skill: &named(skill),
                estimate: Some(MicroUsd(cost)),
                hint: Price::default(),
                concurrency: DEFAULT_CONCURRENCY,
            },
            &slots,
        )
    };
    let held = ask("x", 1).unwrap();
    assert_eq!(ask("y", 2).unwrap_err().kind(), ErrorKind::SkillDenied);
    assert_eq!(ask("x", 2).unwrap_err().kind(), ErrorKind::ConcurrencyFull);
    drop(held);
    assert_eq!(ask("x", 2).unwrap_err().kind(), ErrorKind::CostOverPolicy);
}

#[test]
fn a_running_task_is_held_to_its_tokens_and_its_time() {
    let policy = TaskPolicy { max_tokens: Some(100), max_duration_ms: Some(30_000), ..TaskPolicy::default() };
    assert_eq!((policy.check_tokens(100), policy.check_duration(30_000)), (Ok(()), Ok(())));
    assert!(matches!(policy.check_tokens(101), Err(PolicyError::Exceeded { field: "max_tokens", .. })));
    let late = policy.check_duration(30_001).unwrap_err();
    assert_eq!((late.kind(), late), (ErrorKind::PolicyTimeout, PolicyError::Timeout { limit_ms: 30_000 }));
    assert_eq!((TaskPolicy::default().check_tokens(u64::MAX), TaskPolicy::default().check_duration(u64::MAX)), (Ok(()), Ok(())));
}

#[test]
fn the_most_specific_policy_decides_and_what_it_leaves_open_falls_through() {
    let book = book(
        r#"{
        "default": {"max_tokens": 1, "max_cost_usd": "0.05", "max_duration_ms": 1, "allowed_skills": ["d"], "max_concurrency": 1},
        "skill": {"s": {"max_tokens": 2, "max_cost_usd": 0.5, "max_duration_ms": 2, "allowed_skills": ["s"]}},
        "caller": {
            "c": {"max_tokens": 3, "max_cost_usd": 3, "skill": {"s": {"max_tokens": 4}, "t": {"max_duration_ms": 4}}},
            "quiet": {}
        }}"#,
    );
    let resolved = |caller, skill| {
        let policy = book.resolve("default", caller, skill);
        let skills = policy.allowed_skills.as_ref().unwrap().join(",");
        (policy.max_tokens.unwrap(), policy.max_cost_usd.unwrap().0, policy.max_duration_ms.unwrap(), skills)
    };
    let all = |tokens, cost, duration, skills: &str| (tokens, cost, duration, skills.to_owned());
    assert_eq!(resolved("x", None), all(1, 50_000, 1, "d"));
    assert_eq!(resolved("x", Some("u")), all(1, 50_000, 1, "d"));
    assert_eq!(resolved("x", Some("s")), all(2, 500_000, 2, "s"));
    assert_eq!(resolved("quiet", Some("s")), all(2, 500_000, 2, "s"));
    assert_eq!(resolved("c", None), all(3, 3_000_000, 1, "d"));
    assert_eq!(resolved("c", Some("u")), all(3, 3_000_000, 1, "d"));
    assert_eq!(resolved("c", Some("s")), all(4, 3_000_000, 2, "s"));
    assert_eq!(resolved("c", Some("t")), all(3, 3_000_000, 4, "d"));
    assert_eq!(book.resolve("default", "c", Some("s")).concurrency(), 1);
    assert_eq!(PolicyBook::default().resolve("default", "c", Some("s")).concurrency(), DEFAULT_CONCURRENCY);
}

#[test]
fn a_policy_for_a_caller_of_one_tenant_counts_before_one_for_its_name() {
    let book = book(r#"{ "caller": { "acme/c": { "max_concurrency": 7 }, "c": { "max_concurrency": 8 } } }"#);
    let most = |tenant| book.resolve(tenant, "c", None).concurrency();
    assert_eq!((most("acme"), most("other")), (7, 8));
}

#[test]
fn a_policy_that_nobody_can_mean_is_not_read() {
    for bad in [
        r#"{"default": {"max_tokens": 0}}"#,
        r#"{"default": {"max_duration_ms": 0}}"#,
        r#"{"default": {"max_concurrency": 0}}"#,
        r#"{"default": {"max_cost_usd": -1}}"#,
        r#"{"default": {"max_cost_usd": "0.0000001"}}"#,
        r#"{"default": {"max_cost_usd": "NaN"}}"#,
        r#"{"default": {"max_cost_usd": 9000000001}}"#,
        r#"{"default": {"max_cost": 1}}"#,
        r#"{"caller": {"c": {"skills": {}}}}"#,
        r#"{"caller": {"c": {"skill": {"s": {"skill": {}}}}}}"#,
        r#"{"rules": [{"deny_when": "true"}]}"#,
        r#"{"callers": {}}"#,
    ] {
        assert!(serde_json::from_str::<PolicyConfig>(bad).is_err(), "{bad}");
    }
    let free: PolicyConfig = serde_json::from_str(r#"{"default": {"max_cost_usd": 0, "allowed_skills": []}}"#).unwrap();
    assert_eq!(free.default.max_cost_usd, Some(MicroUsd(0)));
    let written = serde_json::to_string(&free).unwrap();
    assert_eq!(serde_json::from_str::<PolicyConfig>(&written).unwrap(), free);
}

#[test]
fn fifty_threads_never_get_more_slots_than_there_are_and_all_come_back() {
    let slots = Arc::new(Slots::default());
    let (running, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Ok(slot) = slots.take(&caller(), Some(&"s".into()), 1) {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert!(slots.is_empty());
}

#[test]
fn a_slot_comes_back_when_whoever_holds_it_panics() {
    let slots = Arc::new(Slots::default());
    let held = slots.clone();
    let ended = std::thread::spawn(move || {
        let _slot = held.take(&caller(), None, 1).unwrap();
        panic!("the runner broke");
    });
    ended.join().unwrap_err();
    assert!(slots.is_empty());
}

/// Holds, does not hold, or breaks, as its text says.
#[derive(Debug)]
struct Said(Result<bool, String>);

impl Expression for Said {
    fn holds(&self, _: &CallFacts<'_>) -> Result<bool, String> {
        self.0.clone()
    }
}

fn rules(json: &str) -> Result<Rules, Vec<String>> {
    Rules::new(&serde_json::from_str::<Vec<_>>(json).unwrap(), |text| match text {
        "yes" => Ok(Box::new(Said(Ok(true)))),
        "no" => Ok(Box::new(Said(Ok(false)))),
        "broken" => Ok(Box::new(Said(Err("no such field".into())))),
        other => Err(format!("{other:?} is not understood")),
    })
}

#[test]
fn the_first_rule_that_refuses_decides_and_a_broken_one_refuses() {
    let facts = CallFacts {
        caller: "planner",
        tenant: "t",
        agent: "writer",
        skill: None,
        operation: "SendMessage",
        depth: 0,
        attribution: Attribution::Root,
        remaining_usd: None,
        version: "1.0",
        binding: "JSONRPC",
    };
    let denied = |rule: &str, fault: Option<&str>| Err(PolicyError::Denied { rule: rule.into(), fault: fault.map(Into::into) });
    for (json, expected) in [
        ("[]", Ok(())),
        (r#"[{"name":"a","deny_when":"no"},{"name":"b","allow_when":"yes"}]"#, Ok(())),
        (r#"[{"name":"a","deny_when":"yes"}]"#, denied("a", None)),
        (r#"[{"name":"a","allow_when":"no"}]"#, denied("a", None)),
        (r#"[{"name":"a","deny_when":"broken"}]"#, denied("a", Some("no such field"))),
        (r#"[{"name":"a","allow_when":"broken"}]"#, denied("a", Some("no such field"))),
        (
            r#"[{"name":"a","allow_when":"yes"},{"name":"b","deny_when":"yes"},{"name":"c","deny_when":"broken"}]"#,
            denied("b", None),
        ),
    ] {
        assert_eq!(rules(json).unwrap().judge(&facts), expected, "{json}");
    }
}

#[test]
fn every_fault_of_every_rule_is_told() {
    let faults = rules(
        r#"[{"name":"a"},{"name":"b","deny_when":"no","allow_when":"no"},{"name":"c","deny_when":"?"},
            {"name":"d","deny_when":"no"},{"name":"d","deny_when":"no"}]"#,
    )
    .unwrap_err();
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert_eq!(faults[2], r#"the rule "c": "?" is not understood"#);
    assert_eq!(faults[3], r#"the rule "d" is there twice"#);
}

proptest! {
    #[test]
    fn slots_count_what_is_held(moves in prop::collection::vec((0usize..3, any::<bool>()), 1..200), limit in 1u32..4) {
        let slots = Arc::new(Slots::default());
        let mut held: Vec<Vec<_>> = (0..3).map(|_| Vec::new()).collect();
        for (who, take) in moves {
            let caller = Caller::new("t", who.to_string());
            if take {
                let free = held[who].len() < limit as usize;
                let taken = slots.take(&caller, None, limit);
                prop_assert_eq!(taken.is_ok(), free);
                held[who].extend(taken);
            } else {
                held[who].pop();
            }
            prop_assert_eq!(slots.running(&caller, None) as usize, held[who].len());
            prop_assert_eq!(slots.len(), held.iter().filter(|held| !held.is_empty()).count());
        }
    }
}
