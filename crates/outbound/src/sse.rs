//! Reads server-sent events out of bytes that arrive in any pieces.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memchr2;

/// Room of this size is used again. Less is quickly had, and more should not lie about.
const WORTH_KEEPING: std::ops::Range<usize> = 64 << 10..4 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// The last id the stream has named so far.
    pub id: Option<Arc<str>>,
    /// The kind of event; `message` unless the stream says otherwise.
    pub event: Cow<'static, str>,
    pub data: String,
}

/// A single event grew past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct TooLong(pub usize);

#[derive(Clone, Debug)]
pub struct Parser {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return, so a newline now would belong to it.
    after_return: bool,
    at_start: bool,
    id: Option<Arc<str>>,
    event: String,
    data: String,
    has_data: bool,
}

impl Parser {
    /// A parser that holds at most about `limit` bytes of one event.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_return: false,
            at_start: true,
            id: None,
            event: String::new(),
            data: String::new(),
            has_data: false,
        }
    }

    /// Takes more bytes and answers the events they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<ServerSentEvent>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr2(b'\n', b'\r', rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            if !piece.is_empty() && self.line.len() + self.data.len() + piece.len() > self.limit {
                return Err(TooLong(self.limit));
            }
            let Some(end) = end else {
                self.line.extend_from_slice(piece);
                break;
            };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            // Most lines come in one piece and need not be put together.
            events.extend(if self.line.is_empty() {
                self.end_line(piece)
            } else {
                self.line.extend_from_slice(piece);
                let line = std::mem::take(&mut self.line);
                self.end_put_together(line)
            });
        }
        Ok(events)
    }

    /// Takes back the room of large data that was read, for the next of its kind.
    pub fn reuse(&mut self, data: String) {
        if WORTH_KEEPING.contains(&data.capacity()) && data.capacity() > self.line.capacity() {
            let mut room = data.into_bytes();
            room.clear();
            room.extend_from_slice(&self.line);
            self.line = room;
        }
    }

    /// Whether the bytes so far end inside an event.
    pub fn is_unfinished(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// The event that the bytes so far end inside, as if its last line and the blank line after it had come.
    pub fn finish(&mut self) -> Option<ServerSentEvent> {
        let line = std::mem::take(&mut self.line);
        let ended = if line.is_empty() { None } else { self.end_put_together(line) };
        ended.or_else(|| self.end_event())
    }

    /// A long line of data becomes the data itself: events of megabytes are there once.
    fn end_put_together(&mut self, mut line: Vec<u8>) -> Option<ServerSentEvent> {
        if self.has_data || self.at_start || !line.starts_with(b"data:") {
            return self.end_line(&line);
        }
        let before = if line.starts_with(b"data: ") { 6 } else { 5 };
        line.drain(..before);
        self.has_data = true;
        self.data = String::from_utf8(line).unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned());
        None
    }

    fn end_line(&mut self, line: &[u8]) -> Option<ServerSentEvent> {
        // Looking for faults is slower than finding that there are none.
        let line = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
        let at_start = std::mem::take(&mut self.at_start);
        let line = line.strip_prefix('\u{feff}').filter(|_| at_start).unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => self.id = Some(value.into()),
            // Comments have an empty field name; others mean nothing to us.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<ServerSentEvent> {
        let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let event = if event.is_empty() { Cow::Borrowed("message") } else { Cow::Owned(event) };
        Some(ServerSentEvent { id: self.id.clone(), event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\r\nid: 1\r\ndata: {\"a\":1}\r\n\r\ndata:one\ndata:  two\n\nevent: error\rdata\r\r\
                          id: 3\nretry: 5\nnonsense\n\nid\ndata: ü\n\ndata: unfinished";

    fn event(id: Option<&str>, event: &str, data: &str) -> ServerSentEvent {
        ServerSentEvent { id: id.map(Arc::from), event: event.to_owned().into(), data: data.to_owned() }
    }

    fn expected() -> Vec<ServerSentEvent> {
        vec![
            event(Some("1"), "message", "{\"a\":1}"),
            event(Some("1"), "message", "one\n two"),
            event(Some("1"), "error", ""),
            event(Some(""), "message", "ü"),
        ]
    }

    #[test]
    fn every_line_ending_and_field_is_understood() {
        assert_eq!(Parser::new(1000).feed(STREAM.as_bytes()).unwrap(), expected());
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        for cut in 0..=bytes.len() {
            let mut parser = Parser::new(1000);
            let mut events = parser.feed(&bytes[..cut]).unwrap();
            events.extend(parser.feed(&bytes[cut..]).unwrap());
            assert_eq!(events, expected(), "cut at {cut}");
        }
        let mut parser = Parser::new(1000);
        let single: Vec<_> = bytes.iter().flat_map(|byte| parser.feed(&[*byte]).unwrap()).collect();
        assert_eq!(single, expected());
    }

    #[test]
    fn the_room_of_a_large_event_serves_the_next() {
        let large = "x".repeat(100_000);
        let stream = format!("id: 1\ndata: {large}\n\ndata: {large}\n\n");
        let (first, second) = stream.split_at(100_020);
        let mut parser = Parser::new(1 << 20);
        let mut events: Vec<_> = first.as_bytes().chunks(7_000).flat_map(|piece| parser.feed(piece).unwrap()).collect();
        let read = events.remove(0).data;
        assert_eq!(read, large);
        let room = read.as_ptr();
        parser.reuse(read);
        let events: Vec<_> = second.as_bytes().chunks(7_000).flat_map(|piece| parser.feed(piece).unwrap()).collect();
        assert_eq!(events, [event(Some("1"), "message", &large)]);
        assert_eq!(events[0].data.as_ptr(), room);
    }

    #[test]
    fn what_the_bytes_end_inside_is_an_event_if_its_end_is_taken_for_one() {
        for (rest, data) in [("data: a\ndata: b", Some("a\nb")), ("data: a\n", Some("a")), (": bye", None), ("id: 7\n", None)] {
            let mut parser = Parser::new(100);
            assert_eq!(parser.feed(format!("data: first\n\n{rest}").as_bytes()).unwrap().len(), 1);
            assert_eq!(parser.finish().map(|event| event.data).as_deref(), data, "{rest}");
            assert!(!parser.is_unfinished());
        }
    }

    #[test]
    fn an_event_without_end_is_refused_at_the_limit() {
        for endless in ["data: xxxxxxxxxxxxxxxxxxxx", "data: x\ndata: x\ndata: xxxxxxxxx", ": xxxxxxxxxxxxxxxxxxxxx"] {
            assert_eq!(Parser::new(10).feed(endless.as_bytes()), Err(TooLong(10)), "{endless}");
        }
        let many = "data: 123\n\n".repeat(100);
        assert_eq!(Parser::new(10).feed(many.as_bytes()).unwrap().len(), 100, "only single events are limited");
    }
}
