//! Random calls with random hints: at a known price no cap is ever passed, and an agent that lies passes one
//! by what was in flight.

use std::sync::Arc;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::*;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

/// Who pays: every kind of scope, each with a cap of its own on dollars, tokens and tasks.
fn accounts(ledger: &BudgetLedger, caps: &[[u64; 3]; 6]) -> Accounts {
    let name = |name: &str| Arc::<str>::from(name);
    let scopes = [
        BudgetScope::Global,
        BudgetScope::Tenant(name("t")),
        BudgetScope::Caller { tenant: name("t"), name: name("c") },
        BudgetScope::Agent(name("a")),
        BudgetScope::Skill { agent: name("a"), skill: name("s") },
        BudgetScope::Tree(name("r")),
    ];
    let limit = |[usd, tokens, tasks]: [u64; 3]| Limit {
        caps: Caps { usd: Some(money(usd)), tokens: Some(tokens), tasks: Some(tasks) },
        window: BudgetWindow::MINUTE,
    };
    scopes.iter().zip(caps).map(|(scope, caps)| ledger.account(scope, limit(*caps))).collect()
}

fn money(micros: u64) -> MicroUsd {
    MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX))
}

fn price(usd: u64, tokens: u64) -> Price {
    Price { usd: Some(money(usd)), tokens: Some(tokens) }
}

#[derive(Clone, Debug)]
enum Step {
    Call {
        hint: Option<(u64, u64)>,
    },
    /// Ends a call at so many percent of its price.
    End {
        which: usize,
        percent: u64,
    },
}

fn hostile() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..40_u64, Just(u64::MAX), Just(i64::MAX as u64)]
}

fn step() -> impl Strategy<Value = Step> {
    let hint = prop::option::weighted(0.8, (hostile(), hostile()));
    prop_oneof![
        3 => hint.prop_map(|hint| Step::Call { hint }),
        1 => (any::<usize>(), 0..=100_u64).prop_map(|(which, percent)| Step::End { which, percent }),
    ]
}

/// As the node does it: a learnt or configured price, a share of what is common, and what is left.
fn admit(ledger: &BudgetLedger, accounts: &Accounts, facts: EstimateFacts) -> Result<(Reservation, Estimated), BudgetError> {
    let Caps { usd, tokens, .. } = ledger.most_unknown(accounts);
    let hint_at_most = Price { usd, tokens };
    let estimated = estimate(&EstimateFacts { hint_at_most, usd_is_capped: true, tokens_are_capped: true, ..facts });
    ledger.reserve(accounts, estimated.estimate, NOW).map(|held| (held, estimated))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Overshoot is 0: what calls cost, running ones at their full price, is within every cap at every
    /// moment.
    #[test]
    fn at_a_known_price_no_hint_passes_a_cap(
        caps in prop::array::uniform6(prop::array::uniform3(1..400_u64)),
        known in (0..30_u64, 0..30_u64),
        on_card in any::<bool>(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let ledger = BudgetLedger::new();
        let accounts = accounts(&ledger, &caps);
        let (usd, tokens) = known;
        let (mut running, mut spent) = (Vec::new(), [0_u64; 3]);
        for step in steps {
            match step {
                Step::Call { hint } => {
                    let hint = hint.map(|(usd, tokens)| price(usd, tokens)).unwrap_or_default();
                    let mut facts = EstimateFacts { hint, ..EstimateFacts::default() };
                    *(if on_card { &mut facts.card } else { &mut facts.config }) = price(usd, tokens);
                    if let Ok((held, estimated)) = admit(&ledger, &accounts, facts) {
                        let amount = held.amount();
                        prop_assert!(amount.usd >= money(usd) && amount.tokens >= tokens, "a hint never lowers: {estimated:?}");
                        prop_assert!(amount.usd <= money(usd * HINT_AT_MOST) && amount.tokens <= tokens * HINT_AT_MOST);
                        running.push(held);
                    }
                }
                Step::End { which, percent } if !running.is_empty() => {
                    let held = running.swap_remove(which % running.len());
                    let cost = Amount::of_task(money(usd * percent / 100), tokens * percent / 100);
                    let ended = ledger.settle(held, cost, NOW);
                    prop_assert_eq!(ended.overrun, Amount::default());
                    spent = [spent[0] + usd * percent / 100, spent[1] + tokens * percent / 100, spent[2] + 1];
                }
                Step::End { .. } => {}
            }
            let open = running.len() as u64;
            let worst = [spent[0] + open * usd, spent[1] + open * tokens, spent[2] + open];
            for caps in &caps {
                prop_assert!((0..3).all(|at| worst[at] <= caps[at]), "{worst:?} of {caps:?}");
            }
        }
    }

    /// The bound for prices that were learnt: a cap is passed by at most what the calls that were in flight
    /// when the first report above its reservation was settled report above theirs. Every later call holds
    /// all that is left.
    #[test]
    fn an_agent_that_lies_passes_a_cap_by_at_most_what_was_in_flight(
        cap in 100..2_000_u64,
        honest in prop::collection::vec(0..20_u64, 1..5),
        hints in prop::collection::vec(hostile(), 1..60),
        lies in prop::collection::vec(prop_oneof![Just(0), 0..50_u64, 0..5_000_u64], 60),
        later in prop::collection::vec((hostile(), 0..=100_u64), 0..60),
    ) {
        let ledger = BudgetLedger::new();
        let scope = BudgetScope::Caller { tenant: "t".into(), name: "c".into() };
        let limit = Limit { caps: Caps { usd: Some(money(cap)), ..Caps::NONE }, window: BudgetWindow::MINUTE };
        let accounts = Accounts::from(ledger.account(&scope, limit));
        let mut observed = ObservedCost::default();
        let call = |observed: &ObservedCost, hint: u64| {
            let facts = EstimateFacts { hint: price(hint, 0), observed: observed.learnt(), ..EstimateFacts::default() };
            admit(&ledger, &accounts, facts)
        };
        let settle = |observed: &mut ObservedCost, held: Reservation, cost: u64| {
            let sources = (ActualSource::Reported, ActualSource::Estimated);
            let actual = Actual { usd: money(cost), usd_source: sources.0, tokens: 0, tokens_source: sources.1, ignored: vec![] };
            let ended = ledger.settle(held, Amount::of_task(money(cost), 0), NOW);
            observed.add(&actual, ended.overrun);
            ended
        };
        let mut total = 0;
        for cost in honest {
            let Ok((held, _)) = call(&observed, 0) else { return Ok(()) };
            let cost = cost.min(held.amount().usd.0 as u64);
            settle(&mut observed, held, cost);
            total += cost;
        }
        let in_flight: Vec<Reservation> = hints.iter().map_while(|hint| call(&observed, *hint).ok()).map(|(held, _)| held).collect();
        let mut bound = 0;
        for (held, lie) in in_flight.into_iter().zip(lies) {
            bound += lie.saturating_sub(held.amount().usd.0 as u64);
            settle(&mut observed, held, lie);
            total += lie;
            prop_assert!(total <= cap + bound, "{total} of {cap}, and {bound} above reservations");
        }
        for (hint, percent) in later {
            let overran = observed.learnt().usd_overran;
            let Ok((held, estimated)) = call(&observed, hint) else { break };
            if overran {
                prop_assert_eq!(estimated.usd, EstimateSource::Remainder);
                prop_assert_eq!(ledger.remaining(&accounts, NOW).usd, Some(MicroUsd(0)), "it runs alone");
            }
            let cost = held.amount().usd.0 as u64 * percent / 100;
            settle(&mut observed, held, cost);
            total += cost;
            prop_assert!(total <= cap + bound, "{total} of {cap}, and {bound} above reservations");
        }
    }
}

#[test]
fn a_remainder_takes_a_quarter_of_what_is_common_and_all_of_what_is_the_callers_own() {
    let ledger = BudgetLedger::new();
    let limit = |usd| Limit { caps: Caps { usd: Some(money(usd)), ..Caps::NONE }, window: BudgetWindow::MINUTE };
    let global = ledger.account(&BudgetScope::Global, limit(1_000));
    let tenant = ledger.account(&BudgetScope::Tenant("t".into()), limit(1_200));
    let caller = |name: &str| ledger.account(&BudgetScope::Caller { tenant: "t".into(), name: name.into() }, limit(700));
    let of = |name: &str| [global.clone(), tenant.clone(), caller(name)].into_iter().collect::<Accounts>();
    let hold = |accounts: &Accounts| ledger.reserve(accounts, Estimate::REMAINDER, NOW);
    let held: Vec<_> = ["one", "two", "three", "four"].map(|name| hold(&of(name)).unwrap()).into_iter().collect();
    assert!(held.iter().all(|held| held.amount().usd == MicroUsd(250)), "{held:?}");
    assert_eq!(hold(&of("five")).unwrap_err().scope(), &BudgetScope::Global, "four at once, and no more");
    drop(held);
    let alone = hold(&Accounts::from(caller("one"))).unwrap();
    assert_eq!(alone.amount().usd, MicroUsd(700));
    drop(alone);
    ledger.set_unknown_share(UnknownShare::new(1.0).unwrap());
    assert_eq!(hold(&of("one")).unwrap().amount().usd, MicroUsd(700), "the smallest of all, at a share of 1");
    ledger.set_unknown_share(UnknownShare::new(0.000_001).unwrap());
    assert_eq!(hold(&of("one")).unwrap().amount().usd, MicroUsd(1), "never nothing");
}

#[test]
fn an_agent_that_overran_keeps_what_it_is_expected_to_cost_and_lends_the_rest() {
    let ledger = BudgetLedger::new();
    let limit = Limit::of_tree(Caps { usd: Some(MicroUsd(100)), ..Caps::NONE });
    let accounts = Accounts::from(ledger.account(&BudgetScope::Tree("r".into()), limit));
    let distrusted = |usd: i64| Estimate { expected: Price { usd: Some(MicroUsd(usd)), tokens: None }, ..Estimate::REMAINDER };
    let mut lender = ledger.reserve(&accounts, distrusted(30), NOW).unwrap();
    assert_eq!((lender.amount().usd, lender.lendable().usd), (MicroUsd(100), MicroUsd(70)));
    let known = |usd: i64| Estimate::known(Amount::of_task(MicroUsd(usd), 0));
    assert!(ledger.reserve_from(&mut lender, &accounts, known(71), NOW).is_err());
    let child = ledger.reserve_from(&mut lender, &accounts, known(70), NOW).unwrap();
    assert_eq!(lender.amount().usd, MicroUsd(30));
    ledger.settle(child, Amount::of_task(MicroUsd(70), 0), NOW);
    ledger.settle(lender, Amount::of_task(MicroUsd(10), 0), NOW);
    assert!(ledger.reserve(&accounts, distrusted(21), NOW).is_err(), "what is left is less than it is expected to cost");
    assert_eq!(ledger.reserve(&accounts, distrusted(20), NOW).unwrap().amount().usd, MicroUsd(20));
}
