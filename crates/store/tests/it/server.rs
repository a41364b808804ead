//! PostgreSQL for tests: a real server in a folder of its own, which ends with the test process, however that ends.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use chancery_store::{PostgresOptions, PostgresStore};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// The folder with the server's programs.
const PROGRAMS: &str = "CHANCERY_TEST_PG";

const HOW_TO_GET: &str = "no PostgreSQL to test with: run `cargo xtask interop postgresql`, install the package `postgresql`, \
                          or set CHANCERY_TEST_PG to the folder with initdb, postgres and pg_ctl";

/// How long a server may take to answer its first connection.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Runs the server until a line comes, or the process ends that holds the other end of the standard input. Then the folder goes too.
/// A signal to the whole group, as from a terminal, ends the tests and not this shell.
const UNTIL_INPUT_ENDS: &str = r#"trap '' HUP INT TERM; "$1" -D "$2/data" 2>>"$2/data/server.log" &
    server=$!; read word; kill -QUIT $server 2>/dev/null; wait $server; [ "$word" = keep ] || rm -rf "$2""#;

/// A server with a database folder.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    watched: Option<Child>,
}

impl PostgresServer {
    /// Makes a database folder and starts a server in it. Without `fsync` it is quicker, and loses what it confirmed if the machine stops.
    pub(crate) fn start(fsync: bool) -> Self {
        Self::start_with(fsync, "", &[])
    }

    /// The same with more settings, and with files that only the server's user may read.
    pub(crate) fn start_with(fsync: bool, settings: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(user) = unprivileged() {
            run(Command::new("chown").arg(user).arg(folder.path()));
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { programs: programs(), folder, port, watched: None };
        let data = server.data();
        run(server.program("initdb").args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N", "-D"]).arg(&data));
        let settings = format!(
            "{settings}\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nmax_connections = 300\nfsync = {fsync}\n\
             autovacuum = off\nshared_buffers = '64MB'\nmax_wal_size = '1GB'\nfull_page_writes = {fsync}\n"
        );
        let mut file = std::fs::OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
        file.write_all(settings.as_bytes()).unwrap();
        for (name, content) in files {
            let place = data.join(name);
            std::fs::write(&place, content).unwrap();
            if let Some(user) = unprivileged() {
                run(Command::new("chown").arg(user).arg(&place));
            }
            run(Command::new("chmod").arg("600").arg(&place));
        }
        server.go_on();
        server
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server, as a user that the server accepts.
    fn program(&self, name: &str) -> Command {
        as_unprivileged(&self.programs.join(name))
    }

    /// Starts the server in the folder that it has.
    pub(crate) fn go_on(&mut self) {
        let mut shell = as_unprivileged(Path::new("/bin/sh"));
        shell.args(["-c", UNTIL_INPUT_ENDS, "sh"]).arg(self.programs.join("postgres")).arg(self.folder.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        self.watched = Some(shell.spawn().unwrap());
        let until = Instant::now() + STARTS_WITHIN;
        let ready = || {
            let port = self.port.to_string();
            let mut ask = Command::new(self.programs.join("pg_isready"));
            ask.args(["-q", "-h", "127.0.0.1", "-p", &port]).status().unwrap().success()
        };
        while !ready() {
            assert!(Instant::now() < until, "the server did not start:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server as a crash does: nothing is written on the way out.
    pub(crate) fn stop_at_once(&mut self) {
        run(self.program("pg_ctl").arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]));
        self.end();
    }

    /// Replaces who may connect, and how they show who they are.
    pub(crate) fn set_access(&self, lines: &str) {
        std::fs::write(self.data().join("pg_hba.conf"), lines).unwrap();
        run(self.program("pg_ctl").arg("-D").arg(self.data()).arg("reload"));
    }

    fn end(&mut self) {
        if let Some(mut watched) = self.watched.take() {
            watched.stdin.take().unwrap().write_all(b"keep\n").unwrap();
            watched.wait().unwrap();
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.data().join("server.log")).unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self, database: &str) -> String {
        url(self.port, database)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// The folder named by the environment, or the newest that Debian's package has.
fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os(PROGRAMS) {
        return folder.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).filter(|folder| version(folder).is_some()).max_by_key(version);
    newest.map(|folder| folder.join("bin")).filter(|folder| folder.join("initdb").exists()).expect(HOW_TO_GET)
}

/// The user that runs the server where tests are run by root, whom the server refuses.
fn unprivileged() -> Option<&'static str> {
    static USER: OnceLock<Option<&'static str>> = OnceLock::new();
    let answers = |arguments: &[&str]| Command::new("id").args(arguments).output().unwrap();
    *USER.get_or_init(|| {
        let is_root = answers(&["-u"]).stdout.trim_ascii() == b"0";
        let known = || ["postgres", "nobody"].into_iter().find(|user| answers(&["-u", user]).status.success());
        is_root.then(|| known().expect("tests run by root need a user `postgres` or `nobody` to run the server"))
    })
}

fn as_unprivileged(program: &Path) -> Command {
    match unprivileged() {
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", user, "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// What the one thread that manages databases is asked for.
enum DatabaseRequest {
    Make { name: String, done: mpsc::Sender<()> },
    Remove { name: String },
}

/// The server that all tests of a process share, and the thread that makes databases in it.
struct SharedServer {
    port: u16,
    requests: mpsc::Sender<DatabaseRequest>,
}

/// The template that has the tables already.
const TEMPLATE: &str = "with_tables";

fn shared() -> &'static SharedServer {
    static SHARED: OnceLock<SharedServer> = OnceLock::new();
    SHARED.get_or_init(|| {
        let (requests, asked) = mpsc::channel();
        let (started, port) = mpsc::channel();
        std::thread::spawn(move || {
            let server = PostgresServer::start(false);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let (admin, connection) = tokio_postgres::connect(&server.url("postgres"), NoTls).await.unwrap();
                tokio::spawn(connection);
                admin.batch_execute(&format!("CREATE DATABASE {TEMPLATE}")).await.unwrap();
                let store = PostgresStore::open(PostgresOptions::at(server.url(TEMPLATE))).await.unwrap();
                chancery_core::Store::close(&store, STARTS_WITHIN).await.unwrap();
                started.send(server.port()).unwrap();
                while let Ok(request) = tokio::task::block_in_place(|| asked.recv()) {
                    match request {
                        DatabaseRequest::Make { name, done } => {
                            make_from_template(&admin, &name).await;
                            done.send(()).unwrap();
                        }
                        DatabaseRequest::Remove { name } => {
                            admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
                        }
                    }
                }
            });
        });
        SharedServer { port: port.recv().expect("the server for tests did not start"), requests }
    })
}

/// The store that made the template may be on its way out still.
async fn make_from_template(admin: &tokio_postgres::Client, name: &str) {
    for attempt in 0.. {
        match admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")).await {
            Ok(()) => return,
            Err(error) => assert!(attempt < 100, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A database of its own, in the server that all tests of the process share. It goes when the test ends.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    name: String,
    port: u16,
}

impl TestDatabase {
    pub(crate) fn make() -> Self {
        let shared = shared();
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let (done, made) = mpsc::channel();
        shared.requests.send(DatabaseRequest::Make { name: name.clone(), done }).unwrap();
        made.recv().unwrap();
        Self { name, port: shared.port }
    }

    pub(crate) fn url(&self) -> String {
        url(self.port, &self.name)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL by which another port of this machine leads to it.
    pub(crate) fn url_by(&self, port: u16) -> String {
        url(port, &self.name)
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open(PostgresOptions::at(self.url())).await.unwrap()
    }

    /// A store of one of several nodes.
    pub(crate) async fn join(&self) -> PostgresStore {
        PostgresStore::join(PostgresOptions::at(self.url())).await.unwrap()
    }

    /// A session beside the store's, for what an operator or a fault does.
    pub(crate) async fn session(&self) -> tokio_postgres::Client {
        session(&self.url()).await
    }
}

pub(crate) async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // The thread may be gone with the process.
        drop(shared().requests.send(DatabaseRequest::Remove { name: std::mem::take(&mut self.name) }));
    }
}
