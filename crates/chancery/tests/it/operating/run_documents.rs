//! The commands and `curl` lines of `docs` are run, page by page, with a node and an agent behind the addresses that the pages use for
//! agents. Nodes that a page starts are started. A command that needs another part is only parsed (`documents.rs`). Its text shows
//! that part: see [`Needs`].

use std::fs;
use std::path::Path;

use super::documents::{PLACEHOLDERS, arguments, blocks, pages};
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Server, Setup};

/// The node of every page: the agents and the record that the pages speak of, and a folder as memory tier.
const CONFIG: &str = "[agents.echo]\nrun = 'echo'\n[agents.research]\nrun = 'echo'\n[memory]\ntier = 'tier'\n";

/// The addresses in the pages that stand for an agent of the reader.
const AGENTS: [&str; 4] =
    ["https://agent.example.org", "http://localhost:9999", "http://localhost:9001", "http://localhost:8000"];

/// The files in the pages that stand for a file of the reader.
const FILES: [(&str, &str); 3] = [
    ("letter.txt", "Good morning."),
    ("a2a.toml", "[recursion]\nmax_call_depth = 4\n"),
    ("chancery.toml", "[agents.echo]\nrun = 'echo'\n"),
];

/// Why a command is only parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// It runs until it is stopped, or has an address of its own.
    Stopping,
    /// A word in capitals stands for a value of the reader.
    Value,
    /// A server that is not the node: an agent, a webhook, a node on another machine.
    OtherServer,
    /// A file that the page does not make.
    File,
    /// An environment variable with a secret of the reader.
    Variable,
}

fn needs(words: &[String], urls: [&str; 2], home: &Path) -> Option<Needs> {
    let capitals = |word: &String| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_other = |word: &String| word.contains("://") && !urls.iter().any(|url| word.starts_with(url));
    let is_file = |word: &&String| {
        [".json", ".toml", ".pem", ".jsonl", ".ruvec", ".gz", ".txt", ".token"].iter().any(|end| word.ends_with(end))
    };
    let is_missing = |(at, word): (usize, &String)| {
        let is_output = at > 0 && words[at - 1] == "-o";
        is_file(&word) && !is_output && !home.join(word).exists()
    };
    let is_address = |word: &String| word == "--listen" || word == "--bind";
    if words.iter().any(|word| matches!(word.as_str(), "listen" | "watch") || is_address(word)) {
        Some(Needs::Stopping)
    } else if words.iter().any(|word| word.ends_with("-env")) {
        Some(Needs::Variable)
    } else if words.iter().any(is_other) {
        Some(Needs::OtherServer)
    } else if words.iter().enumerate().any(is_missing) {
        Some(Needs::File)
    } else if words.iter().any(capitals) {
        Some(Needs::Value)
    } else {
        None
    }
}

/// A node with a task, a rejected call and, unless the page adds it itself, the caller `planner`.
struct Page {
    home: Home,
    node: Server,
    agent: Server,
    values: Vec<(&'static str, String)>,
}

impl Page {
    fn new(text: &str) -> Self {
        let home = Home::new();
        fs::write(home.path().join("node.toml"), CONFIG).expect("the home takes files");
        let node = Setup::at(&home, "127.0.0.1:0").args(["--config", "node.toml"]).start();
        assert_eq!(run(&home, ["send", "hello"]).code, Some(0));
        for (command, code) in
            [(["freeze", "agent", "research"], 0), (["send", "research", "hello"], 1), (["thaw", "agent", "research"], 0)]
        {
            assert_eq!(run(&home, command).code, Some(code), "{command:?}");
        }
        if !text.contains("callers add planner") {
            assert_eq!(run(&home, ["callers", "add", "planner"]).code, Some(0));
        }
        fs::copy(home.data().join("admin.token"), home.path().join("admin.token")).expect("the node has a token");
        let id = |list: &[&str], member: &str| {
            let listed = run(&home, list.iter().chain(&["--json"])).json();
            listed[member][0]["id"].as_str().unwrap_or_else(|| panic!("{list:?}: {listed}")).to_owned()
        };
        for (name, text) in FILES {
            fs::write(home.path().join(name), text).expect("the home takes files");
        }
        let agent = Setup::conformance().start();
        let values = vec![("TASK", id(&["tasks", "ls"], "tasks")), ("DECISION", id(&["explain"], "decisions"))];
        Self { home, node, agent, values }
    }

    /// A line with the values that this node has.
    fn filled(&self, line: &str) -> String {
        let line = self.values.iter().fold(line.to_owned(), |line, (name, value)| {
            let words = line.split(' ').map(|word| if word == *name { value } else { word });
            words.collect::<Vec<_>>().join(" ")
        });
        let line = AGENTS.iter().fold(line, |line, url| line.replace(url, self.agent.url().trim_end_matches('/')));
        line.replace("http://127.0.0.1:7420", self.node.url().trim_end_matches('/'))
    }

    /// What a shell prints for a `curl` line, or why it is a fault of the page.
    fn curl(&self, line: &str) -> Result<(), String> {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &self.filled(line)]).current_dir(self.home.path()).env("HOME", self.home.path());
        let ran = Ran::of(shell.env("NODE", self.node.url()));
        let is_malformed =
            ["-32700", "-32600", "-32601", "\"code\":404", "\"code\":405"].iter().any(|code| ran.stdout.contains(code));
        if ran.code != Some(0) || ran.stdout.is_empty() || is_malformed {
            return Err(format!("exit code {:?}: {} {}", ran.code, ran.stdout, ran.stderr));
        }
        Ok(())
    }

    fn command(&self, line: &str) -> Result<Option<Needs>, String> {
        let filled = self.filled(line);
        let Some(words) = arguments(&filled) else { return Ok(None) };
        let urls = [&self.node, &self.agent].map(|server| server.url().trim_end_matches('/'));
        if let Some(needs) = needs(&words, urls, self.home.path()) {
            return Ok(Some(needs));
        }
        if words.first().is_some_and(|word| word == "serve") {
            return self.serve(&words[1..]);
        }
        if filled.split_whitespace().any(|word| PLACEHOLDERS.iter().any(|(name, _)| *name == word)) {
            return Ok(Some(Needs::Value));
        }
        if words.first().is_some_and(|word| word == "init") {
            // The pages show several ways to write the same files.
            for file in ["chancery.toml", "chancery.schema.json"] {
                let _ = fs::remove_file(self.home.path().join(file));
            }
        }
        let ran = run(&self.home, &words);
        if ran.code == Some(0) { Ok(None) } else { Err(format!("exit code {:?}: {} {}", ran.code, ran.stdout, ran.stderr)) }
    }
}

impl Page {
    /// Starts a node as a page does, at a free port and with the files of the page. It must print its address.
    fn serve(&self, flags: &[String]) -> Result<Option<Needs>, String> {
        let home = Home::new();
        for entry in
            fs::read_dir(self.home.path()).expect("the home can be listed").flatten().filter(|entry| entry.path().is_file())
        {
            fs::copy(entry.path(), home.path().join(entry.file_name())).expect("the home takes files");
        }
        match Setup::at(&home, "127.0.0.1:0").args(flags).try_start() {
            Ok(node) => node.terminate().0.success().then_some(None).ok_or_else(|| "the node did not stop in order".to_owned()),
            Err((status, log)) => Err(format!("{status}: {log}")),
        }
    }
}

/// The commands of a shell block. A line whose quotes are open goes on in the next one.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (offset, line) in text.lines().enumerate() {
        match commands.last_mut() {
            Some((_, command)) if open => {
                command.push('\n');
                command.push_str(line);
            }
            _ => commands.push((offset, line.trim_start_matches("$ ").to_owned())),
        }
        let last = commands.last().map(|(_, command)| command.as_str()).unwrap_or_default();
        open = last.starts_with("curl ") && (last.matches('\'').count() % 2 == 1 || last.ends_with('\\'));
    }
    commands.retain(|(_, command)| command.starts_with("chancery ") || command.starts_with("curl "));
    commands
}

#[test]
fn the_commands_of_the_documents_that_a_node_and_an_agent_can_answer_are_run() {
    let (mut ran, mut parsed, mut faults) = (0, Vec::new(), Vec::new());
    for file in pages().into_iter().filter(|page| !page.ends_with("README.md")) {
        let text = fs::read_to_string(&file).expect("the page can be read");
        let shell = blocks(&file).into_iter().filter(|block| matches!(block.language.as_str(), "sh" | ""));
        let lines: Vec<_> = shell
            .flat_map(|block| commands(&block.text).into_iter().map(move |(offset, line)| (block.line + offset, line)))
            .collect();
        if lines.is_empty() {
            continue;
        }
        let page = Page::new(&text);
        for (number, line) in lines {
            let place = format!("{}:{number}: {line}", file.display());
            let outcome = if line.starts_with("curl ") { page.curl(&line).map(|()| None) } else { page.command(&line) };
            match outcome {
                Ok(None) => ran += 1,
                Ok(Some(needs)) => parsed.push(format!("{needs:?}: {place}")),
                Err(fault) => faults.push(format!("{place}\n    {fault}")),
            }
        }
    }
    println!("{ran} commands were run, {} only parsed:\n{}", parsed.len(), parsed.join("\n"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(ran >= 50, "only {ran} commands were run");
}
