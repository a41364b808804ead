//! Ports that must never receive HTTP.

/// What browsers refuse (the Fetch standard's list), complete.
const BROWSERS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111,
    113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554,
    556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666,
    6667, 6668, 6669, 6679, 6697, 10080,
];

/// What a server must refuse besides: databases, caches, queues and consoles that do not speak HTTP and may act on the bytes.
const BEHIND_FIREWALLS: &[u16] = &[1433, 1521, 3306, 3389, 5432, 5672, 5900, 6379, 6380, 9042, 11211, 27017, 27018, 27019];

pub fn is_bad_port(port: u16) -> bool {
    BROWSERS.binary_search(&port).is_ok() || BEHIND_FIREWALLS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_so_that_the_search_finds_every_entry() {
        for list in [BROWSERS, BEHIND_FIREWALLS] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|port| is_bad_port(*port)));
        }
        assert_eq!(BROWSERS.len(), 83);
    }

    #[test]
    fn web_ports_and_ports_handed_out_by_the_system_are_fine() {
        for port in [80, 443, 3000, 8000, 8080, 8443, 9443, 32768, 49152, 65535] {
            assert!(!is_bad_port(port), "{port}");
        }
    }
}
