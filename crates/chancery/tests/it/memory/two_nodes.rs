//! Two nodes on one tier: one that has memory to give, and one whose agent is to use it.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use chancery_memory::VectorShape;
use chancery_protocol::{ArtifactKind, Part};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::relay::Relay;
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Server, Setup};

pub(super) const DIM: u32 = 128;

pub(super) struct TwoNodes {
    pub(super) tier: TempDir,
    pub(super) giver_home: Home,
    pub(super) giver: Server,
    pub(super) taker_home: Home,
    pub(super) taker: Server,
    pub(super) relay: Relay,
    /// The agent that is to use it.
    pub(super) grantee: String,
}

fn settings(tier: &Path, more: &str) -> String {
    // Loads in the tests take longer on a busy machine than a caller usually waits.
    format!("{more}\n[memory]\ntier = '{}'\n", tier.display())
}

impl TwoNodes {
    pub(super) fn new() -> Self {
        let tier = tempfile::tempdir().expect("a temporary folder");
        let (giver_home, taker_home) = (Home::new(), Home::new());
        let outbound = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n[peers]\nread_ms = 300000\n";
        let giver = Setup::in_home(&giver_home).config(&settings(tier.path(), outbound)).start();
        let issuer = run(&giver_home, ["memory", "show", "--json"]).json()["issuer"].as_str().expect("a key").to_owned();
        let relay = Relay::new();
        let more = format!("public_url = '{}'\n[agents.recall]\nrun = 'recall'\n", relay.url());
        let settings = format!("{}issuers = ['{issuer}']\n", settings(tier.path(), &more));
        let taker = Setup::in_home(&taker_home).config(&settings).start();
        relay.leads_to(taker.url());
        let added = run(&giver_home, ["agents", "add", &relay.url(), "--name", "recall"]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        let keys = run(&taker_home, ["keys", "show", "--json"]).json();
        let of_recall = |key: &&Value| key["owner"] == "recall" && key["agent_id"].is_string();
        let key = keys["keys"].as_array().expect("keys").iter().find(of_recall).expect("a key of the agent").clone();
        let grantee = key["agent_id"].as_str().expect("an id").to_owned();
        Self { tier, giver_home, giver, taker_home, taker, relay, grantee }
    }

    /// Puts so many vectors into the tier through the giver; answers what it says, and some of them to ask for.
    pub(super) fn publish(&self, count: u64) -> (Value, Vec<Vec<f32>>) {
        let (file, queries) = written(self.giver_home.path(), count);
        let published = run(&self.giver_home, ["memory", "publish", file.to_str().expect("text"), "--json"]).json();
        std::fs::remove_file(file).expect("the file is there");
        assert_eq!((&published["count"], &published["dim"]), (&json!(count), &json!(DIM)));
        (published, queries)
    }

    pub(super) fn grant(&self, witness: &str, more: &[&str]) -> Value {
        let arguments = [&["memory", "grant", witness, "--to", &self.grantee, "--json"], more].concat();
        run(&self.giver_home, arguments).json()
    }

    /// What the giver finds itself.
    pub(super) fn searched(&self, witness: &str, queries: &[Vec<f32>]) -> Value {
        let mut arguments = vec!["memory".to_owned(), "search".into(), witness.to_owned(), "--json".into()];
        for query in queries {
            arguments.extend(["--query".to_owned(), json!(query).to_string()]);
        }
        run(&self.giver_home, arguments).json()["neighbours"].clone()
    }

    /// Has the giver hand parts to the agent at the taker's.
    pub(super) async fn hand_over(&self, parts: &[Part]) -> Value {
        send(&format!("{}/agents/recall", self.giver.url()), parts).await
    }

    /// Gives parts to the agent without anybody between.
    pub(super) async fn tell(&self, parts: &[Part]) -> Value {
        send(self.taker.url(), parts).await
    }

    pub(super) fn at_taker(&self, arguments: &[&str]) -> Ran {
        run(&self.taker_home, arguments)
    }
}

async fn send(url: &str, parts: &[Part]) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body);
    request.send().await.expect("the node answers").json().await.expect("with JSON")
}

/// A witness as a part, with the grant beside it.
pub(super) fn witness(witness: &str, data_ref: &str, grant: Option<&str>) -> Part {
    let kind = ArtifactKind::RuLakeWitness {
        witness: witness.to_owned(),
        data_ref: data_ref.to_owned(),
        capabilities: ["read", "write", "search"].map(str::to_owned).to_vec(),
    };
    let mut part = kind.to_parts().remove(0);
    let mut metadata = part.metadata.take().expect("a kind").to_object();
    if let Some(grant) = grant {
        metadata["ruvector"]["grant"] = json!(grant);
    }
    part.metadata = Some(chancery_protocol::Metadata::from_object(metadata));
    part
}

/// What the agent found, in the answer to a message.
pub(super) fn found(answer: &Value) -> &Value {
    let data = &answer["result"]["task"]["artifacts"][0]["parts"][0]["data"];
    assert!(data.is_object(), "{answer:#}");
    data
}

/// A file of vectors that are the same for the same count, and some near to a few of them.
fn written(folder: &Path, count: u64) -> (PathBuf, Vec<Vec<f32>>) {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ count;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let path = folder.join("vectors.ruvec");
    let mut file = BufWriter::new(std::fs::File::create(&path).expect("the home takes files"));
    file.write_all(&VectorShape { count, dim: DIM }.header()).expect("room");
    let mut queries = Vec::new();
    let mut record = Vec::new();
    for id in 0..count {
        record.clear();
        record.extend_from_slice(&(id * 7 + 1).to_le_bytes());
        let first = record.len();
        for _ in 0..DIM {
            record.extend_from_slice(&next().to_le_bytes());
        }
        if id % (count / 5) == 3 {
            let numbers = record[first..].chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four")) + 0.01);
            queries.push(numbers.collect());
        }
        file.write_all(&record).expect("room");
    }
    file.flush().expect("room");
    (path, queries)
}
