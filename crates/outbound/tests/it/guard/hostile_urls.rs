//! Every way we know to spell "inside" in a URL: none of them reaches a socket.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use chancery_outbound::guard::{Dial, Fetch, Guard, GuardConfig, GuardError, SystemDialer};
use tokio::net::TcpListener;

use crate::guard::fakes::{Dialer, Names, ips};
use crate::guard::receiver::Receiver;
use crate::guard::tricks::{HOSTS, URLS};

/// The loopback is really dialled, everything else is only written down: nothing leaves the machine.
fn canary_dialer() -> Arc<Dialer> {
    Dialer::new(async |address: SocketAddr| match address.ip().to_canonical().is_loopback() || address.ip().is_unspecified() {
        true => SystemDialer.dial(address).await,
        false => Err(io::ErrorKind::ConnectionRefused.into()),
    })
}

/// The worst name server there is: every name is us.
fn hostile_names() -> Arc<Names> {
    Names::always(&["127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
}

async fn canaries() -> Vec<Receiver> {
    let hang_up = async |_, _| {};
    for _ in 0..50 {
        let v4 = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = v4.local_addr().unwrap().port();
        if let Ok(v6) = TcpListener::bind(("::1", port)).await {
            return vec![Receiver::on(v4, hang_up), Receiver::on(v6, hang_up)];
        }
    }
    panic!("no port is free on both loopbacks");
}

fn corpus(port: u16) -> BTreeSet<String> {
    let mut urls = BTreeSet::new();
    for host in HOSTS.iter().flat_map(|(_, hosts)| *hosts) {
        urls.insert(format!("https://{host}:{port}/hook"));
        urls.insert(format!("http://{host}:{port}/hook"));
        urls.insert(format!("https://{host}/"));
    }
    for url in URLS.iter().flat_map(|(_, urls)| *urls) {
        urls.insert(url.replace("{port}", &port.to_string()));
    }
    urls
}

#[tokio::test]
async fn no_hostile_url_makes_a_connection() {
    let canaries = canaries().await;
    let port = canaries[0].address.port();
    let urls = corpus(port);
    let tricks = HOSTS.iter().chain(URLS).map(|(_, entries)| entries.len()).sum::<usize>();
    assert!(tricks >= 200, "{tricks}");
    let own = [
        "https://chancery.example".parse().unwrap(),
        "https://198.41.0.4:8443".parse().unwrap(),
        format!("https://chancery.example:{port}").parse().unwrap(),
    ];
    let deny_hosts = vec!["denied.example".into(), "*.denied.example".into(), "199.9.14.201".into()];
    let usual = GuardConfig { deny_hosts: deny_hosts.clone(), ..GuardConfig::default() };
    // An operator who opened something else has not opened this.
    let opened = GuardConfig {
        allow_http: true,
        allow_nets: vec!["192.168.77.0/24".parse().unwrap(), "fd77::/16".parse().unwrap()],
        allow_hosts: vec!["hooks.example".into(), "*.hooks.example".into()],
        deny_hosts,
        ..GuardConfig::default()
    };
    for config in [usual, opened] {
        let (names, dialer) = (hostile_names(), canary_dialer());
        let client = Guard::with_ports(config, &own, names, dialer.clone()).unwrap().client();
        for url in &urls {
            let fault = client.fetch(Fetch::post(url, "{}")).await.expect_err(url);
            assert!(matches!(fault, GuardError::Blocked(_)), "{url:?}: {fault}");
        }
        assert_eq!(dialer.dialled(), [], "an address was dialled");
    }
    println!("{tricks} tricks, {} URLs, two guards", urls.len());
    for canary in &canaries {
        assert_eq!(canary.accepted(), 0, "{}", canary.address);
    }
}

#[tokio::test]
async fn the_canaries_do_sing_when_the_loopback_is_allowed() {
    let canaries = canaries().await;
    let config =
        GuardConfig { allow_nets: ips(&["127.0.0.1", "::1"]).into_iter().map(Into::into).collect(), ..GuardConfig::default() };
    let client = Guard::with_ports(config, &[], hostile_names(), canary_dialer()).unwrap().client();
    for (host, canary) in ["127.0.0.1", "[::1]"].iter().zip(&canaries) {
        client.fetch(Fetch::get(format!("https://{host}:{}/", canary.address.port()))).await.unwrap_err();
        assert_eq!(canary.accepted(), 1, "{host}");
    }
}
