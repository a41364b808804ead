//! Every Rust file opens with a `//!` sentence that says what it is for.

use super::Violation;
use crate::tree::File;

pub(super) fn violations(file: &File) -> Option<Violation> {
    if !file.is_rust() || sentence(&file.text).is_some() {
        return None;
    }
    Some(Violation {
        rule: "opening",
        place: file.path.clone(),
        fault: "does not open with a `//!` sentence".to_owned(),
        remedy: "say on its first line what the file is for".to_owned(),
    })
}

/// The first sentence of the `//!` lines at the very top, or nothing when the file opens otherwise.
pub(crate) fn sentence(text: &str) -> Option<String> {
    let lines: Vec<&str> =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).take_while(|line| !line.is_empty()).collect();
    let paragraph = lines.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    let sentence = &paragraph[..end];
    sentence.contains(char::is_alphabetic).then(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    #[test]
    fn a_file_that_opens_with_anything_else_is_refused() {
        for text in [
            "",
            "\n//! Too late.\n",
            "use std::fs;\n//! Too late.\n",
            "// A plain remark.\n",
            "/// For an item.\n",
            "//!\n",
            "//! ---\n",
            "#![allow(unused)]\n//! After an attribute.\n",
        ] {
            assert!(violations(&file("crates/core/src/a.rs", text)).is_some(), "{text:?}");
        }
        assert!(violations(&file("crates/core/src/a.rs", "//! Opens well.\n")).is_none());
        assert!(violations(&file("README.md", "# Title\n")).is_none());
    }

    #[test]
    fn the_sentence_ends_at_its_stop_and_may_span_lines() {
        let text = "//! Reads v1.0 and\n//! v0.3 frames. Then more.\n//!\n//! Details.\n";
        assert_eq!(sentence(text).as_deref(), Some("Reads v1.0 and v0.3 frames."));
        assert_eq!(sentence("//! No stop\nfn f() {}").as_deref(), Some("No stop"));
    }
}
