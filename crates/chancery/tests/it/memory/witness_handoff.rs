//! Memory is handed from node to node in a request that does not grow with it.

use serde_json::{Value, json};

use super::two_nodes::{TwoNodes, found, witness};

const MOST: usize = 2048;

/// The looks at memory on a node's record.
fn looks(explained: &Value) -> Vec<&Value> {
    let decisions = explained["decisions"].as_array().unwrap();
    decisions.iter().filter(|one| one["verdicts"][0]["rule"] == "memory").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_read_a_witness_is_on_the_record_of_both_nodes() {
    let two_nodes = TwoNodes::new();
    let (published, _) = two_nodes.publish(1_000);
    let name = published["witness"].as_str().unwrap();
    let grant = two_nodes.grant(name, &[]);
    let part = witness(name, published["data_ref"].as_str().unwrap(), grant["id"].as_str());
    let taken = two_nodes.hand_over(&[part]).await;
    assert_eq!(found(&taken)["count"], 1_000, "{taken:#}");
    assert!(!taken.to_string().contains("memory_looks"), "whoever does not ask is told nothing: {taken:#}");

    let reader = two_nodes.at_taker(&["explain", "--json"]).json();
    let giver = crate::operating::cli::run(&two_nodes.giver_home, ["explain", "--json"]).json();
    let (by_reader, by_giver) = (looks(&reader), looks(&giver));
    let (&[there], &[here]) = (&by_reader[..], &by_giver[..]) else { panic!("{reader:#}\n{giver:#}") };
    let fact = |look: &Value, name: &str| {
        let facts = look["verdicts"][0]["facts"].as_array().unwrap();
        facts.iter().find(|fact| fact[0] == name).map_or(Value::Null, |fact| fact[1].clone())
    };
    for look in [there, here] {
        assert_eq!((fact(look, "witness"), fact(look, "look")), (json!(name), json!("resolve")), "{look:#}");
    }
    assert_eq!(fact(here, "reader_decision"), there["id"], "one record leads to the other");
    assert_eq!((fact(here, "reader"), fact(here, "reported_by")), (json!("recall"), json!("recall")));
    assert!(there["trace"].is_string() && there["trace"] == here["trace"], "{there:#}\n{here:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn witness_handoff() {
    let two_nodes = TwoNodes::new();
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let mut lengths = Vec::new();
    for count in sizes {
        let (published, queries) = two_nodes.publish(count);
        let name = published["witness"].as_str().unwrap();
        let data_ref = published["data_ref"].as_str().unwrap();
        let grant = two_nodes.grant(name, &[]);
        let part = witness(name, data_ref, grant["id"].as_str());

        let asked_before = two_nodes.relay.bodies().len();
        let taken = two_nodes.hand_over(std::slice::from_ref(&part)).await;
        assert_eq!(found(&taken)["count"], json!(count), "{taken:#}");
        let bodies = two_nodes.relay.bodies();
        let [body] = &bodies[asked_before..] else { panic!("one request hands it over: {bodies:?}") };
        assert!(body.contains(name), "{body}");
        println!("vectors={count} body_bytes={}", body.len());
        lengths.push(body.len());

        let search = chancery_protocol::Part::data(&json!({ "search": { "queries": queries, "k": 10 } }));
        let there = two_nodes.hand_over(&[part, search]).await;
        let (here, there) = (two_nodes.searched(name, &queries), &found(&there)["neighbours"]);
        assert_eq!(&here, there, "the same neighbours in the same order");
        assert_eq!(there.as_array().map(Vec::len), Some(queries.len()));
        for (place, near) in there.as_array().into_iter().flatten().enumerate() {
            let nearest = (place as u64 * (count / 5) + 3) * 7 + 1;
            assert_eq!(near[0]["id"], json!(nearest), "the one the query was made from");
            assert_eq!(near.as_array().map(Vec::len), Some(10));
        }
    }
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(*most <= MOST, "{lengths:?}");
    assert!(most - least <= 8, "it does not grow with what it stands for: {lengths:?}");

    // Each look is on record, on the node whose agent looked.
    let decisions = two_nodes.at_taker(&["explain", "--json"]).json();
    let looks = decisions["decisions"].as_array().unwrap().iter().filter(|one| one["verdicts"][0]["rule"] == "memory");
    assert_eq!(looks.clone().count(), 2 * lengths.len(), "{decisions:#}");
    assert!(looks.clone().all(|look| look["verdicts"][0]["passed"] == true && look["agent"] == "recall"), "{decisions:#}");
}
