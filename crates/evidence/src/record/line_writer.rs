//! Writes lines of the record in its shorthand. Its users write the members of each object in the order of
//! their names, so that the expanded lines are canonical JSON (RFC 8785). Numbers beyond 2^53 - 1 are written
//! as text.

use chancery_core::{RecordLines, Rule};
use chancery_identity::strict_json::MAX_SAFE_INTEGER;
use chancery_protocol::{Timestamp, TraceId};

use super::Hash;
use super::shorthand::{
    DASHES, DIGEST, END, FACTS, FACTS_PASSED, FALSE, LIST, LIST_END, NAMES, NUMBER, OBJECT, OBJECT_END, PASSED, SIGNED, STRING,
    TRACE, TRUE, UUID, VALUES,
};
use super::words::{Kind, Name, Value};

#[derive(Debug, Default)]
pub(super) struct LineWriter {
    lines: Vec<u8>,
}

impl LineWriter {
    pub(super) fn with_room(bytes: usize) -> Self {
        Self { lines: Vec::with_capacity(bytes) }
    }

    pub(super) fn into_lines(self) -> RecordLines {
        RecordLines(self.lines)
    }

    pub(super) fn line(&mut self, at: Timestamp, kind: Kind, data: impl FnOnce(&mut Self)) {
        self.lines.extend_from_slice(&at.micros().to_be_bytes());
        data(self);
        self.lines.extend_from_slice(&[END, kind as u8]);
    }

    /// The name of a member. Its value comes next.
    pub(super) fn name(&mut self, name: Name) -> &mut Self {
        self.lines.push(NAMES + name as u8);
        self
    }

    pub(super) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.lines.push(OBJECT);
        members(self);
        self.lines.push(OBJECT_END);
    }

    pub(super) fn list(&mut self, values: impl FnOnce(&mut Self)) {
        self.lines.push(LIST);
        values(self);
        self.lines.push(LIST_END);
    }

    /// What a rule that passed is remembered by, with the facts it rests on if there are any.
    pub(super) fn passed(&mut self, rule: Rule, facts: Option<impl FnOnce(&mut Self)>) {
        let rule = Value::from(rule) as u8;
        match facts {
            None => self.lines.push(PASSED + rule),
            Some(facts) => {
                self.lines.push(FACTS);
                facts(self);
                self.lines.push(FACTS_PASSED + rule);
            }
        }
    }

    pub(super) fn value(&mut self, value: Value) {
        self.lines.push(VALUES + value as u8);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.lines.push(if flag { TRUE } else { FALSE });
    }

    pub(super) fn number(&mut self, number: u64) {
        if number > MAX_SAFE_INTEGER {
            return self.text(&number.to_string());
        }
        self.lines.push(NUMBER);
        self.length(number);
    }

    pub(super) fn time(&mut self, at: Timestamp) {
        self.lines.push(SIGNED);
        self.lines.extend_from_slice(&at.micros().to_be_bytes());
    }

    pub(super) fn digest(&mut self, digest: &Hash) {
        self.lines.push(DIGEST);
        self.lines.extend_from_slice(digest);
    }

    pub(super) fn trace(&mut self, trace: TraceId) {
        self.lines.push(TRACE);
        self.lines.extend_from_slice(&trace.0.to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        if text.bytes().any(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')) {
            let quoted = serde_json::Value::from(text).to_string();
            self.escaped(&quoted.as_bytes()[1..quoted.len() - 1]);
        } else {
            self.escaped(text.as_bytes());
        }
    }

    /// A text that is a UUID more often than not.
    pub(super) fn id(&mut self, id: &str) {
        match uuid_of(id.as_bytes()) {
            Some(bytes) => {
                self.lines.push(UUID);
                self.lines.extend_from_slice(&bytes);
            }
            None => self.text(id),
        }
    }

    fn escaped(&mut self, text: &[u8]) {
        self.lines.push(STRING);
        self.length(text.len() as u64);
        self.lines.extend_from_slice(text);
    }

    fn length(&mut self, mut number: u64) {
        while number > 127 {
            self.lines.push(number as u8 | 128);
            number >>= 7;
        }
        self.lines.push(number as u8);
    }
}

/// What a hex digit in lower case stands for; 255 for all else.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

/// Only of one that is written as it would be written again.
fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.try_into().ok()?;
    let (mut bytes, mut at, mut wrong) = ([0; 16], 0, 0);
    for (place, byte) in bytes.iter_mut().enumerate() {
        if DASHES.contains(&place) {
            wrong |= text[at] ^ b'-';
            at += 1;
        }
        let (high, low) = (DIGITS[usize::from(text[at])], DIGITS[usize::from(text[at + 1])]);
        wrong |= (high | low) & 0xf0;
        *byte = high << 4 | low;
        at += 2;
    }
    (wrong == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::shorthand::write_out;

    fn written_out(data: impl FnOnce(&mut LineWriter)) -> String {
        let mut pen = LineWriter::default();
        pen.line(Timestamp::from_micros(-7), Kind::Clock, data);
        let RecordLines(lines) = pen.into_lines();
        let (mut rest, mut text) = (lines.as_slice(), Vec::new());
        write_out(&mut rest, &mut text, |_| {}).unwrap();
        assert!(rest.is_empty());
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn every_value_is_written_out_as_it_was() {
        let text = written_out(|pen| {
            for number in [0, 9, 10, 127, 128, 16_384, MAX_SAFE_INTEGER, MAX_SAFE_INTEGER + 1, u64::MAX] {
                pen.name(Name::Seq).number(number);
            }
            pen.name(Name::Rules).list(|pen| {
                pen.object(|_| {});
                pen.object(|pen| pen.name(Name::Passed).flag(true));
                pen.list(|pen| (pen.flag(false), pen.text("")).1);
                pen.value(Value::AuthRequired);
                pen.passed(Rule::Memory, None::<fn(&mut LineWriter)>);
                pen.passed(Rule::Freeze, Some(|pen: &mut LineWriter| pen.list(|pen| pen.number(1))));
            });
            pen.name(Name::Sha256).digest(&[0xa5; 32]);
            pen.name(Name::Trace).trace(TraceId(0xfedc));
            pen.name(Name::Before).time(Timestamp::from_micros(i64::MIN));
        });
        let expected = format!(
            "{{\"at\":-7,\"data\":{{\"seq\":0,\"seq\":9,\"seq\":10,\"seq\":127,\"seq\":128,\"seq\":16384,\
             \"seq\":9007199254740991,\"seq\":\"9007199254740992\",\"seq\":\"18446744073709551615\",\
             \"rules\":[{{}},{{\"passed\":true}},[false,\"\"],\"TASK_STATE_AUTH_REQUIRED\",{{\"passed\":true,\"rule\":\"memory\"}},\
             {{\"facts\":[[1]],\"passed\":true,\"rule\":\"freeze\"}}],\"sha256\":\"{}\",\
             \"trace\":\"0000000000000000000000000000fedc\",\"before\":-9223372036854775808}},\"type\":\"chancery.record.clock\"}}",
            "a5".repeat(32)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn texts_and_ids_come_out_as_json_writes_them_whatever_they_are() {
        let uuid = "01a1e220-704d-75d6-a5a8-6c51a987b428";
        let near =
            [uuid.to_uppercase(), uuid.replace('-', "_"), uuid.replace('d', "g"), uuid[1..].to_owned(), format!("{uuid}0")];
        let long = "é".repeat(300);
        let odd = ["", "a\"b\\c/", "\u{0}\u{8}\t\n\u{c}\r\u{1f}\u{7f}", "→ 𝄞", "{\"at\":1}", long.as_str(), uuid];
        for text in near.iter().map(String::as_str).chain(odd) {
            let quoted = serde_json::to_string(text).unwrap();
            let expected = format!(r#"{{"at":-7,"data":{{"id":{quoted}}},"type":"chancery.record.clock"}}"#);
            assert_eq!(written_out(|pen| pen.name(Name::Id).text(text)), expected);
            assert_eq!(written_out(|pen| pen.name(Name::Id).id(text)), expected);
        }
    }
}
