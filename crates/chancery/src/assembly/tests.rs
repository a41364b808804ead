//! A node that was reloaded equals one that was started with the same file, for random pairs of files.

mod picture;
mod random_config;

use std::path::Path;
use std::sync::Arc;

use chancery_core::REFERENCES_EXTENSION;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::picture::picture;
use self::random_config::{Surroundings, pair};
use crate::agents::BuiltIn;
use crate::config::{Config, ConfigFile};
use crate::{Node, ReloadError};

/// Pairs of files that are tried.
const PAIRS: usize = 200;

/// A node in front of nothing, for others to stand in front of.
async fn far_agent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let agent = BuiltIn::Conformance;
    let node = Node::builder().shared_agent("far", agent.card(), agent.runner()).public_url(&url).build().await.unwrap();
    let node = Arc::new(node);
    chancery_core::spawn_watched("far agent", async move { node.serve(listener, CancellationToken::new()).await });
    url
}

/// A node of a file, with its keys in a folder and its tasks in memory.
async fn start(folder: &Path, file: &Path) -> Node {
    let read = ConfigFile::read(file).unwrap_or_else(|fault| panic!("{fault}"));
    let builder = Node::builder().config_file(read, |config| config).data(folder).memory();
    builder.public_url("http://127.0.0.1:7420").build().await.unwrap_or_else(|fault| panic!("{fault}"))
}

fn copy_keys(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|kind| kind == "json") || entry.file_name() == "admin.token" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_started_with_one_file_and_reloaded_to_another_equals_one_started_with_the_other() {
    let seed = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| rand::rng().next_u64());
    println!("CHANCERY_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let far = far_agent().await;
    for number in 0..PAIRS {
        println!("pair {number}");
        let home = tempfile::tempdir().unwrap();
        let (file, folder) = (home.path().join("chancery.toml"), home.path().join("a"));
        let around = Surroundings { far: &far, tier: &home.path().join("tier") };
        let (before, after) = pair(&mut random, &around);
        std::fs::write(&file, &before).unwrap();
        let reloaded = start(&folder, &file).await;
        std::fs::write(&file, &after).unwrap();
        let said = reloaded.reload().await;
        let said = said.unwrap_or_else(|fault| panic!("pair {number}: {fault}\n--- before\n{before}\n--- after\n{after}"));
        let differs = Config::parse(&before) != Config::parse(&after);
        assert_eq!((said.changed, said.changes.is_empty()), (differs, !differs), "pair {number}: {:?}", said.changes);
        copy_keys(&folder, &home.path().join("b"));
        let started = start(&home.path().join("b"), &file).await;
        let (is, should) = (picture(&reloaded).await, picture(&started).await);
        assert_eq!(is.keys().collect::<Vec<_>>(), should.keys().collect::<Vec<_>>());
        for (part, should) in should {
            assert_eq!(is[&part], should, "pair {number}, {part}\n--- before\n{before}\n--- after\n{after}");
        }
    }
}

async fn reload_to(node: &Node, file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    node.reload().await.unwrap_or_else(|fault: ReloadError| panic!("{fault}"));
}

#[tokio::test]
async fn cards_still_promise_references_to_large_parts_after_a_reload() {
    let home = tempfile::tempdir().unwrap();
    let (file, far) = (home.path().join("chancery.toml"), far_agent().await);
    let text = |page: usize| {
        let tier = home.path().join("tier");
        format!(
            "[agents.here]\nrun = 'echo'\n[agents.far]\nurl = '{far}'\n[memory]\ntier = '{}'\n[artifacts]\noffload = true\n\
             [limits]\npage_size = {page}\n",
            tier.display()
        )
    };
    std::fs::write(&file, text(10)).unwrap();
    let node = start(&home.path().join("data"), &file).await;
    let promises = |name: &str| {
        let card = Arc::clone(&node.chancery().agents().get(name).unwrap().card);
        card.capabilities.extensions.iter().filter(|extension| extension.uri == REFERENCES_EXTENSION).count()
    };
    for page in 11..13 {
        reload_to(&node, &file, &text(page)).await;
        assert_eq!((promises("here"), promises("far")), (1, 1), "once on each card, also of an agent that stays as it is");
    }
}

#[tokio::test]
async fn webhooks_go_out_through_the_proxy_of_the_new_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("chancery.toml");
    let text = |port: u16| format!("[agents.here]\nrun = 'echo'\n[outbound]\nproxy = 'http://127.0.0.1:{port}'\naddresses = 3\n");
    std::fs::write(&file, text(1)).unwrap();
    let node = start(&home.path().join("data"), &file).await;
    let egress = || node.running().service().webhooks.as_ref().unwrap().egress();
    let proxies = || egress().map(|guard| guard.config().proxy.clone().unwrap());
    assert_eq!(proxies(), ["http://127.0.0.1:1", "http://127.0.0.1:1"]);
    reload_to(&node, &file, &text(2)).await;
    assert_eq!(proxies(), ["http://127.0.0.1:2", "http://127.0.0.1:2"], "of deliveries, and of registrations");
}
