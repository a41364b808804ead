//! Holds what a receiver got against what was promised: everything, in order, and each copy as it was the first time.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::push::admin;
use crate::push::receiver::Got;
use crate::support::server::Server;

/// What a receiver got, read once through. Each registration has a path of its own, which is its name.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// By path: the number of the last entry.
    last: HashMap<String, u64>,
    bodies: HashMap<String, Vec<u8>>,
    /// By the run of the server in which the copy came: how many.
    pub(super) copies: BTreeMap<usize, usize>,
    pub(super) complaints: Vec<String>,
}

impl Journal {
    /// `ends` says for each run of the server how many requests there were when it had been killed. Within one run nothing comes twice, unless
    /// the receiver was not heard to take it (`may_repeat`).
    pub(super) fn read(all: &[Got], ends: &[usize], may_repeat: impl Fn(&Got) -> bool) -> Self {
        let mut journal = Self::default();
        let mut newest: HashMap<&str, (usize, &Got)> = HashMap::new();
        for (place, got) in all.iter().enumerate() {
            let run = ends.iter().filter(|end| **end <= place).count();
            let (path, id, seq) = (&*got.path, got.header("webhook-id"), got.seq());
            let body = journal.bodies.entry(id.to_owned()).or_insert_with(|| got.body.to_vec());
            if *body != got.body {
                journal.complaints.push(format!("{path}: {id} came with another body"));
            }
            let last = journal.last.insert(got.path.clone(), seq).unwrap_or(0);
            match newest.insert(path, (run, got)) {
                _ if seq == last + 1 => {}
                Some((before, first)) if seq == last && first.header("webhook-id") == id => {
                    if before < run {
                        *journal.copies.entry(run).or_default() += 1;
                    } else if !may_repeat(first) {
                        journal.complaints.push(format!("{path}: {id} came twice, though nothing had happened"));
                    }
                }
                _ => journal.complaints.push(format!("{path}: {seq} ({id}) came after {last}")),
            }
        }
        journal
    }

    /// Every entry of every task that has a webhook, whoever made it, has arrived.
    pub(super) async fn hold(&mut self, server: &Server) -> usize {
        let lanes = all_lanes(server).await;
        for lane in &lanes {
            let (path, tail) = (path(lane["config"].as_str().unwrap_or_default()), lane["tail"].as_u64().unwrap_or(0));
            if self.last.get(&path) != Some(&tail) {
                self.complaints.push(format!("{path}: got as far as {:?} of {tail}: {lane}", self.last.get(&path)));
            }
        }
        lanes.len()
    }
}

/// Where the registration by this name is told.
pub(super) fn path(config: &str) -> String {
    format!("/{config}")
}

/// As the operator sees them.
pub(super) async fn all_lanes(server: &Server) -> Vec<Value> {
    let (mut lanes, mut page) = (Vec::new(), "/lanes?limit=1000".to_owned());
    loop {
        let answer = admin(server, &server.home().data(), &page, None).await;
        lanes.extend(answer["lanes"].as_array().expect("a page of lanes").iter().cloned());
        match answer["next"].as_u64() {
            Some(next) => page = format!("/lanes?limit=1000&after={next}"),
            None => return lanes,
        }
    }
}
