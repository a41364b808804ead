//! Reads dictionaries of structured field values (RFC 8941), strictly and within bounds.
//!
//! Stricter than the RFC in one point: a key that comes twice is refused, where the RFC lets the last one win.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::structured::{Bare, DictionaryMember, InnerList, Item, Parameters};

pub(super) const MOST_BYTES: usize = 8 * 1024;
const MOST_MEMBERS: usize = 16;
const MOST_ITEMS: usize = 64;
const MOST_PARAMETERS: usize = 16;

/// `None` for anything that is not exactly a dictionary.
pub(super) fn dictionary(text: &str) -> Option<Vec<(String, DictionaryMember)>> {
    if text.len() > MOST_BYTES || !text.is_ascii() {
        return None;
    }
    let mut reader = Reader { rest: text.trim_matches(' ').as_bytes() };
    let mut members = Vec::new();
    while !reader.rest.is_empty() {
        let key = reader.key()?;
        let member = if reader.take(b'=') {
            if reader.peek() == Some(b'(') {
                DictionaryMember::List(reader.inner_list()?)
            } else {
                DictionaryMember::Item(reader.item()?)
            }
        } else {
            DictionaryMember::Item(Item { value: Bare::Boolean(true), parameters: reader.parameters()? })
        };
        add(&mut members, key, member, MOST_MEMBERS)?;
        reader.skip(b" \t");
        if reader.rest.is_empty() {
            break;
        }
        reader.expect(b',')?;
        reader.skip(b" \t");
        if reader.rest.is_empty() {
            return None;
        }
    }
    Some(members)
}

fn add<T>(to: &mut Vec<(String, T)>, key: String, value: T, most: usize) -> Option<()> {
    if to.len() == most || to.iter().any(|(known, _)| *known == key) {
        return None;
    }
    to.push((key, value));
    Some(())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.next();
        }
        there
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.span(|byte| bytes.contains(&byte));
    }

    fn span(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !belongs(*byte)).unwrap_or(self.rest.len());
        let (span, rest) = self.rest.split_at(end);
        self.rest = rest;
        span
    }

    fn key(&mut self) -> Option<String> {
        if !matches!(self.peek()?, b'a'..=b'z' | b'*') {
            return None;
        }
        let key = self.span(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'));
        text(key)
    }

    fn inner_list(&mut self) -> Option<InnerList> {
        self.expect(b'(')?;
        let mut items = Vec::new();
        loop {
            self.skip(b" ");
            if self.take(b')') {
                return Some(InnerList { items, parameters: self.parameters()? });
            }
            if items.len() == MOST_ITEMS {
                return None;
            }
            items.push(self.item()?);
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn item(&mut self) -> Option<Item> {
        Some(Item { value: self.bare()?, parameters: self.parameters()? })
    }

    fn parameters(&mut self) -> Option<Parameters> {
        let mut parameters = Vec::new();
        while self.take(b';') {
            self.skip(b" ");
            let key = self.key()?;
            let value = if self.take(b'=') { self.bare()? } else { Bare::Boolean(true) };
            add(&mut parameters, key, value, MOST_PARAMETERS)?;
        }
        Some(parameters)
    }

    fn bare(&mut self) -> Option<Bare> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b':' => self.bytes(),
            b'?' => {
                self.next();
                match self.next()? {
                    b'0' => Some(Bare::Boolean(false)),
                    b'1' => Some(Bare::Boolean(true)),
                    _ => None,
                }
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
                let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                text(self.span(letter)).map(Bare::Token)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Bare> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        let whole = self.span(|byte| byte.is_ascii_digit());
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i64>().ok();
        if !self.take(b'.') {
            return (1..=15).contains(&whole.len()).then(|| number(whole)).flatten().map(|number| Bare::Integer(sign * number));
        }
        let fraction = self.span(|byte| byte.is_ascii_digit());
        if !(1..=12).contains(&whole.len()) || !(1..=3).contains(&fraction.len()) {
            return None;
        }
        let thousandths = number(fraction)? * [100, 10, 1][fraction.len() - 1];
        Some(Bare::Decimal(sign * (number(whole)? * 1_000 + thousandths)))
    }

    fn string(&mut self) -> Option<Bare> {
        self.expect(b'"')?;
        let mut string = String::new();
        loop {
            match self.next()? {
                b'"' => return Some(Bare::Text(string)),
                b'\\' => match self.next()? {
                    escaped @ (b'"' | b'\\') => string.push(char::from(escaped)),
                    _ => return None,
                },
                byte @ 0x20..=0x7e => string.push(char::from(byte)),
                _ => return None,
            }
        }
    }

    fn bytes(&mut self) -> Option<Bare> {
        self.expect(b':')?;
        let encoded = self.span(|byte| byte != b':');
        self.expect(b':')?;
        STANDARD.decode(encoded).ok().map(Bare::Bytes)
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Option<String> {
        let members = dictionary(text)?.into_iter().map(|(key, member)| match member {
            DictionaryMember::Item(item) => format!("{key}={item}"),
            DictionaryMember::List(list) => format!("{key}={list}"),
        });
        Some(members.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn every_kind_of_value_is_read_and_written_canonically() {
        let text = r#"  a=( "x"  tok;p=1.50 ) ;created=-12;s="q\"\\",b,  c=?0;n ,d=:aGk=:"#;
        // No space is allowed between a list and its parameters.
        assert_eq!(shown(text), None);
        let text = text.replace(") ;", ");");
        assert_eq!(shown(&text).unwrap(), r#"a=("x" tok;p=1.5);created=-12;s="q\"\\", b=?1, c=?0;n, d=:aGk=:"#);
        assert_eq!(dictionary("").unwrap(), []);
    }

    #[test]
    fn what_is_not_to_the_letter_is_refused() {
        for bad in [
            "a=1,",
            ",a=1",
            "a=1,,b=1",
            "a=1 b=2",
            "A=1",
            "a=(1",
            "a=(1)(2)",
            "a=(1,2)",
            "a=((1))",
            "a=\"x",
            "a=\"\\x\"",
            "a=\"é\"",
            "a=:x:",
            "a=:aGk:",
            "a=:aGk=",
            "a=?2",
            "a=1.",
            "a=1.0000",
            "a=1234567890123456",
            "a=--1",
            "a=-",
            "a;",
            "a;=1",
            "a=1;P",
            "a=1, a=2",
            "a;x;x",
            "a=@1",
            "a=",
            "\u{7f}",
            "a=\"\u{1}\"",
            "a=1\n",
        ] {
            assert_eq!(shown(bad), None, "{bad:?}");
        }
        let many = |count: usize| (0..count).map(|number| format!("a{number}=1")).collect::<Vec<_>>().join(",");
        assert!(dictionary(&many(MOST_MEMBERS)).is_some());
        assert!(dictionary(&many(MOST_MEMBERS + 1)).is_none());
        assert!(dictionary(&format!("a=({})", "1 ".repeat(MOST_ITEMS))).is_some());
        assert!(dictionary(&format!("a=({})", "1 ".repeat(MOST_ITEMS + 1))).is_none());
        assert!(dictionary(&format!("a=\"{}\"", "x".repeat(MOST_BYTES))).is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
            let _ = dictionary(&text);
        }

        #[test]
        fn what_is_read_is_read_again_from_what_is_written(text in r#"[a-c=();:?"0-9., \\\-]{0,40}"#) {
            if let Some(once) = shown(&text) {
                prop_assert_eq!(shown(&once), Some(once));
            }
        }
    }
}
