//! Just enough of Rust's lexical rules to measure functions: text with comments and literals blanked, and where functions lie.

/// The same text, line for line and byte for byte as long, with comments, strings and characters turned into spaces, so that
/// every brace and word left is code.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_or_comment(bytes, at);
        if end > at {
            for byte in code[at..end].iter_mut().filter(|byte| **byte != b'\n') {
                *byte = b' ';
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the comment or literal that starts at `at` ends, or `at` when none does.
fn literal_or_comment(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    if rest[0] == b'"' {
        return at + 1 + quoted(&rest[1..], b'"');
    }
    if rest[0] == b'\'' {
        return at + character(rest);
    }
    let inside_a_word = at > 0 && is_word(bytes[at - 1]);
    if rest[0] == b'r' && (!inside_a_word || matches!(bytes[at - 1], b'b' | b'c')) {
        return at + raw_string(rest);
    }
    at
}

/// A string literal: where its body starts, the body as it is written, and whether its escapes stand for themselves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StringLiteral<'a> {
    pub at: usize,
    pub body: &'a str,
    pub raw: bool,
}

/// Every string literal of the text, in order.
pub(super) fn strings(text: &str) -> Vec<StringLiteral<'_>> {
    let bytes = text.as_bytes();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_or_comment(bytes, at);
        let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
        let edges = match bytes[at] {
            b'"' => Some((1, 1)),
            b'r' => Some((2 + hashes, 1 + hashes)),
            _ => None,
        };
        if let Some(body) =
            edges.and_then(|(before, behind)| text.get(at + before..end.checked_sub(behind)?).map(|body| (at + before, body)))
        {
            strings.push(StringLiteral { at: body.0, body: body.1, raw: bytes[at] == b'r' });
        }
        at = end.max(at + 1);
    }
    strings
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length up to and including the closing quote.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal; zero for a lifetime.
fn character(rest: &[u8]) -> usize {
    let is_literal = match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) if !byte.is_ascii() => true,
        Some(_) => rest.get(2) == Some(&b'\''),
        None => false,
    };
    if is_literal { 1 + quoted(&rest[1..], b'\'') } else { 0 }
}

/// The length of a raw string; zero for anything else that starts with `r`.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let closing = [b"\"", vec![b'#'; hashes].as_slice()].concat();
    let body = &rest[2 + hashes..];
    let end = body.windows(closing.len()).position(|window| window == closing);
    end.map_or(rest.len(), |end| 2 + hashes + end + closing.len())
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// A function with a body: its name, the line of its `fn`, and how many lines it covers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// Every function in text that [`code_only`] has blanked, nested ones included.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let line_of = |at: usize| bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String = code[at + 3..].trim_start().chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect();
        if name.is_empty() {
            continue;
        }
        if let Some(end) = body_start(bytes, at).and_then(|start| block_end(bytes, start)) {
            functions.push(Function { name, line: line_of(at), lines: line_of(end) - line_of(at) + 1 });
        }
    }
    functions
}

/// The brace that opens the body, or nothing for a declaration that ends in a semicolon.
fn body_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The brace that closes the block opened at `start`.
pub(super) fn block_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> Vec<(String, usize, usize)> {
        let found = functions(&code_only(text)).into_iter();
        found.map(|f| (f.name, f.line, f.lines)).collect()
    }

    #[test]
    fn braces_in_comments_and_literals_do_not_count() {
        let text = r####"fn f<'a>(x: &'a str) {
    // }
    /* } /* } */ } */
    let a = "}\"}";
    let b = r#"}"}"#;
    let c = '}';
    let d = '\'';
    let e = br"}";
    let f = b'}';
    let r = 'é';
}
"####;
        assert_eq!(measured(text), [("f".to_owned(), 1, 11)]);
        assert_eq!(code_only(text).len(), text.len());
    }

    #[test]
    fn strings_are_found_raw_or_not_and_not_in_comments_or_characters() {
        let text = "// \"a\"\nlet a = \"b \\\" c\"; let d = '\"'; let e = br#\"f \"g\" \\n\"#; let r = 1; for x in \"\" {}";
        let found: Vec<_> = strings(text).into_iter().map(|found| (found.body, found.raw)).collect();
        assert_eq!(found, [("b \\\" c", false), ("f \"g\" \\n", true), ("", false)]);
        assert!(strings(text).iter().all(|found| text[found.at..].starts_with(found.body)));
    }

    #[test]
    fn a_declaration_has_no_length_and_a_nested_function_has_its_own() {
        let text = "trait T {\n    fn declared(&self) -> [u8; 4];\n}\nfn outer() {\n    fn inner() {\n    }\n}\n";
        assert_eq!(measured(text), [("outer".to_owned(), 4, 4), ("inner".to_owned(), 5, 2)]);
    }

    #[test]
    fn function_types_and_words_that_end_in_fn_are_not_functions() {
        assert_eq!(measured("type F = fn (u8) -> u8;\nlet often = myfn ;\n"), []);
    }

    #[test]
    fn a_signature_over_several_lines_counts_from_its_first() {
        let text = "pub async fn send(\n    a: u8,\n    b: [u8; 2],\n) -> u8\nwhere\n    u8: Copy,\n{\n    a\n}\n";
        assert_eq!(measured(text), [("send".to_owned(), 1, 9)]);
    }
}
