//! How many connections there may be, of one address and in all.

use std::net::Ipv4Addr;

use chancery_inbound::InboundLimits;

use crate::node::{Node, settings};
use crate::wire::Connection;

const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const THIRD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// So many connections that are served, and stay open.
async fn served(node: &Node, address: Ipv4Addr, count: usize) -> Vec<Connection> {
    let mut open = Vec::new();
    for number in 1..=count {
        let mut connection = Connection::from(address, node).await;
        assert!(connection.is_served().await, "connection {number} of {count}");
        open.push(connection);
    }
    open
}

/// Whether a new connection of this address is served.
async fn has_room(node: &Node, address: Ipv4Addr) -> bool {
    Connection::from(address, node).await.is_served().await
}

#[tokio::test]
async fn connections_of_one_address_are_held_at_their_number_and_another_address_has_its_own() {
    let node = Node::open(InboundLimits { connections_per_address: 2, ..InboundLimits::default() }).await;
    let mut open = served(&node, Ipv4Addr::LOCALHOST, 2).await;
    assert!(!has_room(&node, Ipv4Addr::LOCALHOST).await);
    assert!(has_room(&node, OTHER).await);
    assert!(open[0].is_served().await && open[1].is_served().await, "those that are open stay open");
}

#[tokio::test]
async fn a_connection_that_closes_makes_room_for_another() {
    let node = Node::open(InboundLimits { connections_per_address: 1, ..InboundLimits::default() }).await;
    let open = served(&node, Ipv4Addr::LOCALHOST, 1).await;
    assert!(!has_room(&node, Ipv4Addr::LOCALHOST).await);
    drop(open);
    // The node notices the end a moment later; each try is an exchange of its own.
    let room = async { while !has_room(&node, Ipv4Addr::LOCALHOST).await {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), room).await.expect("room for another");
}

#[tokio::test]
async fn connections_of_all_addresses_together_are_held_at_their_number() {
    let node = Node::open(InboundLimits { connections: 2, ..InboundLimits::default() }).await;
    let _one = served(&node, Ipv4Addr::LOCALHOST, 1).await;
    let _two = served(&node, OTHER, 1).await;
    assert!(!has_room(&node, THIRD).await);
}

#[tokio::test]
async fn a_smaller_number_after_a_reload_closes_nobody_and_lets_nobody_more_in() {
    let node = Node::open(InboundLimits { connections_per_address: 2, ..InboundLimits::default() }).await;
    let mut open = served(&node, Ipv4Addr::LOCALHOST, 1).await;
    node.reload(settings(InboundLimits { connections_per_address: 1, ..InboundLimits::default() }));
    assert!(!has_room(&node, Ipv4Addr::LOCALHOST).await);
    assert!(open[0].is_served().await);
}
