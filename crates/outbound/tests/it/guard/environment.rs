//! Proxies in the environment belong to somebody else: they are never used.

use std::process::Command;

use chancery_outbound::guard::{Fetch, Guard};

use crate::guard::fakes::loopback;
use crate::guard::receiver::{Receiver, ok};

const VARIABLES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Set in the child only: what it is to fetch.
const PLACE: &str = "CHANCERY_TEST_PLACE";

/// The environment belongs to the whole process, so the test runs itself again in a process of its own.
#[tokio::test(flavor = "multi_thread")]
async fn proxies_in_the_environment_are_not_used() {
    if let Ok(place) = std::env::var(PLACE) {
        assert!(VARIABLES.iter().all(|name| std::env::var(name).is_ok()));
        let client = Guard::new(loopback(), &[]).unwrap().client();
        assert_eq!(client.fetch(Fetch::get(place)).await.unwrap().body, "direct");
        return;
    }
    let (receiver, proxy) = (Receiver::saying(ok("direct")).await, Receiver::saying(ok("through the proxy")).await);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "guard::environment::proxies_in_the_environment_are_not_used", "--nocapture"]);
    child.env(PLACE, receiver.url("/")).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in VARIABLES {
        child.env(name, proxy.url("/"));
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((receiver.accepted(), proxy.accepted()), (1, 0));
}
