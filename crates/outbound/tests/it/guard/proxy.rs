//! Through the operator's egress proxy: it is handed a checked address, never a name.

use std::sync::{Arc, Mutex};

use chancery_outbound::guard::{Fetch, Guard, GuardConfig, GuardError, SystemDialer};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use crate::guard::fakes::{Names, loopback};
use crate::guard::receiver::{Receiver, ok, read_head};

/// A proxy that says yes and leads every tunnel to `to`.
async fn tunnelling(to: Receiver) -> (Receiver, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let written = heads.clone();
    let proxy = Receiver::new(move |mut stream: TcpStream, seen| {
        let (written, to) = (written.clone(), to.address);
        async move {
            let head = read_head(&mut stream).await;
            written.lock().unwrap().push(head);
            seen.write(&mut stream, b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n").await;
            let mut onward = TcpStream::connect(to).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut onward).await;
        }
    })
    .await;
    (proxy, heads)
}

fn through(proxy: &Receiver, names: Arc<Names>) -> Guard {
    let config = GuardConfig {
        proxy: Some(proxy.url("")),
        allow_hosts: vec!["hooks.example".into()],
        allow_nets: Vec::new(),
        ..loopback()
    };
    Guard::with_ports(config, &[], names, Arc::new(SystemDialer)).unwrap()
}

#[tokio::test]
async fn the_proxy_gets_the_checked_address_and_the_receiver_the_name() {
    let receiver = Receiver::new(async |mut stream: TcpStream, seen| {
        let head = read_head(&mut stream).await;
        seen.write(&mut stream, ok(&head).as_bytes()).await;
    })
    .await;
    for (address, written) in [("93.184.216.34", "93.184.216.34:80"), ("2606:4700::1111", "[2606:4700::1111]:80")] {
        let (proxy, heads) = tunnelling(receiver.clone()).await;
        let guard = through(&proxy, Names::always(&["169.254.169.254", address]));
        let fetched = guard.client().fetch(Fetch::get("http://hooks.example/a")).await.unwrap();
        let said = String::from_utf8(fetched.body.to_vec()).unwrap();
        assert!(said.starts_with("GET /a HTTP/1.1\r\n") && said.contains("host: hooks.example\r\n"), "{said}");
        let heads = heads.lock().unwrap();
        assert_eq!(*heads, [format!("CONNECT {written} HTTP/1.1\r\nHost: {written}\r\n\r\n")]);
    }
}

#[tokio::test]
async fn a_blocked_address_is_not_even_mentioned_to_the_proxy() {
    let (proxy, heads) = tunnelling(Receiver::saying(ok("inside")).await).await;
    let guard = through(&proxy, Names::always(&["169.254.169.254", "64:ff9b::a00:1"]));
    for url in ["https://evil.example/", "http://hooks.example/", "https://10.0.0.1/", "https://[::1]/"] {
        let fault = guard.client().fetch(Fetch::get(url)).await.unwrap_err();
        assert!(matches!(fault, GuardError::Blocked(_)), "{url}: {fault}");
    }
    assert!(heads.lock().unwrap().is_empty());
    assert_eq!(proxy.accepted(), 0);
}

#[tokio::test]
async fn a_proxy_that_refuses_rambles_or_hangs_up_is_an_error() {
    let rambling = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(20_000));
    for answer in [
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200",
        "",
        &rambling,
    ] {
        let proxy = Receiver::saying(answer).await;
        let fault = through(&proxy, Names::always(&["93.184.216.34"]))
            .client()
            .fetch(Fetch::get("http://hooks.example/"))
            .await
            .unwrap_err();
        assert!(matches!(fault, GuardError::Proxy(_)), "{answer:?}: {fault}");
        assert_eq!(fault.public(), "the address could not be reached");
    }
}
