//! A tier in a bucket holds and refuses what one in a folder does. The server is moto (PyPI), which speaks S3 over real HTTP, and so the
//! XML interface that Google's storage shares with it; `cargo xtask interop` installs it.

#[allow(dead_code, reason = "shared with the tests against other programs")]
mod toolbox;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_identity::SealKey;
use chancery_memory::{ArtifactsConfig, MemoryConfig, Offload, Tier};
use chancery_protocol::{Part, PartContent, TaskId};
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use toolbox::Toolbox;

use crate::common::{DIM, publish, vectors};

struct Moto {
    process: Child,
    address: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Moto {
    fn start(mut command: Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let moto = Self { process: command.spawn().expect("moto starts"), address: format!("127.0.0.1:{port}") };
        let patience = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(&moto.address).is_err() {
            assert!(Instant::now() < patience, "moto does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        moto
    }
}

const INSIDE: &str = "CHANCERY_TEST_INSIDE_BUCKET";

/// Settings for buckets come from the environment, and the environment of a process is not changed while it runs: the test runs itself
/// again with them.
#[test]
fn a_bucket_holds_and_refuses_what_a_folder_does() {
    if let Ok(scheme) = std::env::var(INSIDE) {
        return inside(&scheme);
    }
    let program = Toolbox::new().python("bucket", "serve.py").unwrap_or_else(|missing| panic!("{missing}"));
    let moto = Moto::start(program);
    let endpoint = format!("http://{}", moto.address);
    for scheme in ["s3", "gs"] {
        let spool = tempfile::tempdir().unwrap();
        make_bucket(&moto.address, &format!("memories{scheme}"));
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["bucket::a_bucket_holds_and_refuses_what_a_folder_does", "--nocapture", "--exact"]).env(INSIDE, scheme).envs(
            [
                ("TMPDIR", spool.path().to_str().unwrap()),
                ("AWS_ENDPOINT", endpoint.as_str()),
                ("AWS_ALLOW_HTTP", "true"),
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
                ("AWS_REGION", "us-east-1"),
                ("GOOGLE_BASE_URL", endpoint.as_str()),
                ("GOOGLE_BEARER_TOKEN", "test"),
            ],
        );
        assert!(again.status().unwrap().success(), "{scheme}");
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0, "nothing is left of what was on its way");
    }
}

fn inside(scheme: &str) {
    let bucket = format!("{scheme}://memories{scheme}");
    let config = |prefix: &str| MemoryConfig { tier: Some(format!("{bucket}/{prefix}")), ..MemoryConfig::default() };
    let tier = || Tier::open(&config("prod")).unwrap().unwrap();
    let (one, two) = (tier(), tier());
    // More than one part of an upload.
    let many = vectors(3, 40_000, 64);
    let published = publish(&one, &many);
    assert!(published.data_ref.starts_with(&format!("{bucket}/prod/vectors/")), "{}", published.data_ref);
    let resolved = two.resolve(&published.witness, Some(&published.data_ref)).unwrap();
    assert_eq!((resolved.count, resolved.dim), (40_000, 64));
    let queries = [many[7].clone(), many[39_999].clone()];
    assert_eq!(one.search(&published.witness, &queries, 5).unwrap(), two.search(&published.witness, &queries, 5).unwrap());
    assert_eq!(one.witnesses().unwrap(), std::slice::from_ref(&published.witness));
    let elsewhere = Tier::open(&config("staging")).unwrap().unwrap();
    assert_eq!(elsewhere.resolve(&published.witness, None).unwrap_err().code(), "unknown_witness");

    let small = publish(&one, &vectors(4, 20, DIM));
    let name = small.data_ref.trim_start_matches(&bucket).trim_start_matches('/');
    let good = crate::common::file(&vectors(4, 20, DIM));
    let mut bad = good.clone();
    bad[100] ^= 1;
    for content in [&bad[..], &good[..good.len() - 1], &good[..3]] {
        put(&bucket, name, content);
        assert_eq!(tier().resolve(&small.witness, None).unwrap_err().code(), "tampered");
    }
    put(&bucket, name, &good);
    tier().resolve(&small.witness, None).unwrap();
    let narrow = MemoryConfig { max_collection_bytes: good.len() as u64 - 1, ..config("prod") };
    assert_eq!(Tier::open(&narrow).unwrap().unwrap().resolve(&small.witness, None).unwrap_err().code(), "too_large");

    let nowhere = MemoryConfig { tier: Some(format!("{scheme}://nobodys/prod")), ..MemoryConfig::default() };
    let nowhere = Tier::open(&nowhere).unwrap().unwrap();
    let vectors = crate::common::incoming(&nowhere, &good).unwrap();
    assert_eq!(nowhere.publish(vectors, None).unwrap_err().code(), "tier");
    large_parts(one);
}

fn large_parts(tier: Tier) {
    let config = ArtifactsConfig { offload_above_bytes: 1000, ..ArtifactsConfig::default() };
    let offload = Offload::new(Arc::new(tier), "node", SealKey::new(&[7; 32]).unwrap(), "http://here", &config);
    let task = TaskId::from(uuid::Uuid::now_v7().to_string().as_str());
    let parts = vec![Part::text("short"), Part::text("long ".repeat(1000))];
    let kept = offload.offload(&task, parts.clone()).unwrap();
    assert_eq!((&kept[0], offload.away(&task, &kept)), (&parts[0], 5000));
    assert_eq!(offload.restore(&task, kept.clone()).unwrap(), parts);
    let PartContent::Url(url) = &kept[1].content else { panic!("{kept:?}") };
    let digest = url.rsplit('/').next().unwrap();
    assert_eq!(offload.length(&task, digest).unwrap(), Some(5000));
    assert_eq!(offload.piece(&task, digest, 4990, 10).unwrap(), b"long long ");
    assert_eq!(offload.tasks().unwrap(), std::slice::from_ref(&task));
    assert_eq!(offload.weight(&task).unwrap(), 5000);
    offload.forget(&task).unwrap();
    assert_eq!(
        (offload.tasks().unwrap(), offload.length(&task, digest).unwrap(), offload.weight(&task).unwrap()),
        (vec![], None, 0)
    );
    assert_eq!(offload.restore(&task, kept.clone()).unwrap(), kept, "what is gone stays a link");
}

/// Moto lets anybody make one.
fn make_bucket(address: &str, name: &str) {
    let mut wire = TcpStream::connect(address).unwrap();
    let head = format!("PUT /{name} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    wire.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    wire.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Somebody else with access to the bucket puts something there.
fn put(bucket: &str, name: &str, content: &[u8]) {
    let store: Box<dyn ObjectStore> = match bucket.starts_with("gs:") {
        true => Box::new(GoogleCloudStorageBuilder::from_env().with_url(bucket).build().unwrap()),
        false => Box::new(AmazonS3Builder::from_env().with_url(bucket).build().unwrap()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store.put(&Path::from(name), PutPayload::from(content.to_vec()))).unwrap();
}
