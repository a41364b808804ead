//! The shape of a text: what is left when every string and number is replaced by its length.

/// More of an outline is not kept.
const OUTLINE_BYTES: usize = 512;
/// Longer names are likely content, and replaced by their length too.
const NAME_BYTES: usize = 40;

/// The shape of a text, whether it is JSON or not. Names of members stay as they are.
pub(super) fn outline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if out.len() >= OUTLINE_BYTES {
            break;
        }
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ':' | ',' => {
                out.push(first);
                1
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let end = rest.find(|one: char| "{}[]:,\"".contains(one) || one.is_whitespace()).unwrap_or(rest.len());
                match &rest[..end] {
                    word @ ("true" | "false" | "null") => out.push_str(word),
                    other => out.push_str(&other.chars().count().to_string()),
                }
                end
            }
        };
        if first == '"' {
            let content = rest[1..length].strip_suffix('"').unwrap_or(&rest[1..length]);
            let is_name = rest[length..].trim_start().starts_with(':') && is_name(content);
            out.push('"');
            if is_name {
                out.push_str(content);
            } else {
                out.push_str(&content.chars().count().to_string());
            }
            out.push('"');
        }
        rest = &rest[length..];
    }
    // A name may have run over the limit. Everything in an outline that is cut here is ASCII.
    out.truncate(OUTLINE_BYTES);
    out
}

/// The bytes of the string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

pub(super) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$/".contains(&byte);
    !text.is_empty() && text.len() <= NAME_BYTES && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_become_their_lengths() {
        let text = r#"{ "wat": "se\"cret", "n":-12.5, "list":[true, null, {"a b":"é"}] }"#;
        assert_eq!(outline(text), r#"{"wat":"8","n":5,"list":[true,null,{"3":"1"}]}"#);
    }

    #[test]
    fn what_is_no_json_is_its_lengths_too() {
        assert_eq!(outline("<html>\nsecret page"), "664");
        assert_eq!(outline(r#"{"a":"unfinished"#), r#"{"a":"10""#);
        assert_eq!(outline("\"\\"), "\"1\"");
        assert_eq!(outline(""), "");
    }

    #[test]
    fn an_outline_is_never_longer_than_its_limit() {
        assert_eq!(outline(&"{\"name\":".repeat(1_000)).len(), OUTLINE_BYTES);
        assert_eq!(outline(&"[".repeat(OUTLINE_BYTES)).len(), OUTLINE_BYTES);
    }
}
