//! A wire between two nodes that remembers what went over it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// Passes bytes on, and keeps those of the side that asks.
pub(super) struct Relay {
    address: String,
    target: Arc<OnceLock<String>>,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (target, asked) = (Arc::new(OnceLock::<String>::new()), Arc::<Mutex<Vec<u8>>>::default());
        let (to, kept) = (Arc::clone(&target), Arc::clone(&asked));
        thread::spawn(move || {
            for inner in listener.incoming().flatten() {
                let outer = TcpStream::connect(to.get().expect("the node behind is known")).expect("the node behind answers");
                let (inner_out, outer_out) = (inner.try_clone().unwrap(), outer.try_clone().unwrap());
                let kept = Arc::clone(&kept);
                thread::spawn(move || pass(inner, outer, |bytes| kept.lock().unwrap().extend_from_slice(bytes)));
                thread::spawn(move || pass(outer_out, inner_out, |_| ()));
            }
        });
        Self { address, target, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it leads to.
    pub(super) fn leads_to(&self, url: &str) {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        self.target.set(address.to_owned()).expect("it leads to one place");
    }

    /// The bodies of all that was asked, by their length, with the text of each.
    pub(super) fn bodies(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let mut rest = &asked[..];
        let mut bodies = Vec::new();
        while let Some(end) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
            assert!(!head.contains("transfer-encoding"), "bodies are told by their length: {head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            let body = end + 4..end + 4 + length.unwrap_or(0);
            if !body.is_empty() {
                bodies.push(String::from_utf8_lossy(&rest[body.clone()]).into_owned());
            }
            rest = &rest[body.end..];
        }
        bodies
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        see(&buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
