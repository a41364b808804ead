//! Every command and every config in the README and in `docs` is one that the binary accepts. `readme_tour.rs` and `run_documents.rs` also run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words in commands that stand for a value, where the command line checks the value's form.
pub(super) const PLACEHOLDERS: [(&str, &str); 2] =
    [("LANE", "7"), ("AGENT_ID", "6f1c0a5d3e9b8c7f6f1c0a5d3e9b8c7f6f1c0a5d3e9b8c7f6f1c0a5d3e9b8c7f")];

/// A fenced block: its language, the line of its first line, and its text.
pub(super) struct Block {
    pub(super) language: String,
    pub(super) line: usize,
    pub(super) text: String,
}

pub(super) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be listed") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

pub(super) fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).expect("the page can be read");
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { language: language.to_owned(), line: number + 2, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The arguments of a `chancery` command in a line of a shell block. A line with `[` or `|` shows a syntax and is no command.
pub(super) fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let line = match line.split_once("=$(") {
        Some((_, inside)) => inside.split_once(')')?.0,
        None => line,
    };
    let command = line.strip_prefix("chancery ")?;
    let command = command.split_once(" #").map_or(command, |(command, _)| command);
    let command = command.split_once(" > ").map_or(command, |(command, _)| command);
    if command.contains(['[', '|']) && !command.contains('\'') {
        return None;
    }
    let mut arguments = vec![String::new()];
    let mut quote = None;
    for c in command.trim().chars() {
        let last = arguments.last_mut()?;
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') if !last.is_empty() => arguments.push(String::new()),
            (None, ' ') => {}
            (_, c) => last.push(c),
        }
    }
    let value = |argument: String| {
        let known = PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == argument);
        known.map_or(argument, |(_, value)| (*value).to_owned())
    };
    Some(arguments.into_iter().map(value).collect())
}

#[test]
fn every_command_in_the_documents_is_one_of_the_command_line() {
    let mut tried = 0;
    let mut faults = Vec::new();
    for page in pages() {
        for block in blocks(&page).iter().filter(|block| matches!(block.language.as_str(), "sh" | "")) {
            for (offset, line) in block.text.lines().enumerate() {
                let Some(arguments) = arguments(line) else { continue };
                tried += 1;
                // With `--help` behind them all arguments are parsed and nothing is carried out.
                let chancery = Command::new(env!("CARGO_BIN_EXE_chancery")).args(&arguments).arg("--help").output();
                let output = chancery.expect("the binary runs");
                if !output.status.success() {
                    let fault = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
                    faults.push(format!("{}:{}: {line}\n    {fault}", page.display(), block.line + offset));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(tried >= 80, "only {tried} commands were found");
}

/// Pages whose Rust code is run by itself (`documents` in `src/lib.rs`).
const RUN_AS_TESTS: [&str; 3] = ["embedding.md", "push-receivers.md", "tool-parts.md"];

#[test]
fn rust_code_in_the_documents_is_code_that_compiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources =
        ["examples/mount.rs", "src/lib.rs"].map(|source| fs::read_to_string(root.join(source)).expect("it can be read"));
    let compiled = sources.concat().replace("//! ", "");
    let mut compared = 0;
    for page in pages().into_iter().filter(|page| !RUN_AS_TESTS.iter().any(|name| page.ends_with(name))) {
        for block in blocks(&page).iter().filter(|block| block.language == "rust") {
            compared += 1;
            let place = format!("{}:{}", page.display(), block.line);
            assert!(
                compiled.contains(block.text.trim_end()),
                "{place}: this code is neither in examples/mount.rs nor in src/lib.rs"
            );
        }
    }
    assert!(compared >= 2, "only {compared} blocks were found");
}

#[test]
fn every_config_in_the_documents_is_valid() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let file = folder.path().join("chancery.toml");
    let mut tried = 0;
    let mut faults = Vec::new();
    for page in pages() {
        for block in blocks(&page).iter().filter(|block| block.language == "toml") {
            if block.text.starts_with("[dependencies]") {
                continue; // a Cargo manifest
            }
            tried += 1;
            fs::write(&file, &block.text).expect("the config can be written");
            let mut chancery = Command::new(env!("CARGO_BIN_EXE_chancery"));
            let output = chancery.args(["validate", "--offline", "--unknown-ok"]).arg(&file).output().expect("the binary runs");
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                faults.push(format!("{}:{}:\n{}", page.display(), block.line, String::from_utf8_lossy(&said)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(tried >= 12, "only {tried} configs were found");
}

#[test]
fn commands_are_found_with_their_quotes_and_without_their_remarks() {
    let found = |line: &str| arguments(line).map(|words| words.join("~"));
    assert_eq!(found("chancery send 'a b' --x=\"c d\"   # says it"), Some("send~a b~--x=c d".to_owned()));
    assert_eq!(found("chancery callers add me > me.key   # once"), Some("callers~add~me".to_owned()));
    assert_eq!(found("$ chancery push show LANE"), Some("push~show~7".to_owned()));
    assert_eq!(found("export KEY=$(chancery callers add me)   # shown once"), Some("callers~add~me".to_owned()));
    assert_eq!(found("chancery push ls [ORIGIN|LANE]"), None);
    assert_eq!(found("curl -s http://127.0.0.1:7420/readyz"), None);
}
