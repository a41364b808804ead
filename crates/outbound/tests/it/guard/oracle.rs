//! Whoever chose the URL learns the same from an open port, a closed port and a blocked address.

use std::collections::BTreeSet;
use std::io;

use chancery_outbound::guard::{Fetch, Guard, GuardConfig, Outer};
use tokio::net::TcpListener;

use crate::guard::fakes::{Dialer, Names, guard, loopback};
use crate::guard::receiver::Receiver;

#[tokio::test]
async fn open_closed_silent_and_blocked_give_one_reason() {
    let not_http = Receiver::saying("SSH-2.0-x\r\n").await;
    let hangs_up = Receiver::new(async |_, _| {}).await;
    let silent = Receiver::new(async |stream: tokio::net::TcpStream, _| {
        let _ = stream.readable().await;
        std::future::pending::<()>().await;
    })
    .await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = GuardConfig { exchange_ms: 1_000, tls_ms: 500, ..loopback() };
    let client = Guard::new(config, &[]).unwrap().client();
    let mut outside = BTreeSet::new();
    let mut inside = BTreeSet::new();
    for url in [
        not_http.url("/"),
        hangs_up.url("/"),
        silent.url("/"),
        format!("http://{closed}/"),
        format!("https://{}/", not_http.address),
        format!("https://{}/", silent.address),
        "http://10.0.0.1/".to_owned(),
        "https://169.254.169.254/".to_owned(),
        "https://[::1]/".to_owned(),
        "https://127.0.0.1:6379/".to_owned(),
        "ftp://127.0.0.1/".to_owned(),
        "not a URL".to_owned(),
    ] {
        let fault = client.fetch(Fetch::post(&url, "{}")).await.unwrap_err();
        assert_eq!(fault.outer(), Outer::Unreachable, "{url}: {fault}");
        outside.insert(fault.public());
        inside.insert(fault.to_string());
    }
    assert_eq!(outside, BTreeSet::from(["the address could not be reached"]));
    assert!(inside.len() >= 8, "the log can tell them apart: {inside:?}");
}

#[tokio::test]
async fn a_name_that_is_nowhere_and_a_name_that_is_inside_give_one_reason() {
    let names = Names::new(|name, _| match name {
        "inside.example" => Ok(vec!["10.0.0.1".parse().unwrap()]),
        "closed.example" => Ok(vec!["93.184.216.34".parse().unwrap()]),
        "empty.example" => Ok(Vec::new()),
        _ => Err(io::Error::other("no such name")),
    });
    let client = guard(GuardConfig::default(), &names, &Dialer::closed()).client();
    let mut reasons = BTreeSet::new();
    for name in ["inside", "closed", "empty", "nowhere"] {
        reasons.insert(client.fetch(Fetch::get(format!("https://{name}.example/"))).await.unwrap_err().public());
    }
    assert_eq!(reasons.len(), 1, "{reasons:?}");
}
