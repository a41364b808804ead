//! Nobody looks at memory without a grant that fits, and what was refused is on record.

use std::fs;

use chancery_protocol::Part;
use serde_json::{Value, json};

use super::two_nodes::{self, TwoNodes, found, witness};
use crate::operating::cli::run;

/// The reason in the details of an error, and what the memory said.
fn refused(answer: &Value) -> (String, String, String) {
    let error = &answer["error"];
    let details = &error["data"][0];
    let said = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned();
    (said(&details["reason"]), said(&details["metadata"]["memory"]), said(&details["metadata"]["decision"]))
}

/// Hands it to the agent, which is refused for this, and finds that on record.
async fn is_refused(two_nodes: &TwoNodes, parts: &[Part], reason: &str, why: &str) {
    let answer = two_nodes.tell(parts).await;
    let (said, because, decision) = refused(&answer);
    assert_eq!((&*said, &*because), (reason, why), "{answer:#}");
    let kept = two_nodes.at_taker(&["explain", &decision, "--json"]).json();
    let verdict = &kept["decision"]["verdicts"][0];
    assert_eq!((&verdict["rule"], &verdict["passed"]), (&json!("memory"), &json!(false)), "{kept:#}");
    assert!(verdict["facts"].as_array().unwrap().iter().any(|fact| fact == &json!(["memory", why])), "{kept:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_without_a_grant_that_fits_opens_nothing() {
    let two_nodes = TwoNodes::new();
    let (published, queries) = two_nodes.publish(500);
    let name = published["witness"].as_str().unwrap();
    let data_ref = published["data_ref"].as_str().unwrap();
    let denied = "PERMISSION_DENIED";
    let with = |grant: Option<&str>| vec![witness(name, data_ref, grant)];
    let id = |grant: &Value| grant["id"].as_str().unwrap().to_owned();

    is_refused(&two_nodes, &with(None), denied, "no_grant").await;
    is_refused(&two_nodes, &with(Some("nonsense")), denied, "malformed_grant").await;

    let good = id(&two_nodes.grant(name, &[]));
    assert_eq!(found(&two_nodes.tell(&with(Some(&good))).await)["count"], json!(500));

    let somebody = "ab".repeat(32);
    let wrong = run(&two_nodes.giver_home, ["memory", "grant", name, "--to", &somebody, "--json"]).json();
    is_refused(&two_nodes, &with(Some(&id(&wrong))), denied, "other_grantee").await;

    let expired = id(&two_nodes.grant(name, &["--for", "0s"]));
    is_refused(&two_nodes, &with(Some(&expired)), denied, "expired").await;

    let read_only = id(&two_nodes.grant(name, &["--can", "read"]));
    let search = Part::data(&json!({ "search": { "queries": queries, "k": 3 } }));
    let parts = [with(Some(&read_only)), vec![search]].concat();
    is_refused(&two_nodes, &parts, denied, "capability").await;
    let writes = id(&two_nodes.grant(name, &["--can", "write"]));
    is_refused(&two_nodes, &with(Some(&writes)), denied, "capability").await;

    let mut for_less = with(Some(&good)).remove(0);
    let said = json!({ "kind": "rulake_witness", "witness": name, "data_ref": data_ref, "capabilities": ["search"] });
    for_less.content = Part::data(&said).content;
    is_refused(&two_nodes, &[for_less], denied, "handed_for").await;

    let from_another = id(&two_nodes.grant(name, &["--from", &somebody]));
    is_refused(&two_nodes, &with(Some(&from_another)), denied, "other_presenter").await;

    let (other, _) = two_nodes.publish(600);
    let elsewhere = id(&two_nodes.grant(other["witness"].as_str().unwrap(), &[]));
    is_refused(&two_nodes, &with(Some(&elsewhere)), denied, "other_witness").await;

    let revoked = run(&two_nodes.giver_home, ["memory", "revoke", &good]);
    assert_eq!(revoked.stdout, format!("{good} revoked\n"), "{}", revoked.stderr);
    is_refused(&two_nodes, &with(Some(&good)), denied, "revoked").await;
    let listed = run(&two_nodes.giver_home, ["memory", "grants"]).stdout;
    let line = listed.lines().find(|line| line.starts_with(&good)).unwrap();
    assert!(line.contains("revoked") && line.contains("read,search") && line.contains(&two_nodes.grantee), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_generation_is_written_by_who_may_and_by_nobody_else() {
    let two_nodes = TwoNodes::new();
    let (published, _) = two_nodes.publish(500);
    let name = published["witness"].as_str().unwrap();
    let data_ref = published["data_ref"].as_str().unwrap();
    let vector = vec![5.0; two_nodes::DIM as usize];
    let write = Part::data(&json!({ "write": { "vectors": [{ "id": 7, "vector": vector }] } }));
    let id = |grant: &Value| grant["id"].as_str().unwrap().to_owned();
    let parts = |grant: &str| vec![witness(name, data_ref, Some(grant)), write.clone()];
    let reads = id(&two_nodes.grant(name, &["--can", "read,search"]));
    is_refused(&two_nodes, &parts(&reads), "PERMISSION_DENIED", "capability").await;
    let writes = id(&two_nodes.grant(name, &["--can", "read,write,search"]));
    let answer = two_nodes.hand_over(&parts(&writes)).await;
    let written = found(&answer);
    assert_eq!(written["count"], json!(501), "{answer:#}");
    let [new, place, grant] = ["witness", "data_ref", "grant"].map(|name| written[name].as_str().unwrap().to_owned());
    let search = Part::data(&json!({ "search": { "queries": [vector], "k": 1 } }));
    let answer = two_nodes.tell(&[witness(&new, &place, Some(&grant)), search]).await;
    assert_eq!(found(&answer)["neighbours"][0][0]["id"], json!(7), "{answer:#}");
    // The giver looks at it as an operator, and takes back what it gave.
    assert_eq!(two_nodes.searched(&new, &[vector])[0][0]["id"], json!(7));
    assert_eq!(run(&two_nodes.giver_home, ["memory", "revoke", &writes]).code, Some(0));
    is_refused(&two_nodes, &[witness(&new, &place, Some(&grant))], "PERMISSION_DENIED", "revoked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_tampered_with_or_lies_elsewhere_is_not_looked_at() {
    let two_nodes = TwoNodes::new();
    let (published, _) = two_nodes.publish(500);
    let name = published["witness"].as_str().unwrap();
    let data_ref = published["data_ref"].as_str().unwrap();
    // For everything in the tier, so that nothing is refused for the grant.
    let grant = run(&two_nodes.giver_home, ["memory", "grant", "--to", &two_nodes.grantee, "--json"]).json();
    let grant = grant["id"].as_str();
    let invalid = "INVALID_PARAMS";

    let other = name.replace(|digit: char| digit.is_ascii_digit(), "0");
    is_refused(&two_nodes, &[witness(&other, data_ref, grant)], invalid, "unknown_witness").await;
    for elsewhere in [
        "file:///etc/passwd",
        "/etc/passwd",
        "../../../etc/passwd",
        "gs://bucket/vectors",
        "s3://bucket/vectors",
        "http://127.0.0.1:1/vectors",
        "data:,x",
        "gopher://x",
        "",
        &data_ref.replace("/vectors/", "/vectors/../vectors/"),
        &data_ref.replace("file://", "FILE://"),
        &data_ref.replace("file://", "file://localhost"),
    ] {
        is_refused(&two_nodes, &[witness(name, elsewhere, grant)], invalid, "reference").await;
    }
    // A witness is never a path.
    for not_one in ["../../etc/passwd", "", &name.to_uppercase(), &format!("{name}0")] {
        let answer = two_nodes.tell(&[witness(not_one, data_ref, grant)]).await;
        assert_eq!(answer["error"]["data"][0]["reason"], invalid, "{answer:#}");
    }

    let tier = two_nodes.tier.path();
    let bundle = tier.join("bundles").join(name).join("table.rulake.json");
    let good = fs::read_to_string(&bundle).unwrap();
    fs::write(&bundle, good.replace("\"dim\": 128", "\"dim\": 64")).unwrap();
    is_refused(&two_nodes, &[witness(name, data_ref, grant)], invalid, "tampered").await;
    fs::write(&bundle, good).unwrap();

    let vectors = tier.join("vectors").join(data_ref.rsplit('/').next().unwrap());
    let good = fs::read(&vectors).unwrap();
    let mut bad = good.clone();
    bad[1000] ^= 1;
    fs::write(&vectors, &bad).unwrap();
    is_refused(&two_nodes, &[witness(name, data_ref, grant)], invalid, "tampered").await;
    fs::remove_file(&vectors).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &vectors).unwrap();
    is_refused(&two_nodes, &[witness(name, data_ref, grant)], invalid, "tampered").await;
    fs::remove_file(&vectors).unwrap();
    // As long as a file can be without taking room, and far over the limit.
    fs::File::create(&vectors).unwrap().set_len(1 << 40).unwrap();
    is_refused(&two_nodes, &[witness(name, data_ref, grant)], "TOO_LARGE", "too_large").await;

    fs::write(&vectors, good).unwrap();
    assert_eq!(found(&two_nodes.tell(&[witness(name, data_ref, grant)]).await)["count"], json!(500));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_look_is_an_entry_of_the_record_whether_it_was_let_or_not() {
    let two_nodes = TwoNodes::new();
    let (published, _) = two_nodes.publish(500);
    let name = published["witness"].as_str().unwrap();
    let data_ref = published["data_ref"].as_str().unwrap();
    let grant = two_nodes.grant(name, &[])["id"].as_str().unwrap().to_owned();
    let seen = two_nodes.tell(&[witness(name, data_ref, Some(&grant))]).await;
    let seen = seen["result"]["task"]["id"].as_str().unwrap().to_owned();
    let (reason, _, decision) = refused(&two_nodes.tell(&[witness(name, data_ref, None)]).await);
    assert_eq!(two_nodes.at_taker(&["memory", "resolve", name]).code, Some(0));

    let file = two_nodes.taker_home.path().join("looks.tar.gz");
    let exported = two_nodes.at_taker(&["evidence", "export", "-o", file.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let (bundle, _) = chancery_evidence::bundle::verify(&fs::read(&file).unwrap(), &[]).unwrap();
    let looks = bundle.events.iter().filter(|event| event["type"] == "chancery.memory.looked");
    let looks: Vec<_> = looks.map(|event| &event["data"]).collect();
    let [let_in, turned_away, operator] = looks[..] else { panic!("{looks:?}") };
    let fact = |look: &Value, name: &str| {
        let facts = look["facts"].as_array().unwrap().iter();
        facts.clone().find(|fact| fact[0] == name).map(|fact| fact[1].clone())
    };
    assert_eq!((&let_in["granted"], &let_in["task"], &let_in["agent"]), (&json!(true), &json!(seen), &json!("recall")));
    assert_eq!(fact(let_in, "witness"), Some(json!(name)));
    assert_eq!((&turned_away["granted"], &turned_away["refused"]), (&json!(false), &json!(reason)));
    assert_eq!((&turned_away["decision"], fact(turned_away, "memory")), (&json!(decision), Some(json!("no_grant"))));
    assert_eq!((&operator["granted"], &operator["agent"]), (&json!(true), &json!("operator")));
    assert!(!serde_json::to_string(&looks).unwrap().contains(&grant), "grants stay out of the record");
}
