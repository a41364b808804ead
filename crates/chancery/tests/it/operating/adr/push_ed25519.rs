//! Every notification carries an Ed25519 signature that verifies with the keys the node publishes, for its receiver alone.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::push::receiver::Receiver;
use crate::push::{send, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_ed25519() {
    let receiver = Receiver::kind().await;
    let server = server("");
    let url = receiver.url("/hook");
    send(&server, "complete", json!({ "url": url }), true).await;
    let got = receiver.has_taken(2).await.remove(1);
    let keys: Value = reqwest::get(format!("{}/.well-known/jwks.json", server.url())).await.unwrap().json().await.unwrap();
    let signed =
        format!("{}.{}.{}", got.header("webhook-id"), got.header("webhook-timestamp"), String::from_utf8_lossy(&got.body));
    let signature = got.header("webhook-signature").split(' ').find_map(|one| one.strip_prefix("v1a,")).unwrap();
    let signature = STANDARD.decode(signature).unwrap();
    let verifies = |key: &Value| {
        let public = key["x"].as_str().filter(|_| key["crv"] == "Ed25519").map(|x| URL_SAFE_NO_PAD.decode(x).unwrap());
        public.is_some_and(|public| {
            let key = aws_lc_rs::signature::UnparsedPublicKey::new(&aws_lc_rs::signature::ED25519, public);
            key.verify(signed.as_bytes(), &signature).is_ok()
        })
    };
    assert!(keys["keys"].as_array().unwrap().iter().any(verifies), "{keys}");
    // Inside what is signed stands whom it is for.
    let audience = chancery_identity::webhook::audience(&url);
    assert!(got.header("webhook-id").starts_with(&format!("msg_{audience}_")), "{}", got.header("webhook-id"));
}
