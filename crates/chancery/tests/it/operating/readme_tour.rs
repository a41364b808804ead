//! The tour of the README, run with the built binary: each block is a terminal, and its lines are read from the README itself. The
//! output that the README shows of the demo is compared with a run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::documents::{Block, blocks};
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Server, Setup};

/// The headings of the tour, with what each of them must print.
const TOUR: [(&str, &[&str]); 4] = [
    ("## Run it: a node and an answer", &["hello", "TASK_STATE_COMPLETED", "completed", "signature     valid"]),
    ("## Your agent behind it", &["chunk", "which one?", "chancery send --task", "JSONRPC"]),
    ("## Require credentials", &["hello", "completed"]),
    ("## Configure it", &["chancery.toml"]),
];

/// The address of the reader's agent in the README, and the URL on this machine.
const AGENT: (&str, &str) = ("127.0.0.1:9999", "http://localhost:9999");

/// A URL in the README that stands for one of the reader, which the test cannot call.
const ANY_URL: &str = "https://agent.example.org";

/// The shell blocks below a heading, in order.
fn blocks_below(heading: &str) -> Vec<Block> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&readme).expect("the README can be read");
    let line_of = |wanted: &dyn Fn(&str) -> bool, from: usize| {
        text.lines().enumerate().skip(from).find(|(_, line)| wanted(line)).map(|(number, _)| number + 1)
    };
    let start = line_of(&|line| line == heading, 0).unwrap_or_else(|| panic!("the README has no {heading}"));
    let end = line_of(&|line| line.starts_with("## "), start).unwrap_or(usize::MAX);
    let below = blocks(&readme).into_iter().filter(|block| (start..end).contains(&block.line) && block.language == "sh");
    below.collect()
}

/// Runs lines as one terminal of the reader would, and answers what they print.
fn in_a_terminal(home: &Home, lines: &[String]) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_chancery")).parent().expect("the binary is in a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").expect("there is a PATH"));
    let reader = home.command();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-e", "-c", &lines.join("\n")]).env("PATH", path).env("HOME", home.path()).current_dir(home.path());
    for (name, _) in reader.get_envs().filter(|(_, value)| value.is_none()) {
        shell.env_remove(name);
    }
    let ran = Ran::of(shell.env_remove("CHANCERY_KEY"));
    assert_eq!(ran.code, Some(0), "{lines:#?}\n{}\n{}", ran.stdout, ran.stderr);
    ran.stdout + &ran.stderr
}

/// Starts the node of a `serve` line, at a free port instead of the one it has or of the default one.
fn serve(home: &Home, line: &str) -> Server {
    let line = line.replace(&format!("--listen {}", AGENT.0), "");
    let arguments: Vec<&str> = line.split_whitespace().skip(1).filter(|word| *word != "serve").collect();
    Setup::at(home, "127.0.0.1:0").args(arguments).start()
}

fn without_remark(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(command, _)| command).trim()
}

#[test]
fn the_tour_of_the_readme_works_as_it_is_written() {
    let home = Home::new();
    let mut commands = 0;
    for (heading, expected) in TOUR {
        let (mut printed, mut node) = (String::new(), None);
        let blocks: Vec<Vec<String>> = blocks_below(heading).iter().map(lines_of).collect();
        let agent = blocks.iter().flatten().find(|line| line.contains(AGENT.0) && line.contains(" serve"));
        let agent = agent.map(|line| serve(&home, line));
        let of_agent = |line: &str| agent.as_ref().map_or(line.to_owned(), |agent| line.replace(AGENT.1, agent.url()));
        for block in blocks {
            let mut lines = Vec::new();
            for line in block.into_iter().filter(|line| !line.contains(AGENT.0)).map(|line| of_agent(&line)) {
                commands += 1;
                if line.contains(" serve") {
                    printed += &in_a_terminal(&home, &std::mem::take(&mut lines));
                    assert!(node.is_none(), "{heading}: `serve` keeps its terminal, and the port of the first node");
                    let server = serve(&home, &line);
                    if !line.contains("--data") {
                        printed += &in_a_terminal(&home, &[server.curl().to_owned()]);
                    }
                    node = Some(server);
                } else {
                    assert!(!line.contains("--listen"), "{heading}: no command needs a port");
                    lines.push(line.replace(" ID", &format!(" {}", task(&home))));
                }
            }
            printed += &in_a_terminal(&home, &lines);
        }
        for words in expected {
            assert!(printed.contains(words), "{heading} prints no {words}:\n{printed}");
        }
    }
    assert!(commands >= 12, "only {commands} commands were found");
}

/// The commands of a block, without remarks.
fn lines_of(block: &Block) -> Vec<String> {
    let lines = block.text.lines().map(without_remark).filter(|line| !line.is_empty() && !line.contains(ANY_URL));
    lines.map(str::to_owned).collect()
}

/// A line without its amounts of money, and without the bar of a budget, which depend on the moment of a fan-out.
fn without_amounts(line: &str) -> String {
    let words = line.split_whitespace().filter(|word| !word.starts_with(['$', '[']) && !word.starts_with("http"));
    words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_demo_prints_the_lines_that_the_readme_shows_in_their_order() {
    let home = Home::new();
    let demo = run(&home, ["demo"]);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let shown = blocks(&readme).into_iter().find(|block| block.text.starts_with("The control plane is at"));
    let shown = shown.expect("the README shows the output of the demo").text;
    let mut printed = demo.stdout.lines().map(without_amounts);
    for line in shown.lines().map(without_amounts).filter(|line| !line.is_empty() && line != "…") {
        assert!(printed.any(|one| one == line), "the demo does not print {line:?} here:\n{}", demo.stdout);
    }
}

/// The id of the newest task of the node that runs in the home, or `ID` before there is one.
fn task(home: &Home) -> String {
    let listed = run(home, ["tasks", "ls", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    listed["tasks"][0]["id"].as_str().unwrap_or("ID").to_owned()
}
