//! A disk without room under a running node: every binding tells its callers to come back, and work goes on once there is room.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use chancery_protocol::{Binding, ErrorKind, Message, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::json;
use tonic_types::StatusExt as _;

use super::readiness;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::{Combination, Conditions, RawCall, RawClient, Refusal, WireClient};

/// Where the data folder is.
enum Disk {
    /// A file system of eight megabytes that only the server and those who look through it see.
    Small,
    /// Where nobody may mount one: a limit on the size of files, which fails writes in the same way.
    Limited,
}

const CONFIG: &str = "[agents.conformance]\nrun = 'conformance'\n[swp]\nlisten = '127.0.0.1:0'\n";

/// More than is left where writes go that were made before.
const LARGE: usize = 600_000;

fn may_mount(arguments: &[&str]) -> bool {
    let mount = "mount -t tmpfs -o size=1m none /mnt";
    Command::new("unshare").args(arguments).args(["/bin/sh", "-c", mount]).status().is_ok_and(|status| status.success())
}

fn start(home: &Home) -> (Server, Disk) {
    let unshared = [&["--mount"][..], &["--mount", "--map-root-user"]];
    let setup = Setup::in_home(home).config(CONFIG);
    match unshared.into_iter().find(|arguments| may_mount(arguments)) {
        Some(arguments) => {
            std::fs::create_dir_all(home.data()).expect("the home takes folders");
            let inner = "mount -t tmpfs -o size=8m,mode=700 none \"$DISK\" && exec \"$0\" \"$@\"";
            let outer = format!("exec unshare {} /bin/sh -c '{inner}' \"$0\" \"$@\"", arguments.join(" "));
            (setup.env("DISK", home.data().to_str().expect("UTF-8")).after(&outer).start(), Disk::Small)
        }
        None => (setup.after("trap '' XFSZ").start(), Disk::Limited),
    }
}

impl Disk {
    /// A file of the data folder, as the server sees it.
    fn filler(server: &Server) -> PathBuf {
        let data = server.home().data();
        PathBuf::from(format!("/proc/{}/root{}/filler", server.pid(), data.display()))
    }

    fn limit(server: &Server, bytes: &str) {
        let limit = format!("--fsize={bytes}:unlimited");
        let set = Command::new("prlimit").args(["--pid", &server.pid().to_string(), &limit]).status();
        assert!(set.expect("prlimit can be run").success());
    }

    fn fill(&self, server: &Server) {
        match self {
            Self::Small => {
                let mut filler = File::create(Self::filler(server)).expect("there is room for a file");
                for piece in [&[0_u8; 65536][..], &[0; 1]] {
                    while filler.write_all(piece).is_ok() {}
                }
            }
            Self::Limited => Self::limit(server, "0"),
        }
    }

    fn free(&self, server: &Server) {
        match self {
            Self::Small => std::fs::remove_file(Self::filler(server)).expect("it is there"),
            Self::Limited => Self::limit(server, "unlimited"),
        }
    }
}

fn large(number: usize, combination: Combination) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Message::text(Role::User, format!("m-{number}").as_str(), format!("complete {}", "x".repeat(LARGE))).into(),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| format!("t-{number}").into()),
        unknown: Default::default(),
    }
}

#[tokio::test]
async fn a_full_disk_is_unavailable_in_every_binding_and_the_node_recovers_by_itself() {
    let home = Home::new();
    let (server, disk) = start(&home);
    let kept = server.send("complete before").await["task"]["id"].take();
    assert_eq!(readiness(&server).await.0, 200);
    disk.fill(&server);
    let raw = RawClient::new(server.url());
    for (number, combination) in Combination::ALL.into_iter().chain([Combination::SWP]).enumerate() {
        let request = Request::SendMessage(large(number, combination));
        let refused = WireClient::new(server.url(), combination).call(&request, &Conditions::default()).await;
        let refusal = refused.err().unwrap_or_else(|| panic!("{} has found room", combination.name()));
        refusal.check(ErrorKind::Unavailable, combination).unwrap();
        match (combination.binding, &refusal) {
            (Binding::Grpc, Refusal::Grpc(status)) => {
                let delay = status.get_error_details().retry_info().and_then(|info| info.retry_delay);
                assert_eq!(delay, Some(Duration::from_secs(5)), "{}", combination.name());
            }
            (Binding::Swp, refusal) => assert!(refusal.message().ends_with("; retry after 5 s"), "{}", refusal.message()),
            _ => {
                let answer = raw.ask(&RawCall::of(combination, &request).expect("every version can send")).await;
                assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{answer:?}");
            }
        }
        let (status, body) = readiness(&server).await;
        assert_eq!(status, 503, "after {}: {body}", combination.name());
        assert!(body["reason"].as_str().is_some_and(|reason| reason.contains("failed: ")), "{body}");
    }
    let read = server.call("GetTask", json!({ "id": kept })).await;
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_COMPLETED", "what is kept can be read: {read}");

    disk.free(&server);
    // Nobody sends anything meanwhile.
    soon("the node is ready again", async || (readiness(&server).await.0 == 200).then_some(())).await;
    let after = server.send("complete after").await;
    assert_eq!(after["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{after}");
}

#[tokio::test]
async fn a_disk_that_is_full_is_seen_before_any_write_fails() {
    let home = Home::new();
    let (server, disk) = start(&home);
    server.send("complete before").await;
    assert_eq!(readiness(&server).await.0, 200);
    disk.fill(&server);
    if matches!(disk, Disk::Limited) {
        println!("no file system can be mounted here; a limit on the size of files cannot be seen from outside");
        return;
    }
    // A probe before may have tried a write within the last second.
    soon("the node is not ready", async || (readiness(&server).await.0 == 503).then_some(())).await;
    assert!(!server.log().contains("refused"), "nobody has sent anything: {}", server.log());
    disk.free(&server);
    soon("the node is ready again", async || (readiness(&server).await.0 == 200).then_some(())).await;
}

#[tokio::test]
async fn probes_of_readiness_write_nothing() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    server.send("complete").await;
    let written = || std::fs::metadata(home.data().join("chancery.db-wal")).map_or(0, |file| file.len());
    let before = written();
    assert!(before > 0);
    for _ in 0..50 {
        assert_eq!(readiness(&server).await.0, 200);
    }
    assert_eq!(written(), before);
}
