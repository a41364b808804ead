//! A receiver that rejects is not tried again, and operators see it.

use serde_json::json;

use crate::push::receiver::{Act, Receiver};
use crate::push::{admin, lasting, send};
use crate::support::server::Home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_rejected() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(400)).await;
    let server = lasting(&home, "");
    send(&server, "complete", json!({ "url": receiver.url("/hook") }), true).await;
    let look = async || {
        let letters = admin(&server, &home.data(), "/dead", None).await["letters"].as_array().unwrap().clone();
        (letters.len() == 2).then_some(letters)
    };
    let letters = crate::support::patience::soon("both are kept as dead letters", look).await;
    assert!(letters.iter().all(|letter| letter["reason"] == "rejected" && letter["http"] == 400 && letter["attempts"] == 1));
    assert_eq!(receiver.got().len(), 2, "each once");
    assert!(server.log().contains("rejected a notification; the node keeps it as a dead letter"), "{}", server.log());
}
