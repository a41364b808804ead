//! Every way we know to spell "inside" in a URL: none of them reaches a socket.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use chancery_outbound::guard::{Dial, Fetch, Guard, GuardConfig, GuardError, SystemDialer};
use tokio::net::TcpListener;

use crate::fakes::{Dialer, Names, ips};
use crate::receiver::Receiver;

/// Hosts, each put into `https://host:port/`, `http://host:port/` and the port-less form.
const HOSTS: &[(&str, &[&str])] = &[
    ("loopback", &["127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "127.127.127.127"]),
    ("this network", &["0.0.0.0", "0.0.0.1", "0.1.2.3", "0"]),
    ("decimal", &["2130706433", "2130706434", "2852039166", "3232235521", "167772161", "2886729729", "4294967295", "1681915904"]),
    ("octal", &["017700000001", "0177.0.0.1", "0177.0.0.01", "0177.0000.0000.0001", "0251.0376.0251.0376", "012.0.0.1"]),
    ("hexadecimal", &["0x7f000001", "0x7f.0x0.0x0.0x1", "0X7F.1", "0x7f.1", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0xc0a80001"]),
    ("short", &["127.1", "127.0.1", "127.0x1", "10.1", "192.168.1", "169.254.43518", "172.1048577", "0x7f.0.1"]),
    ("mixed bases", &["0x7f.0.0.01", "127.0.0.0x1", "0177.0x0.0.1", "0xa9.254.0251.0xfe", "192.0250.0.1", "012.0x0.1"]),
    ("private", &["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"]),
    ("shared and benchmark", &["100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255"]),
    ("metadata", &["169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "169.254.0.1"]),
    ("documentation", &["192.0.2.1", "198.51.100.1", "203.0.113.1"]),
    ("relay", &["192.88.99.1", "192.0.0.1", "192.0.0.8"]),
    ("multicast and reserved", &["224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "254.1.2.3"]),
    ("trailing dot on an address", &["127.0.0.1.", "2130706433.", "0x7f.1.", "169.254.169.254.", "10.0.0.1."]),
    ("more dots", &["127.0.0.1..", "localhost..", "a..b", ".localhost", "..", "."]),
    (
        "IPv6 loopback",
        &["[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]", "[0::1]", "[::0.0.0.1]"],
    ),
    ("IPv6 unspecified", &["[::]", "[0:0:0:0:0:0:0:0]", "[::0.0.0.0]"]),
    (
        "v4-mapped",
        &[
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[::FFFF:10.0.0.1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
            "[::ffff:0.0.0.0]",
            "[::ffff:192.168.0.1]",
        ],
    ),
    ("v4-compatible", &["[::127.0.0.1]", "[::7f00:1]", "[::10.0.0.1]", "[::8.8.8.8]", "[::a9fe:a9fe]"]),
    ("v4-translated", &["[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]"]),
    (
        "NAT64",
        &[
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b::8.8.8.8]",
            "[64:ff9b:1::7f00:1]",
            "[64:ff9b:1:ffff::1]",
        ],
    ),
    (
        "6to4 and Teredo",
        &[
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::1]",
            "[2002:808:808::1]",
            "[2001::7f00:1]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
        ],
    ),
    (
        "IPv6 local",
        &["[fe80::1]", "[febf::1]", "[fec0::1]", "[fc00::1]", "[fd00::1]", "[fdff:ffff::1]", "[fd00:ec2::254]", "[fd20:ce::254]"],
    ),
    ("IPv6 multicast", &["[ff02::1]", "[ff05::2]", "[ff0e::1]"]),
    (
        "IPv6 documentation and ORCHID",
        &["[2001:db8::1]", "[3fff::1]", "[2001:10::1]", "[2001:2f::1]", "[2001:2::1]", "[100::1]", "[5f00::1]"],
    ),
    ("zone identifiers", &["[fe80::1%25lo]", "[fe80::1%lo]", "[::1%25lo]", "[::1%1]"]),
    ("broken literals", &["[::1", "::1]", "[::1]x", "[127.0.0.1]", "[::g]", "[1:2:3]", "[]", "[v1.fe80::1]"]),
    (
        "numbers that are no address",
        &["256.256.256.256", "127.0.0.1.5", "4294967296", "0x100000000", "1.2.3.256", "08.0.0.1", "127.0.0.1x.0x"],
    ),
    (
        "digits of other scripts",
        &[
            "①②⑦.⓪.⓪.①",
            "１２７.０.０.１",
            "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
            "127。0。0。1",
            "127．0．0．1",
            "127｡0｡0｡1",
            "０ｘ７ｆ.1",
            "１６９.２５４.１６９.２５４",
        ],
    ),
    ("invisible letters", &["127.0.0.1\u{ad}", "127.0\u{200b}.0.1", "local\u{ad}host", "\u{feff}localhost", "localhost\u{2060}"]),
    (
        "percent-encoded",
        &[
            "%31%32%37.0.0.1",
            "127%2e0%2e0%2e1",
            "%6c%6f%63%61%6c%68%6f%73%74",
            "localhost%00.example.com",
            "%5B::1%5D",
            "127.0.0.1%23.example.com",
            "example.com%2f@127.0.0.1",
        ],
    ),
    (
        "local names",
        &[
            "localhost",
            "LOCALHOST",
            "localhost.",
            "foo.localhost",
            "a.b.localhost.",
            "localhost.localdomain",
            "localhost6",
            "ip6-localhost",
            "ip6-loopback",
            "ｌｏｃａｌｈｏｓｔ",
            "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
            "broadcasthost",
        ],
    ),
    (
        "metadata names",
        &[
            "metadata",
            "metadata.google.internal",
            "metadata.google.internal.",
            "METADATA.GOOGLE.INTERNAL",
            "metadata.goog",
            "instance-data",
            "instance-data.ec2.internal",
        ],
    ),
    (
        "names that resolve inside",
        &[
            "127.0.0.1.nip.io",
            "localtest.me",
            "evil.example",
            "internal.example",
            "redis",
            "kubernetes.default.svc",
            "xn--bcher-kva.example",
            "bücher.example",
        ],
    ),
    (
        "own names",
        &["chancery.example", "CHANCERY.example", "chancery.example.", "%63hancery.example", "ｃｈａｎｃｅｒｙ.example"],
    ),
];

/// Whole URLs; `{port}` is the canary's.
const URLS: &[(&str, &[&str])] = &[
    (
        "userinfo",
        &[
            "https://user@127.0.0.1:{port}/",
            "https://user:pass@evil.example:{port}/",
            "https://@127.0.0.1:{port}/",
            "https://:@evil.example:{port}/",
            "https://evil.example@127.0.0.1:{port}/",
            "https://evil.example:443@127.0.0.1:{port}/",
            "https://a@b@127.0.0.1:{port}/",
            "https://evil.example%40127.0.0.1:{port}/",
        ],
    ),
    (
        "fragment",
        &[
            "https://evil.example:{port}/#",
            "https://evil.example:{port}/#@127.0.0.1",
            "https://127.0.0.1:{port}#.evil.example/",
            "https://evil.example#@127.0.0.1:{port}/",
        ],
    ),
    (
        "line ends and tabs",
        &[
            "https://127.0.0.1:{port}/\r\n",
            "https://127.0.\n0.1:{port}/",
            "ht\ntps://127.0.0.1:{port}/",
            "https://loc\talhost:{port}/",
            "\thttps://127.0.0.1:{port}/",
            "https://evil.example:{port}/a\r\nHost: 127.0.0.1",
            "https://evil.example:{port}/\0",
            "https://evil.example\0.example:{port}/",
            "https://127.0.0.1:{port}/\u{7f}",
            "https://evil.example:{port}/\u{85}",
        ],
    ),
    (
        "spaces",
        &[
            " https://127.0.0.1:{port}/",
            "https://127.0.0.1:{port}/ ",
            "https:// 127.0.0.1:{port}/",
            "https://127.0.0.1 :{port}/",
            "https://evil.example:{port}/a b",
            "https://evil.example\u{a0}:{port}/",
            "https://evil.example:{port}/\u{3000}",
        ],
    ),
    (
        "backslashes",
        &[
            "https:\\\\127.0.0.1:{port}\\",
            "https://evil.example\\@127.0.0.1:{port}/",
            "https:/\\127.0.0.1:{port}/",
            "https://127.0.0.1:{port}\\.evil.example/",
        ],
    ),
    (
        "slashes",
        &[
            "https:127.0.0.1:{port}/",
            "https:/127.0.0.1:{port}/",
            "https:///127.0.0.1:{port}/",
            "https:////127.0.0.1:{port}/",
            "//127.0.0.1:{port}/",
            "/path",
            "",
            "https://",
            "https:///",
        ],
    ),
    (
        "schemes",
        &[
            "file:///etc/passwd",
            "file://127.0.0.1/etc/passwd",
            "gopher://127.0.0.1:{port}/_x",
            "ftp://127.0.0.1:{port}/",
            "ws://127.0.0.1:{port}/",
            "wss://127.0.0.1:{port}/",
            "data:text/plain,x",
            "javascript:alert(1)",
            "dict://127.0.0.1:{port}/",
            "ldap://127.0.0.1:{port}/",
            "unix:/run/x.sock",
            "http+unix://%2Frun%2Fx.sock/",
            "s3://bucket/x",
            "gs://bucket/x",
            "jar:https://127.0.0.1:{port}/!/",
            "netdoc:///etc/passwd",
            "tftp://127.0.0.1/x",
            "blob:https://127.0.0.1:{port}/x",
            "view-source:https://127.0.0.1:{port}/",
            "httpss://127.0.0.1:{port}/",
            "https+x://127.0.0.1:{port}/",
        ],
    ),
    (
        "ports",
        &[
            "https://evil.example:22/",
            "https://evil.example:25/",
            "https://evil.example:6379/",
            "https://evil.example:11211/",
            "https://evil.example:3306/",
            "https://evil.example:0/",
            "https://evil.example:65536/",
            "https://evil.example:-1/",
            "https://evil.example:80a/",
            "https://evil.example:6667/",
            "https://evil.example:10080/",
            "https://evil.example:5432/",
            "https://evil.example:0x50/",
            "https://evil.example:00000000022/",
        ],
    ),
    (
        "own origin",
        &[
            "https://chancery.example/",
            "https://chancery.example:443/",
            "https://CHANCERY.EXAMPLE/a2a",
            "https://chancery.example./",
            "http://chancery.example:443/",
            "https://198.41.0.4:8443/",
            "https://[::ffff:198.41.0.4]:8443/",
            "https://3324575748:8443/",
        ],
    ),
    ("denied", &["https://denied.example/", "https://sub.denied.example/", "https://199.9.14.201/", "https://DENIED.example./"]),
];

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
