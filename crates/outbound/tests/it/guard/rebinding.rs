//! Names whose addresses change, lie or come mixed: only what was checked is dialled.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use chancery_outbound::guard::{Blocked, Dialled, Fetch, GuardConfig, GuardError, is_public};

use crate::guard::fakes::{Dialer, Names, guard, ips};
use crate::guard::receiver::Receiver;

const PUBLIC: &str = "93.184.216.34";

fn assert_only_public(dialer: &Arc<Dialer>) {
    for address in dialer.dialled() {
        assert!(is_public(address.ip()), "{address} was dialled");
    }
}

#[tokio::test]
async fn a_thousand_alternating_answers_never_lead_inside() {
    let inside = ips(&["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"]);
    let names = Names::new(move |_, before| match before % 2 {
        0 => Ok(ips(&[PUBLIC])),
        _ => Ok(vec![inside[before / 2 % inside.len()]]),
    });
    let dialer = Dialer::closed();
    let client = guard(GuardConfig::default(), &names, &dialer).client();
    for turn in 0..1_000 {
        let fault = client.fetch(Fetch::get("https://rebind.example/")).await.unwrap_err();
        match turn % 2 {
            0 => assert!(matches!(fault, GuardError::Unreachable(_)), "{fault}"),
            _ => assert_eq!(fault, GuardError::Blocked(Blocked::NoAddress("rebind.example".into()))),
        }
    }
    assert_eq!(names.asked(), 1_000, "one look-up for one connection");
    assert_eq!(dialer.dialled().len(), 500);
    assert_only_public(&dialer);
}

#[tokio::test]
async fn of_a_mixed_answer_only_the_public_addresses_are_dialled() {
    let names = Names::always(&["127.0.0.1", PUBLIC, "10.0.0.1", "::1", "2606:4700::1111", "::ffff:192.168.0.1", PUBLIC]);
    let dialer = Dialer::closed();
    guard(GuardConfig::default(), &names, &dialer).client().fetch(Fetch::get("https://mixed.example/")).await.unwrap_err();
    let dialled: Vec<IpAddr> = dialer.dialled().iter().map(|address| address.ip()).collect();
    assert_eq!(dialled, ips(&[PUBLIC, "2606:4700::1111"]));
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_dialled_even_if_the_name_moves_meanwhile() {
    let receiver = Receiver::saying(crate::guard::receiver::ok("hello")).await;
    // The second answer would be the inside: a guard that looks up twice goes there.
    let names = Names::new(|_, before| Ok(ips(&[if before == 0 { PUBLIC } else { "127.0.0.1" }])));
    let dialer = Dialer::leading_to(receiver.address);
    let config = GuardConfig { allow_hosts: vec!["moving.example".into()], allow_http: true, ..GuardConfig::default() };
    let fetched = guard(config, &names, &dialer).client().fetch(Fetch::get("http://moving.example/")).await.unwrap();
    assert_eq!((fetched.body.as_ref(), fetched.peer.unwrap().ip()), (&b"hello"[..], PUBLIC.parse().unwrap()));
    assert_eq!(names.asked(), 1);
    assert_only_public(&dialer);
}

#[tokio::test]
async fn a_dialer_that_reaches_somebody_else_is_not_believed() {
    let receiver = Receiver::listening().await;
    let to = receiver.address;
    for lie in ["127.0.0.1:443", "10.0.0.1:443", "93.184.216.35:443", "93.184.216.34:444"] {
        let peer = lie.parse().unwrap();
        let dialer = Dialer::new(move |_| async move {
            Ok::<_, io::Error>(Dialled { stream: Box::new(tokio::net::TcpStream::connect(to).await?), peer })
        });
        let client = guard(GuardConfig::default(), &Names::always(&[PUBLIC]), &dialer).client();
        let fault = client.fetch(Fetch::get("https://lied.example/")).await.unwrap_err();
        assert!(matches!(fault, GuardError::Blocked(Blocked::PeerChanged { .. })), "{lie}: {fault}");
    }
    // Nobody said a word to it.
    assert!(receiver.all_closed().await);
    assert_eq!((receiver.accepted(), receiver.heard()), (4, 0));
}

#[tokio::test]
async fn an_alias_into_the_inside_is_judged_by_where_it_ends() {
    let names = Names::new(|name, _| match name {
        "alias.example" => Ok(ips(&["192.168.0.1"])),
        _ => Err(io::Error::other("no such name")),
    });
    let dialer = Dialer::closed();
    let client = guard(GuardConfig::default(), &names, &dialer).client();
    let fault = client.fetch(Fetch::get("https://alias.example/")).await.unwrap_err();
    assert_eq!(fault, GuardError::Blocked(Blocked::NoAddress("alias.example".into())));
    let fault = client.fetch(Fetch::get("https://nowhere.example/")).await.unwrap_err();
    assert!(matches!(fault, GuardError::Unresolved { .. }), "{fault}");
    assert_eq!(dialer.dialled(), []);
}
