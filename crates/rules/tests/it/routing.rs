//! Each selector picks as it says, from what was measured, and nobody starves.

use std::collections::{BTreeMap, BTreeSet};

use chancery_protocol::{AgentCapabilities, AgentCard, AgentExtension};
use chancery_rules::routing::{
    CapabilityMatch, ChainedSelector, CheapestUnderLatency, Fallback, LowestLatency, PeerId, PeerSelector, PeerSnapshot,
    PowerOfTwoChoices, RoundRobin, RoutingConfig, SelectorName, TaskSpec,
};
use proptest::prelude::*;

use crate::common::{cold, failing, millis, peer, skill, streaming, with_card};

fn pick(selector: &dyn PeerSelector, peers: &[PeerSnapshot]) -> Option<String> {
    selector.select(&TaskSpec::default(), peers).map(|id| id.to_string())
}

fn stock(seed: u64) -> Vec<Box<dyn PeerSelector>> {
    vec![
        Box::new(CheapestUnderLatency { latency_budget: millis(1_000) }),
        Box::new(LowestLatency),
        Box::new(RoundRobin::new(seed)),
        Box::new(CapabilityMatch),
        Box::new(PowerOfTwoChoices::new(seed)),
    ]
}

/// Three peers: cheap and slow, dear and fast, and one in between that is busy.
fn three() -> Vec<PeerSnapshot> {
    vec![peer("cheap", 900, 10, 1), peer("fast", 50, 5_000, 2), peer("busy", 300, 100, 40)]
}

#[test]
fn each_stock_selector_picks_the_peer_it_stands_for() {
    let peers = three();
    let cheapest = |budget| CheapestUnderLatency { latency_budget: millis(budget) };
    assert_eq!(pick(&cheapest(2_000), &peers).as_deref(), Some("cheap"));
    assert_eq!(pick(&cheapest(500), &peers).as_deref(), Some("busy"));
    assert_eq!(pick(&cheapest(100), &peers).as_deref(), Some("fast"));
    assert_eq!(pick(&LowestLatency, &peers).as_deref(), Some("fast"));
    let turns: BTreeSet<_> = std::iter::repeat_with({
        let selector = RoundRobin::new(3);
        move || pick(&selector, &three()).unwrap()
    })
    .take(3)
    .collect();
    assert_eq!(turns.len(), 3);
    let cards = vec![peer("cheap", 900, 10, 1), with_card(streaming(), peer("fast", 50, 5_000, 2))];
    let task = TaskSpec { required_capabilities: &["streaming"], ..TaskSpec::default() };
    assert_eq!(CapabilityMatch.select(&task, &cards), Some(PeerId::new("fast")));
    assert_eq!(pick(&PowerOfTwoChoices::new(1), &peers[1..]).as_deref(), Some("fast"), "150 against 12,300");
}

#[test]
fn where_nobody_is_eligible_nobody_is_picked() {
    for selector in stock(1) {
        assert_eq!(pick(&*selector, &[]), None, "{}", selector.name());
    }
    assert_eq!(
        pick(&CheapestUnderLatency { latency_budget: millis(50) }, &three()),
        None,
        "as fast as the budget is not under it"
    );
    let task = TaskSpec { required_capabilities: &["streaming"], ..TaskSpec::default() };
    assert_eq!(CapabilityMatch.select(&task, &three()), None);
    assert_eq!(pick(&ChainedSelector(Vec::new()), &three()), None);
}

#[test]
fn a_deadline_tighter_than_the_budget_is_the_budget() {
    let selector = CheapestUnderLatency { latency_budget: millis(2_000) };
    let task = |deadline| TaskSpec { deadline: Some(millis(deadline)), ..TaskSpec::default() };
    assert_eq!(selector.select(&task(301), &three()), Some(PeerId::new("busy")));
    assert_eq!(selector.select(&task(60_000), &three()), Some(PeerId::new("cheap")));
}

#[test]
fn a_peer_that_never_said_its_price_comes_after_those_that_did() {
    let silent = PeerSnapshot { ewma_cost: None, ..peer("silent", 1, 0, 0) };
    let selector = CheapestUnderLatency { latency_budget: millis(2_000) };
    assert_eq!(pick(&selector, &[silent.clone(), peer("dear", 900, i64::MAX, 9)]).as_deref(), Some("dear"));
    let other = PeerSnapshot { ewma_cost: None, ..peer("other", 2, 0, 0) };
    assert_eq!(pick(&selector, &[other, silent]).as_deref(), Some("silent"), "with no price at all the faster one");
}

#[test]
fn a_chain_goes_on_to_the_next_selector_and_ignores_peers_that_were_not_offered() {
    struct Stranger;
    impl PeerSelector for Stranger {
        fn select(&self, _task: &TaskSpec<'_>, _peers: &[PeerSnapshot]) -> Option<PeerId> {
            Some(PeerId::new("stranger"))
        }
    }
    let chain = ChainedSelector(vec![
        Box::new(Stranger),
        Box::new(CheapestUnderLatency { latency_budget: millis(1) }),
        Box::new(LowestLatency),
    ]);
    assert_eq!(pick(&chain, &three()).as_deref(), Some("fast"));
    let first_wins =
        ChainedSelector(vec![Box::new(CheapestUnderLatency { latency_budget: millis(2_000) }), Box::new(LowestLatency)]);
    assert_eq!(pick(&first_wins, &three()).as_deref(), Some("cheap"));
}

#[test]
fn a_capability_is_a_flag_an_extension_or_a_tag_of_the_skill() {
    let card = AgentCard {
        capabilities: AgentCapabilities {
            push_notifications: Some(true),
            streaming: Some(false),
            extensions: vec![AgentExtension {
                uri: "https://x.example/ext".into(),
                description: String::new(),
                required: false,
                params: None,
            }],
            ..Default::default()
        },
        skills: vec![skill("ask", &["geo"]), skill("tell", &["news"])],
        ..AgentCard::default()
    };
    let peers = [with_card(card, peer("p", 1, 1, 0))];
    for (skill_id, capability, found) in [
        ("", "pushNotifications", true),
        ("", "push_notifications", true),
        ("", "streaming", false),
        ("", "https://x.example/ext", true),
        ("", "news", true),
        ("ask", "geo", true),
        ("ask", "news", false),
        ("", "teleportation", false),
    ] {
        let task = TaskSpec { skill_id, required_capabilities: &["pushNotifications", capability], ..TaskSpec::default() };
        assert_eq!(CapabilityMatch.select(&task, &peers).is_some(), found, "{skill_id} {capability}");
    }
    let same = [failing(20, peer("a", 1, 1, 0)), failing(10, peer("c", 1, 1, 0)), failing(10, peer("b", 1, 1, 0))];
    assert_eq!(pick(&CapabilityMatch, &same).as_deref(), Some("c"), "who fails least, then the first");
}

#[test]
fn a_card_offers_a_task_if_it_has_the_skill_and_takes_the_media_types() {
    let mut draw = skill("draw", &[]);
    draw.input_modes = vec!["image/*".into()];
    let card =
        AgentCard { default_input_modes: vec!["text".into()], skills: vec![draw, skill("chat", &[])], ..AgentCard::default() };
    for (skill_id, input_modes, offered) in [
        ("", &[][..], true),
        ("draw", &["image/png", "text/plain; charset=utf-8"], true),
        ("chat", &["image/png"], false),
        ("fly", &[], false),
        ("", &["audio/ogg"], false),
    ] {
        let task = TaskSpec { skill_id, input_modes, ..TaskSpec::default() };
        assert_eq!(task.is_offered_by(&card), offered, "{skill_id} {input_modes:?}");
    }
}

#[test]
fn a_config_becomes_a_chain_and_says_what_local_means() {
    let plan = |default_selector, fallback| {
        let config = RoutingConfig { default_selector, fallback, latency_budget_ms: 40, ..RoutingConfig::default() };
        config.plan(9)
    };
    let cheapest = plan(SelectorName::CheapestUnderLatency, Fallback::LowestLatency);
    assert_eq!(format!("{:?}", cheapest.selector), r#"["cheapest_under_latency", "lowest_latency"]"#);
    assert_eq!(pick(&cheapest.selector, &three()).as_deref(), Some("fast"), "by the fallback: nobody is under 40 ms");
    assert!(!cheapest.fall_back_to_local);
    let local = plan(SelectorName::CheapestUnderLatency, Fallback::Local);
    assert_eq!((pick(&local.selector, &three()), local.fall_back_to_local), (None, true));
    let none = plan(SelectorName::CheapestUnderLatency, Fallback::None);
    assert_eq!((pick(&none.selector, &three()), none.fall_back_to_local), (None, false));
    for (name, fallback) in [
        ("cheapest_under_latency", Fallback::CheapestUnderLatency),
        ("lowest_latency", Fallback::LowestLatency),
        ("round_robin", Fallback::RoundRobin),
        ("capability_match", Fallback::CapabilityMatch),
        ("power_of_two_choices", Fallback::PowerOfTwoChoices),
    ] {
        let selector: SelectorName = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!(fallback.selector(), Some(selector));
        assert_eq!(format!("{:?}", plan(selector, fallback).selector), format!("[{name:?}, {name:?}]"));
    }
}

#[test]
fn a_seed_in_the_config_outranks_the_nodes_own_and_is_shown() {
    let picks = |config: &RoutingConfig, own_seed| {
        let plan = config.plan(own_seed);
        (0..50).map(|_| pick(&plan.selector, &three()).unwrap()).collect::<Vec<_>>()
    };
    let config = RoutingConfig::default();
    assert_eq!(picks(&config, 1), picks(&config, 1));
    assert_ne!(picks(&config, 1), picks(&config, 2));
    let seeded = RoutingConfig { seed: Some(1), ..config.clone() };
    assert_eq!(picks(&seeded, 2), picks(&config, 1));
    assert_eq!(format!("{:?}", PowerOfTwoChoices::new(77)), "PowerOfTwoChoices { seed: 77, .. }");
    assert_eq!(format!("{:?}", RoundRobin::new(77)), "RoundRobin { seed: 77, .. }");
}

/// Sends tasks one after the other; `answers` says which peers ever answer. Gives how many tasks each got.
fn traffic(selector: &dyn PeerSelector, peers: &mut [PeerSnapshot], tasks: usize, answers: &[&str]) -> BTreeMap<String, usize> {
    let mut got = BTreeMap::new();
    for _ in 0..tasks {
        let id = pick(selector, peers).unwrap();
        let chosen = peers.iter_mut().find(|peer| peer.id.as_str() == id).unwrap();
        if answers.contains(&id.as_str()) && chosen.cold {
            *chosen = PeerSnapshot { card: chosen.card.clone(), ..peer(&id, 500, 50, chosen.open_tasks) };
        } else if !answers.contains(&id.as_str()) {
            chosen.open_tasks += 1;
        }
        *got.entry(id).or_default() += 1;
    }
    got
}

#[test]
fn a_cold_peer_is_tried_and_one_that_never_answers_gets_one_task_and_no_more() {
    for selector in stock(5).into_iter().filter(|selector| !["capability_match", "round_robin"].contains(&selector.name())) {
        let mut peers = [peer("known", 20, 20, 0), cold("dead"), cold("fresh")];
        let got = traffic(&*selector, &mut peers, 300, &["known", "fresh"]);
        assert!(got["fresh"] >= 1, "{} {got:?}", selector.name());
        assert!(got["known"] > 150, "{} {got:?}", selector.name());
        assert_eq!(got["dead"], 1, "{} {got:?}", selector.name());
    }
}

#[test]
fn where_all_are_cold_and_busy_the_least_busy_is_taken() {
    let busy = |id, open_tasks| PeerSnapshot { open_tasks, ..cold(id) };
    let peers = [busy("a", 3), busy("b", 2), busy("c", 4)];
    assert_eq!(pick(&LowestLatency, &peers).as_deref(), Some("b"));
    assert_eq!(pick(&PowerOfTwoChoices::new(1), &peers[..2]).as_deref(), Some("b"));
    assert_eq!(pick(&CheapestUnderLatency { latency_budget: millis(1_000) }, &peers), None, "nothing shows that they are fast");
}

fn any_peers() -> impl Strategy<Value = Vec<PeerSnapshot>> {
    let number = || prop_oneof![Just(0_u64), 1..5_000_u64, Just(u64::MAX / 2_000)];
    let open = prop_oneof![0..4_u32, Just(u32::MAX)];
    let some = (number(), number(), open, 0..=100_u32, 0..4_u8);
    prop::collection::vec(some, 0..8).prop_map(|peers| {
        let named = |(index, (latency, cost, open_tasks, failed, kind)): (usize, (u64, u64, u32, u32, u8))| {
            let id = format!("p{index}");
            match kind {
                0 => PeerSnapshot { open_tasks, ..cold(&id) },
                1 => PeerSnapshot { ewma_latency: None, ewma_cost: None, ..failing(failed, peer(&id, 0, 0, open_tasks)) },
                _ => failing(failed, peer(&id, latency, cost as i64, open_tasks)),
            }
        };
        peers.into_iter().enumerate().map(named).collect()
    })
}

proptest! {
    #[test]
    fn a_selector_picks_one_of_those_offered_and_somebody_if_it_takes_anybody(peers in any_peers(), seed in any::<u64>()) {
        for selector in stock(seed) {
            match selector.select(&TaskSpec::default(), &peers) {
                Some(id) => prop_assert!(peers.iter().any(|peer| peer.id == id)),
                None => prop_assert!(peers.is_empty() || selector.name() == "cheapest_under_latency"),
            }
        }
    }

    #[test]
    fn the_order_of_the_pool_changes_no_pick_by_measurement(peers in any_peers(), by in any::<prop::sample::Index>()) {
        let mut turned = peers.clone();
        if !turned.is_empty() {
            turned.rotate_left(by.index(peers.len()));
        }
        prop_assert_eq!(pick(&LowestLatency, &peers), pick(&LowestLatency, &turned));
        let cheapest = CheapestUnderLatency { latency_budget: millis(1_000) };
        prop_assert_eq!(pick(&cheapest, &peers), pick(&cheapest, &turned));
        prop_assert_eq!(pick(&RoundRobin::new(4), &peers), pick(&RoundRobin::new(4), &turned));
    }

    #[test]
    fn the_cheapest_is_under_the_budget_and_nobody_under_it_is_cheaper(peers in any_peers(), budget in 0..5_000_u64) {
        let selector = CheapestUnderLatency { latency_budget: millis(budget) };
        let trials = peers.iter().any(PeerSnapshot::wants_a_trial);
        let under: Vec<_> = peers.iter().filter(|peer| peer.ewma_latency.is_some_and(|latency| latency < millis(budget))).collect();
        match selector.select(&TaskSpec::default(), &peers) {
            None => prop_assert!(!trials && under.is_empty()),
            Some(id) => {
                let chosen = peers.iter().find(|peer| peer.id == id).unwrap();
                prop_assert_eq!(chosen.wants_a_trial(), trials);
                prop_assert!(trials || under.iter().all(|peer| chosen.ewma_cost <= peer.ewma_cost));
            }
        }
    }

    #[test]
    fn the_most_loaded_of_a_pool_is_never_the_pick_of_two(latencies in prop::collection::btree_set(1..10_000_u64, 2..8), seed in any::<u64>()) {
        let slowest = *latencies.last().unwrap();
        let peers: Vec<_> = latencies.iter().map(|latency| peer(&latency.to_string(), *latency, 1, 0)).collect();
        let selector = PowerOfTwoChoices::new(seed);
        for _ in 0..50 {
            prop_assert_ne!(pick(&selector, &peers), Some(slowest.to_string()), "seed {}", seed);
        }
    }

    #[test]
    fn two_choices_never_pile_up_where_all_are_alike(count in 2..12_usize, seed in any::<u64>()) {
        let mut peers: Vec<_> = (0..count).map(|index| peer(&index.to_string(), 100, 1, 0)).collect();
        traffic(&PowerOfTwoChoices::new(seed), &mut peers, count * 20, &[]);
        let open = peers.iter().map(|peer| peer.open_tasks);
        prop_assert!(open.clone().max() <= Some(28) && open.min() >= Some(10), "seed {} {:?}", seed, peers);
    }

    #[test]
    fn turns_are_fair_however_calls_to_different_pools_are_mixed(pools in prop::collection::vec(0..3_usize, 1..120), seed in any::<u64>()) {
        let members = [vec!["a", "b"], vec!["c", "d", "e"], vec!["f"]];
        let selector = RoundRobin::new(seed);
        let mut got: BTreeMap<String, i64> = BTreeMap::new();
        for pool in pools {
            let peers: Vec<_> = members[pool].iter().map(|id| peer(id, 1, 1, 0)).collect();
            *got.entry(pick(&selector, &peers).unwrap()).or_default() += 1;
        }
        for pool in members {
            let turns: Vec<_> = pool.iter().map(|id| got.get(*id).copied().unwrap_or(0)).collect();
            prop_assert!(turns.iter().max().unwrap() - turns.iter().min().unwrap() <= 1, "seed {} {:?}", seed, got);
        }
    }

    #[test]
    fn nobody_of_a_shared_pool_waits_longer_than_a_round(present in prop::collection::vec(prop::collection::btree_set(0..6_u8, 1..6), 1..80)) {
        let selector = RoundRobin::new(1);
        let mut passed_over = [0; 6];
        for set in present {
            let peers: Vec<_> = set.iter().map(|number| peer(&number.to_string(), 1, 1, 0)).collect();
            let chosen: usize = pick(&selector, &peers).unwrap().parse().unwrap();
            for number in set {
                passed_over[usize::from(number)] += 1;
            }
            passed_over[chosen] = 0;
            prop_assert!(passed_over.iter().all(|times| *times < 6), "{:?}", passed_over);
        }
    }
}
