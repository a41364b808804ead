//! PostgreSQL for tests: a real server in a folder of its own, which ends with the test process, however that ends.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The folder with the server's programs.
const PROGRAMS: &str = "CHANCERY_TEST_PG";

const HOW_TO_GET: &str = "no PostgreSQL to test with: run `cargo xtask interop postgresql`, install the package `postgresql`, \
                          or set CHANCERY_TEST_PG to the folder with initdb, postgres and pg_ctl";

/// How long a server may take to answer its first connection.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Runs the server until a line comes, or until the process ends that holds the writing side of the standard input. Then the folder goes too.
/// A signal to the whole group, as from a terminal, ends the tests and not this shell.
const UNTIL_INPUT_ENDS: &str = r#"trap '' HUP INT TERM; "$1" -D "$2/data" 2>>"$2/data/server.log" &
    server=$!; read word; kill -QUIT $server 2>/dev/null; wait $server; [ "$word" = keep ] || rm -rf "$2""#;

/// A server with a database folder, on a free port of the loopback. It ends with the test process, however that ends.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    watched: Option<Child>,
}

impl PostgresServer {
    /// Makes a database folder and starts a server in it. Without `fsync` it is quicker, and loses what it confirmed if the machine stops.
    pub fn start(fsync: bool) -> Self {
        Self::start_with(fsync, "", &[])
    }

    /// The same with more settings, and with files that only the server's user may read.
    pub fn start_with(fsync: bool, settings: &str, files: &[(&str, &str)]) -> Self {
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
    pub fn go_on(&mut self) {
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
    pub fn stop_at_once(&mut self) {
        run(self.program("pg_ctl").arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]));
        self.end();
    }

    /// Runs statements of SQL as the administrator, one after the other, each committed by itself. Answers the rows without decoration.
    pub fn sql(&self, database: &str, statements: &[&str]) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)]);
        command.args(statements.iter().flat_map(|statement| ["-c", statement]));
        run(&mut command).trim_end().to_owned()
    }

    /// Makes an empty database, and answers its URL.
    pub fn make_database(&self, name: &str) -> String {
        self.sql("postgres", &[&format!("CREATE DATABASE \"{name}\" ENCODING 'UTF8' TEMPLATE template0")]);
        self.url(name)
    }

    /// Replaces who may connect, and how they show who they are.
    pub fn set_access(&self, lines: &str) {
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

    /// The port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, for the administrator, who needs no password.
    pub fn url(&self, database: &str) -> String {
        postgres_url(self.port, database)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The URL of a database at a port of the loopback, for the administrator.
pub fn postgres_url(port: u16, database: &str) -> String {
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

/// Runs a program to its end, and answers what it printed.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
