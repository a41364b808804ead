//! Addresses that a test can leave and come back to, or point at knowing that nobody is there.
//!
//! A port that the system chose is given to the next one who asks as soon as it is free: to another test's server, or to the
//! near end of any connection. These lie below all that the system chooses from, and each is given once.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

const RANGE: Range<u16> = 12_000..30_000;

/// Test programs that run at the same time begin at different places.
static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
    let place = std::process::id() % u32::from(RANGE.end - RANGE.start);
    AtomicU16::new(RANGE.start + u16::try_from(place).expect("it is within the range"))
});

/// An address on loopback where nobody listens, and nobody will who is not told of it.
pub(crate) fn lasting_address() -> SocketAddr {
    loop {
        let step = |port: u16| Some(if port + 1 < RANGE.end { port + 1 } else { RANGE.start });
        let port = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).expect("there is always a next one");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

#[test]
fn what_the_system_chooses_from_lies_elsewhere() {
    let Ok(range) = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range") else {
        return println!("skipped: this system does not say which ports it chooses from");
    };
    let lowest: u16 = range.split_whitespace().next().expect("two numbers").parse().expect("a port");
    assert!(lowest >= RANGE.end, "this system chooses from {lowest} on");
    assert_ne!(lasting_address(), lasting_address());
}
