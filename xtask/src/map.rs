//! `cargo xtask map`: the tree of Rust files with the sentence each one opens with.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::check::opening;
use crate::tree::{self, File};

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    print!("{}", draw(&tree::read(root)?));
    Ok(ExitCode::SUCCESS)
}

fn draw(files: &[File]) -> String {
    let mut drawing = String::new();
    let mut open: Vec<&str> = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut names: Vec<&str> = file.path.split('/').collect();
        let name = names.pop().unwrap_or_default();
        let shared = open.iter().zip(&names).take_while(|(a, b)| a == b).count();
        for (depth, folder) in names.iter().enumerate().skip(shared) {
            drawing.push_str(&format!("{}{folder}/\n", "  ".repeat(depth)));
        }
        let indented = format!("{}{name}", "  ".repeat(names.len()));
        let sentence = opening::sentence(&file.text);
        let sentence = sentence.as_deref().unwrap_or("(says nothing)");
        drawing.push_str(&format!("{indented:<36} {sentence}\n"));
        open = names;
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_once_and_every_file_shows_its_sentence() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let drawing = draw(&[
            file("a/b/one.rs", "//! The first.\n"),
            file("a/b/two.rs", "fn main() {}\n"),
            file("a/notes.md", "# Notes"),
            file("c.rs", "//! The last,\n//! on two lines. And more.\n"),
        ]);
        let lines: Vec<_> = drawing.lines().collect();
        assert_eq!(lines[0], "a/");
        assert_eq!(lines[1], "  b/");
        assert!(lines[2].starts_with("    one.rs ") && lines[2].ends_with(" The first."));
        assert!(lines[3].starts_with("    two.rs ") && lines[3].ends_with("(says nothing)"));
        assert!(lines[4].starts_with("c.rs ") && lines[4].ends_with(" The last, on two lines."));
        assert_eq!(lines.len(), 5);
    }
}
