//! The built server on a free port, in a home of its own, killed when dropped.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::patience::exit_of;
use crate::support::ports::lasting_address;

/// A folder that stands for a user's home. Servers started in the same home share what they keep.
#[derive(Clone)]
pub(crate) struct Home(Arc<TempDir>);

impl Home {
    pub(crate) fn new() -> Self {
        Self(Arc::new(tempfile::tempdir().expect("a temporary folder")))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The data folder of a server in this home that was told nothing else.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(".local/share/chancery")
    }

    /// The built command, as a user with this home would run it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chancery"));
        let proxies = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
        for name in ["XDG_DATA_HOME", "CHANCERY_DATA", "CHANCERY_STORE", "RUST_LOG"].into_iter().chain(proxies) {
            command.env_remove(name);
        }
        command.env("HOME", self.path()).current_dir(self.path()).stdin(Stdio::null());
        command
    }
}

/// How to start a server.
pub(crate) struct Setup {
    home: Home,
    command: Command,
}

impl Setup {
    /// As little as a test can say: somewhere that stays this server's also while it is down.
    pub(crate) fn in_home(home: &Home) -> Self {
        Self::at(home, lasting_address())
    }

    pub(crate) fn at(home: &Home, listen: impl Display) -> Self {
        let mut command = home.command();
        command.args(["serve", "--listen", &listen.to_string()]);
        Self { home: home.clone(), command }
    }

    /// Another program that says where it is as the built server does.
    pub(crate) fn of_program(home: &Home, program: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(home.path()).stdin(Stdio::null());
        Self { home: home.clone(), command }
    }

    /// A server with the conformance agent that keeps its tasks in memory, and its token and address in its home.
    pub(crate) fn conformance() -> Self {
        let home = Home::new();
        let data = home.data();
        Self::in_home(&home).args(["--agent", "conformance", "--memory", "--data"]).args([data])
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// With these settings in a file.
    pub(crate) fn config(self, toml: &str) -> Self {
        let file = self.home.path().join("chancery.toml");
        std::fs::write(&file, toml).expect("the home takes files");
        self.args([Path::new("--config"), &file])
    }

    /// Begun by a shell that first does something to itself, such as `trap '' XFSZ`, and then becomes the server.
    pub(crate) fn after(mut self, shell: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")])
            .arg(self.command.get_program())
            .args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.home.path()).stdin(Stdio::null());
        self.command = command;
        self
    }

    /// Starts it and waits until it says where it is.
    pub(crate) fn start(self) -> Server {
        self.try_start().unwrap_or_else(|(status, log)| panic!("no address was printed, {status}: {log}"))
    }

    /// The same for a server that may not start: how it ended then, and what it logged.
    pub(crate) fn try_start(mut self) -> Result<Server, (ExitStatus, String)> {
        let log = self.home.path().join("log");
        self.command.stdout(Stdio::piped()).stderr(File::create(&log).expect("the home takes files"));
        let mut process = self.command.spawn().expect("the built server starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut line = || {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("stdout can be read");
            line.trim_end().to_owned()
        };
        let (url, curl) = (line(), line());
        let mut server = Server { process, url, curl, stdout, home: self.home, log };
        let somewhere = ["http://127.0.0.1:", "https://127.0.0.1:"].iter().any(|start| server.url.starts_with(start));
        if somewhere { Ok(server) } else { Err((exit_of(&mut server.process), server.log())) }
    }
}

pub(crate) struct Server {
    process: Child,
    url: String,
    curl: String,
    stdout: BufReader<std::process::ChildStdout>,
    /// Kept, so that the folder outlives the process.
    home: Home,
    log: PathBuf,
}

impl Server {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The second line it printed.
    pub(crate) fn curl(&self) -> &str {
        &self.curl
    }

    /// Where it keeps what it keeps.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A JSON-RPC call of version 1.0, and its whole answer.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = reqwest::Client::new().post(&self.url).header("A2A-Version", "1.0").json(&body);
        request.send().await.expect("the server answers").json().await.expect("with JSON")
    }

    /// Sends a text and answers the `result`.
    pub(crate) async fn send(&self, text: &str) -> Value {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
        self.call("SendMessage", json!({ "message": message })).await["result"].take()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill can be run");
        assert!(sent.success(), "SIG{name} could not be sent");
    }

    /// Asks it to stop, and answers how it ended and what else it had printed.
    pub(crate) fn terminate(self) -> (ExitStatus, String) {
        self.signal("TERM");
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let status = exit_of(&mut self.process);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("stdout can be read");
        (status, rest)
    }

    /// Ends it without asking.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("a child can be killed");
        exit_of(&mut self.process);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
