//! The code blocks of a document, and the marked regions of the files that run them.

/// What stands above a block and names the file it is from.
const SOURCE: &str = "<!-- from ";

/// Every fenced Python block of `document` with the file that the comment above it names; `None` without such a comment.
pub(crate) fn blocks(document: &str) -> Vec<(Option<&str>, String)> {
    let mut found = Vec::new();
    let mut above = None;
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```python") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
            found.push((above.take(), body.join("\n")));
        } else if !line.trim().is_empty() {
            above = line.strip_prefix(SOURCE).and_then(|rest| rest.strip_suffix(" -->"));
        }
    }
    found
}

/// The lines of `source` between `# docs: NAME` and `# docs: end`, each region at the left margin, a blank line between two.
pub(crate) fn marked(source: &str) -> String {
    let mut found: Vec<String> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.trim_start().strip_prefix("# docs: ") else { continue };
        assert_ne!(name, "end", "a region ends that never began");
        let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim_start() != "# docs: end").collect();
        let indented = |line: &&&str| !line.trim().is_empty();
        let margin = body.iter().filter(indented).map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        found.push(body.iter().map(|line| line.get(margin..).unwrap_or("")).collect::<Vec<_>>().join("\n"));
    }
    found.join("\n\n")
}
