//! Walks over the members of an object whose text is known to be JSON, without reading what is in them.

use std::borrow::Cow;

use memchr::memchr2;

/// The members of an object in the order they are written: names as they are meant, values as they are spelled. What is no
/// object has none, and what is no JSON ends where that shows.
pub fn members(object: &str) -> Members<'_> {
    Members { text: object, at: 0 }
}

/// The value of one member as it is spelled. Of members that are there twice the last counts.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object).filter(|(known, _)| known == name).last().map(|(_, value)| value)
}

/// The values of these members as they are spelled, `null` being none. Of members that are there twice the last counts.
pub fn pick<'a, const N: usize>(object: &'a str, names: [&str; N]) -> [Option<&'a str>; N] {
    let mut picked = [None; N];
    for (name, value) in members(object) {
        if let Some(place) = names.iter().position(|known| *known == name) {
            picked[place] = Some(value).filter(|value| *value != "null");
        }
    }
    picked
}

/// An iterator over the members of a JSON object: names, and values as they are spelled.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    /// Where the brace is that opens the object, and then what comes after the last value.
    at: usize,
}

impl<'a> Members<'a> {
    /// What comes after the members that were taken: nothing but a closing brace, if it was an object and that were all.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let before = past_space(bytes, self.at);
        if *bytes.get(before)? != if self.at == 0 { b'{' } else { b',' } {
            return None;
        }
        let quote = past_space(bytes, before + 1);
        if *bytes.get(quote)? != b'"' {
            return None;
        }
        let (name_end, escaped) = string_end(bytes, quote + 1)?;
        let name = match escaped {
            false => Cow::Borrowed(self.text.get(quote + 1..name_end - 1)?),
            true => Cow::Owned(serde_json::from_str(self.text.get(quote..name_end)?).ok()?),
        };
        let colon = past_space(bytes, name_end);
        if *bytes.get(colon)? != b':' {
            return None;
        }
        let start = past_space(bytes, colon + 1);
        let end = value_end(bytes, start)?;
        self.at = end;
        Some((name, self.text.get(start..end)?))
    }
}

fn past_space(bytes: &[u8], from: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    from + bytes.get(from..).map_or(0, |rest| rest.iter().take_while(space).count())
}

/// The place behind the string whose first character is at `from`, and whether there are escapes in it.
fn string_end(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    let first = quote_or_escape(bytes, from)?;
    let mut at = first;
    while bytes[at] != b'"' {
        at = quote_or_escape(bytes, at + 2)?;
    }
    Some((at + 1, at != first))
}

fn value_end(bytes: &[u8], from: usize) -> Option<usize> {
    match bytes.get(from)? {
        b'"' => string_end(bytes, from + 1).map(|(end, _)| end),
        b'{' | b'[' => nested_end(bytes, from),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            Some(from + bytes[from..].iter().position(ends).unwrap_or(bytes.len() - from))
        }
    }
}

fn nested_end(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut depth) = (from, 0_usize);
    loop {
        at += 1;
        match bytes.get(at - 1)? {
            b'"' => at = string_end(bytes, at)?.0,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
}

/// The place of the next quote or backslash. Most strings are short, so that calling for wide registers is not worth it at first.
pub fn quote_or_escape(bytes: &[u8], from: usize) -> Option<usize> {
    const NEAR: usize = 4;
    let mut at = from;
    for _ in 0..NEAR {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { break };
        let word = u64::from_le_bytes(*word);
        let hits = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ ESCAPES);
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|ahead| at + ahead)
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
const QUOTES: u64 = EACH * b'"' as u64;
const ESCAPES: u64 = EACH * b'\\' as u64;

/// The high bit of the first byte that is zero. Bits above it may be set for others.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(EACH) & !word & (EACH << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_however_they_are_written() {
        for (text, found) in [
            ("{}", vec![]),
            ("{ }", vec![]),
            ("[1]", vec![]),
            ("\"a\"", vec![]),
            (r#"{"a":1}"#, vec![("a", "1")]),
            (r#"{ "a" : 1 , "b" : [ {"}":"]"} , 2 ] }"#, vec![("a", "1"), ("b", r#"[ {"}":"]"} , 2 ]"#)]),
            (r#"{"\u0061\"":"x\\","b":{"c":"}\""},"d":null}"#, vec![("a\"", r#""x\\""#), ("b", r#"{"c":"}\""}"#), ("d", "null")]),
            ("{\"é€\":\"ü\",\"\":-1.5e3}", vec![("é€", "\"ü\""), ("", "-1.5e3")]),
            ("{\n\"a\":\ttrue\r\n}", vec![("a", "true")]),
        ] {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
            let walked: Vec<_> = members(text).collect();
            let walked: Vec<_> = walked.iter().map(|(name, value)| (&**name, *value)).collect();
            assert_eq!(walked, found, "{text}");
        }
        assert_eq!(member(r#"{"a":1,"b":2,"a":3}"#, "a"), Some("3"));
        assert_eq!(member(r#"{"a":1}"#, "b"), None);
        assert_eq!(
            pick(r#"{"a":1,"b":null,"\u0063":2,"a":[3],"d":4}"#, ["b", "c", "a", "e"]),
            [None, Some("2"), Some("[3]"), None]
        );
    }

    #[test]
    fn what_is_no_json_ends_somewhere() {
        let whole = r#"{"a":{"b":[1,"c\"",{}]},"é":"ü","d":nul,"e" 1,}"#;
        for cut in (0..=whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            assert!(members(&whole[..cut]).count() <= 5);
        }
        assert_eq!(members(r#"{"a":"b";"c":1}"#).count(), 1);
        for odd in ["{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\\", "{,", "{\"a\":]", "{\"a\":1]]", "{\"\\u00\":1}"] {
            assert!(members(odd).count() <= 1, "{odd}");
        }
    }

    #[test]
    fn the_end_of_a_string_is_found_wherever_it_is() {
        let slowly = |bytes: &[u8], from: usize| (from..bytes.len()).find(|at| matches!(bytes[*at], b'"' | b'\\'));
        for length in 0..80 {
            for place in 0..length {
                for (ends, filler) in [(b'"', b'!'), (b'\\', b'#'), (b'"', 0xa2), (b'\\', b']'), (b'"', 0x22 ^ 0x80), (b'\\', 0)]
                {
                    let mut bytes = vec![filler; length];
                    bytes[place] = ends;
                    for from in [0, place, place + 1, length] {
                        assert_eq!(quote_or_escape(&bytes, from), slowly(&bytes, from), "{bytes:?} from {from}");
                    }
                }
            }
        }
    }
}
