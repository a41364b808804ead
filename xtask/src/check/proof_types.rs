//! Types that only one step can make stay closed: their fields are private, and no other file writes one as a literal.

use super::Violation;
use super::rust_text::{block_end, code_only};
use crate::tree::File;

/// A type, the files that may make one, and what to use elsewhere.
struct ProofType {
    name: &'static str,
    made_in: &'static [&'static str],
    /// Whether its fields are private too. A context is read by everybody.
    closed: bool,
    remedy: &'static str,
}

const PROOF_TYPES: [ProofType; 5] = [
    step("Traced", &["crates/core/src/trace.rs"]),
    step("Admitted", &["crates/core/src/admit.rs"]),
    step("Routed", &["crates/core/src/route.rs"]),
    step("Permitted", &["crates/core/src/permit.rs"]),
    ProofType {
        name: "CallContext",
        made_in: &[
            "crates/protocol/src/call.rs",
            "crates/inbound/src/context.rs",
            "crates/core/src/delegate.rs",
            "crates/chancery/src/executor.rs",
        ],
        closed: false,
        remedy: "make it with `Draft::context`, which settles the tenant",
    },
];

const fn step(name: &'static str, made_in: &'static [&'static str]) -> ProofType {
    ProofType { name, made_in, closed: true, remedy: "let the step that makes it offer a method" }
}

pub(super) fn violations(file: &File) -> Vec<Violation> {
    let names: Vec<&str> = file.path.split('/').collect();
    let is_source = matches!(names[..], ["crates", crate_name, "src", ..] if crate_name != "testkit");
    if !is_source || !file.path.ends_with(".rs") || names.contains(&"tests") || file.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let code = code_only(&file.text);
    PROOF_TYPES.iter().flat_map(|proof| of_type(file, &code, proof)).collect()
}

fn of_type(file: &File, code: &str, proof: &ProofType) -> Vec<Violation> {
    let is_its_own = proof.made_in.contains(&file.path.as_str());
    let mut found = Vec::new();
    for (at, _) in code.match_indices(proof.name).filter(|(at, _)| is_word(code, *at, proof.name) && !is_variant(code, *at)) {
        let place = format!("{}:{}", file.path, code[..at].matches('\n').count() + 1);
        let violation = |fault: String| Violation { rule: "proof types", place, fault, remedy: proof.remedy.to_owned() };
        let after = code[at + proof.name.len()..].trim_start();
        let Some(open) = after.starts_with('{').then(|| code.len() - after.len()) else { continue };
        match introduced_by(code, at) {
            "struct" => {
                let end = block_end(code.as_bytes(), open).unwrap_or(code.len());
                let body = &code[open..end];
                if proof.closed && body.split([',', '{', '\n']).any(|field| is_public(field.trim_start())) {
                    found.push(violation(format!("{} has a field that others can write", proof.name)));
                }
            }
            // The type of a block that follows, not a value.
            "impl" | "for" | "->" => {}
            // A context with one field replaced has the tenant it had.
            _ if !proof.closed && takes_over_the_rest(code, open) => {}
            _ if !is_its_own => found.push(violation(format!("{} is written as a literal outside its file", proof.name))),
            _ => {}
        }
    }
    found
}

fn is_public(field: &str) -> bool {
    field.starts_with("pub ") || field.starts_with("pub(")
}

fn is_word(code: &str, at: usize, name: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = code.as_bytes();
    !part(at.checked_sub(1).and_then(|before| bytes.get(before))) && !part(bytes.get(at + name.len()))
}

/// The word before a name and before the signs of a reference to it.
fn introduced_by(code: &str, at: usize) -> &str {
    let mut words = code[..at].split_whitespace().rev().map(|word| word.trim_end_matches('&'));
    words.find(|word| !matches!(*word, "" | "mut" | "&mut")).unwrap_or_default()
}

/// Whether the name is that of an enum's variant.
fn is_variant(code: &str, at: usize) -> bool {
    let owner = code[..at].strip_suffix("::").map(|before| before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
    owner.flatten().is_some_and(|owner| owner.starts_with(char::is_uppercase))
}

/// Whether a literal takes its other fields from another value of the type.
fn takes_over_the_rest(code: &str, open: usize) -> bool {
    let end = block_end(code.as_bytes(), open).unwrap_or(code.len());
    code[open..end].contains("..")
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        violations(&file(path, text)).into_iter().map(|found| format!("{}: {}", found.place, found.fault)).collect()
    }

    #[test]
    fn a_proof_type_with_a_public_field_is_refused_and_one_with_private_fields_is_not() {
        let open = "pub(crate) struct Admitted {\n    reservation: R,\n    pub(crate) kinship: K,\n}\n";
        let found = faults("crates/core/src/admit.rs", open);
        assert_eq!(found, ["crates/core/src/admit.rs:1: Admitted has a field that others can write"]);
        let closed = "pub(crate) struct Admitted {\n    publisher: R,\n}\nimpl Admitted {\n    pub(crate) fn of() -> Admitted { Admitted { publisher } }\n}\n";
        assert!(faults("crates/core/src/admit.rs", closed).is_empty());
    }

    #[test]
    fn a_literal_outside_its_file_is_refused_also_as_a_pattern() {
        let text =
            "fn f(routed: Routed) -> Permitted {\n    let Routed { admitted, .. } = routed;\n    Permitted { admitted }\n}\n";
        assert_eq!(faults("crates/core/src/send.rs", text).len(), 2);
        assert_eq!(faults("crates/core/src/route.rs", text).len(), 1, "its own may, the other may not");
        assert!(faults("crates/core/src/send/tests.rs", text).is_empty());
        assert!(faults("crates/core/src/a.rs", "struct NotRouted { a: u8 }\n// Routed { }\n").is_empty());
        let others = "fn f(&self) -> &mut Routed {\n    if a == Kind::Traced { &mut b } else { &mut c }\n}\n";
        assert!(faults("crates/core/src/a.rs", others).is_empty(), "a reference, and a variant of that name");
    }

    #[test]
    fn a_context_is_made_whole_only_where_its_tenant_is_settled() {
        let text = "fn f() -> C {\n    CallContext { version, caller }\n}\n";
        assert_eq!(faults("crates/inbound/src/listening.rs", text).len(), 1);
        assert!(faults("crates/inbound/src/context.rs", text).is_empty());
        let changed = "fn f(context: CallContext) -> C {\n    CallContext { wrapped, ..context }\n}\n";
        assert!(faults("crates/inbound/src/json_rpc.rs", changed).is_empty());
    }
}
