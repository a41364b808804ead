//! Which addresses are public: default deny, with every exception written down.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// How much trust it takes to call an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// Global unicast: every URL may name it.
    Public,
    /// Inside somebody's network. A host named in `allow_hosts` may resolve to it.
    Private,
    /// Cloud metadata, translation prefixes, multicast, reserved and documentation ranges: only `allow_nets` opens them.
    Special,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(head: [u16; 3], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(head[0], head[1], head[2], 0, 0, 0, 0, 0), length)
}

/// Asked before the private ranges, because a metadata address may lie inside one.
const SPECIAL_V4: &[Ipv4Net] = &[
    v4(0, 0, 0, 0, 8),          // "this network"
    v4(100, 100, 100, 200, 32), // Alibaba metadata
    v4(168, 63, 129, 16, 32),   // Azure wire server
    v4(169, 254, 0, 0, 16),     // link-local, and most clouds' metadata
    v4(192, 0, 0, 0, 24),       // protocol assignments, Oracle metadata
    v4(192, 0, 2, 0, 24),       // TEST-NET-1
    v4(192, 88, 99, 0, 24),     // 6to4 relays
    v4(198, 18, 0, 0, 15),      // benchmarking
    v4(198, 51, 100, 0, 24),    // TEST-NET-2
    v4(203, 0, 113, 0, 24),     // TEST-NET-3
    v4(224, 0, 0, 0, 4),        // multicast
    v4(240, 0, 0, 0, 4),        // reserved, and broadcast at its end
];

const PRIVATE_V4: &[Ipv4Net] = &[
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10), // carrier-grade NAT
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
];

const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

/// Parts of 2000::/3 that are not ordinary hosts.
const SPECIAL_IN_GLOBAL_V6: &[Ipv6Net] = &[
    v6([0x2001, 0, 0], 32),     // Teredo
    v6([0x2001, 2, 0], 48),     // benchmarking
    v6([0x2001, 0x10, 0], 28),  // ORCHID
    v6([0x2001, 0x20, 0], 28),  // ORCHIDv2
    v6([0x2001, 0xdb8, 0], 32), // documentation
    v6([0x2002, 0, 0], 16),     // 6to4
    v6([0x3fff, 0, 0], 20),     // documentation
];

const UNIQUE_LOCAL_V6: Ipv6Net = v6([0xfc00, 0, 0], 7);

/// Metadata services inside the unique-local range: Amazon's and Google's.
const METADATA_V6: &[Ipv6Net] = &[v6([0xfd00, 0x0ec2, 0], 32), v6([0xfd20, 0xce, 0], 32)];

/// An IPv4 address that came in IPv6 clothes (`::ffff:a.b.c.d`) is judged, and dialled, as what it is.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

pub fn is_public(address: IpAddr) -> bool {
    standing(address) == AddressClass::Public
}

pub fn standing(address: IpAddr) -> AddressClass {
    match canonical(address) {
        IpAddr::V4(v4) => standing_v4(v4),
        IpAddr::V6(v6) => standing_v6(v6),
    }
}

fn standing_v4(address: Ipv4Addr) -> AddressClass {
    if SPECIAL_V4.iter().any(|net| net.contains(&address)) {
        AddressClass::Special
    } else if PRIVATE_V4.iter().any(|net| net.contains(&address)) {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

/// Outside 2000::/3 nothing is public. That covers v4-compatible, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard, link-local,
/// site-local and multicast without naming them.
fn standing_v6(address: Ipv6Addr) -> AddressClass {
    if address == Ipv6Addr::LOCALHOST {
        return AddressClass::Private;
    }
    if UNIQUE_LOCAL_V6.contains(&address) {
        let metadata = METADATA_V6.iter().any(|net| net.contains(&address));
        return if metadata { AddressClass::Special } else { AddressClass::Private };
    }
    if GLOBAL_V6.contains(&address) && !SPECIAL_IN_GLOBAL_V6.iter().any(|net| net.contains(&address)) {
        AddressClass::Public
    } else {
        AddressClass::Special
    }
}

#[cfg(test)]
mod tests {
    use super::AddressClass::{Private, Public, Special};
    use super::*;

    /// The last address before a range, its first, its last, and the first after it.
    const EDGES: &[(&str, [&str; 4], [AddressClass; 4])] = &[
        ("this network", ["255.255.255.255", "0.0.0.0", "0.255.255.255", "1.0.0.0"], [Special, Special, Special, Public]),
        ("ten", ["9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"], [Public, Private, Private, Public]),
        ("shared", ["100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"], [Public, Private, Private, Public]),
        (
            "Alibaba metadata",
            ["100.100.100.199", "100.100.100.200", "100.100.100.200", "100.100.100.201"],
            [Private, Special, Special, Private],
        ),
        ("loopback", ["126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"], [Public, Private, Private, Public]),
        ("Azure wire", ["168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"], [Public, Special, Special, Public]),
        ("link-local", ["169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"], [Public, Special, Special, Public]),
        ("172.16", ["172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"], [Public, Private, Private, Public]),
        (
            "protocol assignments",
            ["191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"],
            [Public, Special, Special, Public],
        ),
        ("TEST-NET-1", ["192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"], [Public, Special, Special, Public]),
        ("6to4 relay", ["192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"], [Public, Special, Special, Public]),
        ("192.168", ["192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"], [Public, Private, Private, Public]),
        ("benchmarking", ["198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"], [Public, Special, Special, Public]),
        ("TEST-NET-2", ["198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"], [Public, Special, Special, Public]),
        ("TEST-NET-3", ["203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"], [Public, Special, Special, Public]),
        ("multicast", ["223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0"], [Public, Special, Special, Special]),
        ("reserved", ["223.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255"], [Public, Special, Special, Special]),
        ("loopback v6", ["::", "::1", "::1", "::2"], [Special, Private, Private, Special]),
        ("v4-compatible", ["::7f00:0", "::7f00:1", "::808:808", "::ffff:ffff"], [Special, Special, Special, Special]),
        (
            "v4-mapped takes the standing of its IPv4 address",
            ["::ffff:9.255.255.255", "::ffff:10.0.0.0", "::ffff:169.254.169.254", "::ffff:8.8.8.8"],
            [Public, Private, Special, Public],
        ),
        ("NAT64", ["64:ff9b::", "64:ff9b::7f00:1", "64:ff9b::ffff:ffff", "64:ff9b::1:0:0"], [Special, Special, Special, Special]),
        (
            "local NAT64",
            ["64:ff9b:1::", "64:ff9b:1::1", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:2::"],
            [Special, Special, Special, Special],
        ),
        (
            "global unicast, left edge",
            ["1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::", "2000::1", "2000:ffff::"],
            [Special, Public, Public, Public],
        ),
        (
            "global unicast, right edge",
            ["3ffe::", "3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::"],
            [Public, Public, Public, Special],
        ),
        (
            "Teredo",
            ["2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "2001:1::"],
            [Public, Special, Special, Public],
        ),
        (
            "benchmarking v6",
            ["2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "2001:2:1::"],
            [Public, Special, Special, Public],
        ),
        (
            "ORCHID",
            ["2001:f:ffff:ffff:ffff:ffff:ffff:ffff", "2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "2001:20::"],
            [Public, Special, Special, Special],
        ),
        (
            "ORCHIDv2",
            ["2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "2001:30::"],
            [Special, Special, Special, Public],
        ),
        (
            "documentation v6",
            ["2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"],
            [Public, Special, Special, Public],
        ),
        (
            "6to4",
            ["2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"],
            [Public, Special, Special, Public],
        ),
        (
            "second documentation v6",
            ["3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"],
            [Public, Special, Special, Public],
        ),
        (
            "unique local",
            ["fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::"],
            [Special, Private, Private, Special],
        ),
        (
            "Amazon metadata",
            ["fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff", "fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", "fd00:ec3::"],
            [Private, Special, Special, Private],
        ),
        (
            "Google metadata",
            ["fd20:cd:ffff:ffff:ffff:ffff:ffff:ffff", "fd20:ce::", "fd20:ce:ffff:ffff:ffff:ffff:ffff:ffff", "fd20:cf::"],
            [Private, Special, Special, Private],
        ),
        ("link-local v6", ["fe7f::", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::"], [Special; 4]),
        ("multicast v6", ["feff::", "ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], [Special; 4]),
    ];

    #[test]
    fn both_edges_of_every_range_stand_where_the_table_says() {
        for (range, addresses, expected) in EDGES {
            for (address, expected) in addresses.iter().zip(expected) {
                let parsed: IpAddr = address.parse().unwrap();
                assert_eq!(standing(parsed), *expected, "{range}: {address}");
                assert_eq!(is_public(parsed), *expected == Public, "{range}: {address}");
            }
        }
    }

    #[test]
    fn ordinary_hosts_are_public() {
        for address in ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_mapped_address_is_dialled_as_ipv4() {
        assert_eq!(canonical("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1".parse::<IpAddr>().unwrap());
    }
}
