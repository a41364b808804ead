//! What the operator may open and close, and which word wins.

use std::sync::Arc;

use chancery_outbound::guard::{Blocked, Fetch, Guard, GuardConfig, GuardError, is_bad_port};

use crate::guard::fakes::{Dialer, Names, guard};

fn nets(texts: &[&str]) -> Vec<ipnet::IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn hosts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Which of `addresses` is dialled for `url`.
async fn dialled(config: GuardConfig, url: &str, addresses: &[&str]) -> Vec<String> {
    let dialer = Dialer::closed();
    let client = guard(GuardConfig { addresses: 100, ..config }, &Names::always(addresses), &dialer).client();
    client.fetch(Fetch::get(url)).await.unwrap_err();
    dialer.dialled().iter().map(|address| address.ip().to_string()).collect()
}

const EVERYWHERE: &[&str] = &[
    "93.184.216.34",
    "10.0.0.1",
    "127.0.0.1",
    "::1",
    "fd00::1",
    "169.254.169.254",
    "fe80::1",
    "100.100.100.200",
    "fd00:ec2::254",
    "224.0.0.1",
    "64:ff9b::7f00:1",
    "0.0.0.0",
];

#[tokio::test]
async fn without_allowances_only_public_addresses_are_dialled() {
    assert_eq!(dialled(GuardConfig::default(), "https://a.example/", EVERYWHERE).await, ["93.184.216.34"]);
}

#[tokio::test]
async fn an_allowed_host_may_be_private_but_never_a_metadata_service() {
    let config = || GuardConfig { allow_hosts: hosts(&["a.example", "*.in.example"]), ..GuardConfig::default() };
    let private = ["93.184.216.34", "10.0.0.1", "127.0.0.1", "::1", "fd00::1"];
    assert_eq!(dialled(config(), "https://a.example/", EVERYWHERE).await, private);
    assert_eq!(dialled(config(), "https://A.Example./", EVERYWHERE).await, private);
    assert_eq!(dialled(config(), "https://b.in.example/", EVERYWHERE).await, private);
    assert_eq!(dialled(config(), "https://in.example/", EVERYWHERE).await, ["93.184.216.34"]);
    assert_eq!(dialled(config(), "https://xa.example/", EVERYWHERE).await, ["93.184.216.34"]);
}

#[tokio::test]
async fn an_allowed_net_is_open_under_any_name_and_as_a_literal() {
    let config =
        || GuardConfig { allow_nets: nets(&["10.0.0.0/24", "169.254.169.254/32", "fd00::/64"]), ..GuardConfig::default() };
    assert_eq!(
        dialled(config(), "https://a.example/", EVERYWHERE).await,
        ["93.184.216.34", "10.0.0.1", "fd00::1", "169.254.169.254"]
    );
    for (url, open) in [
        ("https://10.0.0.255/", true),
        ("https://10.0.1.0/", false),
        ("https://[::ffff:10.0.0.1]/", true),
        ("https://[fd00::1]/", true),
        ("https://[fd00:0:0:1::1]/", false),
    ] {
        assert_eq!(dialled(config(), url, &[]).await.len(), usize::from(open), "{url}");
    }
}

#[tokio::test]
async fn a_denial_wins_over_every_allowance() {
    let config = || GuardConfig {
        allow_hosts: hosts(&["a.example", "*.example"]),
        allow_nets: nets(&["0.0.0.0/0", "::/0"]),
        deny_hosts: hosts(&["a.example", "*.b.example", "10.0.0.1", "93.184.216.34"]),
        ..GuardConfig::default()
    };
    for url in
        ["https://a.example/", "https://x.b.example/", "https://10.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://0xa000001/"]
    {
        assert_eq!(dialled(config(), url, EVERYWHERE).await, [""; 0], "{url}");
    }
    // A denied address is denied under every name.
    assert!(
        !dialled(config(), "https://c.example/", EVERYWHERE)
            .await
            .iter()
            .any(|address| address == "10.0.0.1" || address == "93.184.216.34")
    );
}

#[tokio::test]
async fn plain_http_needs_the_switch_and_an_allowance() {
    let listed =
        || GuardConfig { allow_hosts: hosts(&["a.example"]), allow_nets: nets(&["10.0.0.0/8"]), ..GuardConfig::default() };
    let switched = || GuardConfig { allow_http: true, ..listed() };
    let only_switched = GuardConfig { allow_http: true, ..GuardConfig::default() };
    assert_eq!(dialled(listed(), "http://a.example/", EVERYWHERE).await, [""; 0]);
    assert_eq!(dialled(listed(), "http://10.0.0.1/", EVERYWHERE).await, [""; 0]);
    assert_eq!(dialled(only_switched, "http://b.example/", EVERYWHERE).await, [""; 0]);
    assert_eq!(dialled(switched(), "http://b.example/", EVERYWHERE).await, ["10.0.0.1"], "only what lies in an allowed net");
    assert_eq!(dialled(switched(), "http://93.184.216.34/", &[]).await, [""; 0]);
    assert_eq!(dialled(switched(), "http://10.0.0.1/", &[]).await, ["10.0.0.1"]);
    let open = ["93.184.216.34", "10.0.0.1", "127.0.0.1", "::1", "fd00::1"];
    assert_eq!(dialled(switched(), "http://a.example/", EVERYWHERE).await, open);
}

#[tokio::test]
async fn our_own_origins_are_denied_by_name_and_by_address() {
    let own: Vec<url::Url> =
        ["https://us.example", "https://us.example:8443/a2a", "http://93.184.216.34:8080"].map(|url| url.parse().unwrap()).into();
    let dialer = Dialer::closed();
    let config =
        GuardConfig { allow_hosts: hosts(&["us.example"]), allow_nets: nets(&["93.184.216.34/32"]), ..GuardConfig::default() };
    let guard = Guard::with_ports(config, &own, Names::always(&["93.184.216.34"]), Arc::clone(&dialer) as _).unwrap();
    for url in [
        "https://us.example/",
        "https://US.example.:443/x",
        "https://us.example:8443",
        "https://93.184.216.34:8080/",
        "https://[::ffff:5db8:d822]:8080/",
    ] {
        assert_eq!(guard.check(url).unwrap_err(), Blocked::OwnOrigin, "{url}");
    }
    // Under another name it is found out by its address.
    let fault = guard.client().fetch(Fetch::get("https://alias.example:8080/")).await.unwrap_err();
    assert_eq!(fault, GuardError::Blocked(Blocked::NoAddress("alias.example".into())));
    assert_eq!(dialer.dialled(), []);
    assert!(guard.check("https://us.example:9443/").is_ok(), "another port is another server");
}

#[test]
fn every_bad_port_is_refused_even_for_allowed_hosts() {
    let config = GuardConfig { allow_hosts: hosts(&["a.example"]), allow_nets: nets(&["0.0.0.0/0"]), ..GuardConfig::default() };
    let guard = Guard::new(config, &[]).unwrap();
    let mut bad = 0;
    for port in 0..=u16::MAX {
        let checked = guard.check(&format!("https://a.example:{port}/"));
        match is_bad_port(port) {
            true => assert_eq!(checked.unwrap_err(), Blocked::Port(port)),
            false => assert_eq!(checked.unwrap().port(), port),
        }
        bad += usize::from(is_bad_port(port));
    }
    assert_eq!(bad, 83 + 14);
}

#[test]
fn a_good_url_comes_back_normalised() {
    let guard = Guard::new(GuardConfig::default(), &[]).unwrap();
    for (given, normal) in [
        ("https://Hooks.Example.COM./a?b=c", "https://hooks.example.com/a?b=c"),
        ("HTTPS://hooks.example.com:443", "https://hooks.example.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
        ("https://0x01010101/", "https://1.1.1.1/"),
        ("https://[2606:4700:0::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://a.example/%0d%0a", "https://a.example/%0d%0a"),
    ] {
        assert_eq!(guard.check(given).unwrap().url().as_str(), normal);
    }
    assert_eq!(guard.check("https://a.example:443@b.example/").unwrap_err(), Blocked::Userinfo);
}

/// No address and no name here is bad: only how the URL is written.
#[test]
fn the_text_alone_is_enough_to_refuse() {
    let guard = Guard::new(GuardConfig::default(), &[]).unwrap();
    let malformed = |fault: &Blocked| matches!(fault, Blocked::Malformed(_));
    for url in [
        "https://u@a.example/",
        "https://u:p@a.example/",
        "https://@a.example/",
        "https://:@a.example/",
        "https://a@b@a.example/",
    ] {
        assert_eq!(guard.check(url).unwrap_err(), Blocked::Userinfo, "{url}");
    }
    for url in ["https://a.example/#", "https://a.example/x#y", "https://a.example#"] {
        assert_eq!(guard.check(url).unwrap_err(), Blocked::Fragment, "{url}");
    }
    for c in (0..=0x20).chain(0x7f..=0xa0).filter_map(char::from_u32).chain(['\\', '\u{2028}', '\u{3000}']) {
        for url in [
            format!("{c}https://a.example/"),
            format!("https://a.{c}example/"),
            format!("https://a.example/x{c}y"),
            format!("https://a.example/{c}"),
        ] {
            assert_eq!(guard.check(&url).unwrap_err(), Blocked::Character, "{url:?}");
        }
    }
    for url in [
        "https://%61.example/",
        "https://a%2eexample/",
        "https:a.example/",
        "https:/a.example/",
        "https:///a.example/",
        "https://",
        "https://?a",
        "a.example",
    ] {
        assert!(malformed(&guard.check(url).unwrap_err()), "{url}");
    }
    for host in [
        "a..example",
        "a.example..",
        ".example",
        &"l".repeat(64),
        &["l".repeat(62).as_str(); 5].join("."),
        "[::1",
        "1.2.3.4.5",
        "a.example:x",
        "a.example:65536",
    ] {
        assert!(malformed(&guard.check(&format!("https://{host}/")).unwrap_err()), "{host}");
    }
    for scheme in ["ftp", "file", "ws", "wss", "gopher", "data", "unix", "s3", "httpss", "http+unix", ""] {
        assert_eq!(guard.check(&format!("{scheme}://a.example/")).unwrap_err(), Blocked::Scheme, "{scheme}");
    }
    assert_eq!(guard.check("http://a.example/").unwrap_err(), Blocked::Plain);
    for name in ["localhost", "x.LOCALHOST", "metadata.google.internal."] {
        assert!(matches!(guard.check(&format!("https://{name}/")).unwrap_err(), Blocked::Host(_)), "{name}");
    }
    let longest = ["l".repeat(63).as_str(); 3].join(".") + "." + &"l".repeat(61);
    assert_eq!((longest.len(), guard.check(&format!("https://{longest}/")).is_ok()), (253, true));
    assert!(malformed(&guard.check(&format!("https://{longest}l/")).unwrap_err()));
}
