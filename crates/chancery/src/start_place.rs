//! Addresses and folders that a start needs and this machine does not have.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// Why no program can listen at an address of another machine. Its port is not tried: who uses it now may not at the start.
pub(crate) fn address_fault(listen: SocketAddr) -> Option<String> {
    let error = TcpListener::bind(SocketAddr::new(listen.ip(), 0)).err()?;
    (error.kind() == ErrorKind::AddrNotAvailable).then(|| format!("this machine does not have the address {}", listen.ip()))
}

/// Whether two listeners want the same port of an address.
pub(crate) fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let is_one_address = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && is_one_address
}

/// Why a folder is not there and cannot be made. Another folder is made in its place and removed: this one may be made by a command
/// at the same moment.
pub(crate) fn folder_fault(folder: &Path) -> Option<String> {
    let here = Path::new(".");
    let parent = folder.ancestors().find(|path| path.exists()).unwrap_or(here);
    if !parent.is_dir() {
        return Some(format!("{} is not a folder", parent.display()));
    }
    if parent == folder {
        return None;
    }
    let trial = parent.join(format!(".chancery-trial-{}", std::process::id()));
    let made = fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial));
    made.err().map(|error| format!("the folder {} cannot be made: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_machine_is_found_and_a_port_is_not_tried() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(address_fault(own), None, "its port is taken");
        // A network for documentation: no machine has it.
        let fault = address_fault("192.0.2.77:1".parse().unwrap()).unwrap();
        assert_eq!(fault, "this machine does not have the address 192.0.2.77");
    }

    #[test]
    fn two_listeners_collide_at_one_port_of_an_address() {
        let collides = |one: &str, other: &str| collide(one.parse().unwrap(), other.parse().unwrap());
        assert!(collides("127.0.0.1:1", "127.0.0.1:1") && collides("0.0.0.0:1", "127.0.0.1:1"));
        assert!(!collides("127.0.0.1:0", "127.0.0.1:0"), "the system chooses two ports");
        assert!(!collides("127.0.0.1:1", "127.0.0.2:1") && !collides("127.0.0.1:1", "127.0.0.1:2"));
    }

    #[test]
    fn a_folder_is_there_or_can_be_made_and_nothing_is_left_of_the_attempt() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(folder_fault(home.path()), None);
        assert_eq!(folder_fault(&home.path().join("a/b/c")), None);
        fs::write(home.path().join("file"), "").unwrap();
        assert!(folder_fault(&home.path().join("file")).unwrap().ends_with("file is not a folder"));
        assert!(folder_fault(&home.path().join("file/a/b")).unwrap().ends_with("file is not a folder"));
        assert_eq!(folder_fault(Path::new("no-such-folder-here/x")), None, "below the folder where the program runs");
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    }
}
