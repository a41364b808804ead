//! Client certificates: whom they name is who calls.

use serde_json::json;

use super::{assert_accepted, assert_turned_away, hello, operate, server};
use crate::support::certificates::Signer;
use crate::support::server::Home;
use crate::support::wire_client::{Combination, RawClient};

#[tokio::test]
async fn a_certificate_is_the_caller_it_names() {
    let (nodes, callers, strangers) = (Signer::new("nodes"), Signer::new("callers"), Signer::new("strangers"));
    let home = Home::new();
    let node = nodes.node();
    let put = |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("the home takes files");
    put("node.pem", &node.certificate);
    put("node.key", &node.key);
    put("callers.pem", &callers.pem());
    let tls = "[tls]\ncert_file = 'node.pem'\nkey_file = 'node.key'\nclient_ca_file = 'callers.pem'\n";
    let key = chancery_identity::credentials::KeyHash::of("the-key-of-the-planner");
    let config = format!(
        "{tls}[callers.planner]\ncertificate = 'spiffe://acme/planner'\nkey_hash = '{key}'\n[callers.other]\nkey_hash = '{}'\n",
        chancery_identity::credentials::KeyHash::of("the-key-of-the-other")
    );
    let server = server(&home, &config);
    assert!(server.url().starts_with("https://"), "{}", server.url());
    let with = |pem: Option<&str>| RawClient::over_tls(server.url(), &nodes.pem(), pem);
    let planner = callers.caller("spiffe://acme/planner").both();
    let (planner, nobody) = (with(Some(&planner)), with(Some(&callers.caller("spiffe://acme/nobody").both())));
    for combination in Combination::ALL {
        assert_accepted(&planner.ask(&hello(combination)).await, "a certificate");
        let both = hello(combination).with("x-api-key", "the-key-of-the-planner");
        assert_accepted(&planner.ask(&both).await, "a certificate and a key of the same caller");
        let two = hello(combination).with("x-api-key", "the-key-of-the-other");
        assert_turned_away(combination, &planner.ask(&two).await, "a certificate and a key of two callers");
        assert_turned_away(combination, &nobody.ask(&hello(combination)).await, "a certificate of nobody");
        assert_turned_away(combination, &with(None).ask(&hello(combination)).await, "no certificate");
        // Such connections do not come about, or carry no call.
        for (what, bad) in [
            ("somebody else's authority", strangers.caller("spiffe://acme/planner")),
            ("a time that is over", callers.former_caller("spiffe://acme/planner")),
        ] {
            let refused = with(Some(&bad.both())).try_ask(&hello(combination)).await;
            assert!(refused.is_err(), "{what}: {refused:?}");
        }
    }

    let roots = [reqwest::Certificate::from_pem(nodes.pem().as_bytes()).expect("a certificate")];
    let http = reqwest::Client::builder().no_proxy().tls_certs_only(roots).build().expect("a client");
    let record = json!({ "name": "ci", "certificates": ["spiffe://acme/nobody"] });
    operate(&http, &home, &server, "callers", &record).await;
    for combination in Combination::ALL {
        assert_accepted(&nobody.ask(&hello(combination)).await, "added");
    }
    operate(&http, &home, &server, "callers/ci/revoke", &json!({})).await;
    for combination in Combination::ALL {
        assert_turned_away(combination, &nobody.ask(&hello(combination)).await, "revoked, on a connection that is open");
    }
}
