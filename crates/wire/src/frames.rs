//! Server-sent events: how a stream of payloads becomes bytes.

use serde::Serialize;

/// Room for a few frames of the usual size, so that their buffer is not grown while they are written.
const USUAL_FRAMES: usize = 1024;

/// A growing run of SSE frames. JSON-RPC streams wrap each payload in a response object; REST streams do not.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    prefix: Vec<u8>,
    suffix: &'static [u8],
    event_id: u64,
    bytes: Vec<u8>,
    /// Where payloads go that are written for several streams.
    apart: Option<Vec<Payload>>,
}

/// The payload of one frame without what stands around it, which differs from stream to stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    name: Option<Box<str>>,
    last: bool,
    bytes: Vec<u8>,
}

impl Payload {
    /// Bytes that are the whole of a frame.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { name: None, last: true, bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Frames {
    /// Frames whose payloads stand alone.
    pub fn bare() -> Self {
        Self::default()
    }

    /// Frames whose payloads are the `result` of a JSON-RPC response. `id` is the request's id as JSON text.
    pub fn json_rpc(id: &str) -> Self {
        let prefix = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).into_bytes();
        Self { prefix, suffix: b"}", ..Self::default() }
    }

    /// Only the payloads, for several streams to share.
    pub fn apart() -> Self {
        Self { apart: Some(Vec::new()), ..Self::default() }
    }

    /// The payloads written so far.
    pub fn take_payloads(&mut self) -> Vec<Payload> {
        self.apart.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Writes what stands before a shared payload.
    pub fn before(&mut self, payload: &Payload) {
        let name = payload.name.as_deref().filter(|_| self.prefix.is_empty());
        self.head(name, payload.last);
    }

    /// Writes what stands after a shared payload.
    pub fn after(&mut self) {
        self.bytes.extend_from_slice(self.suffix);
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// The id the next frames belong to.
    pub fn set_event_id(&mut self, event_id: u64) {
        self.event_id = event_id;
    }

    /// Makes room for so many bytes at once, where much is to come.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds a frame. Only the last frame of an event carries its id, so that a reader who saw some of them and
    /// reconnects is sent the event whole.
    pub fn push<T: Serialize + ?Sized>(&mut self, payload: &T, last: bool) {
        self.frame(None, payload, last);
    }

    /// Adds a frame whose event has a name where payloads stand alone. Inside JSON-RPC, names mean nothing to anyone.
    pub fn push_named<T: Serialize + ?Sized>(&mut self, name: &str, payload: &T, last: bool) {
        let bare = self.prefix.is_empty();
        self.frame(bare.then_some(name), payload, last);
    }

    fn frame<T: Serialize + ?Sized>(&mut self, name: Option<&str>, payload: &T, last: bool) {
        if let Some(apart) = &mut self.apart {
            let mut bytes = std::mem::take(&mut self.bytes);
            if serde_json::to_writer(&mut bytes, payload).is_ok() {
                apart.push(Payload { name: name.map(Into::into), last, bytes });
            }
            return;
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(USUAL_FRAMES);
        }
        let start = self.bytes.len();
        self.head(name, last);
        if serde_json::to_writer(&mut self.bytes, payload).is_err() {
            // Our own types always serialise; a frame that does not is left out rather than sent broken.
            self.bytes.truncate(start);
            return;
        }
        self.after();
    }

    fn head(&mut self, name: Option<&str>, last: bool) {
        use std::io::Write as _;
        // Writing to a Vec cannot fail.
        if let Some(name) = name {
            let _ = writeln!(self.bytes, "event: {name}");
        }
        if last {
            let _ = writeln!(self.bytes, "id: {}", self.event_id);
        }
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(&self.prefix);
    }

    /// Adds a comment, which clients skip: a heartbeat, or the reason of a close.
    pub fn comment(&mut self, text: &str) {
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// Adds an error event in the shape of the caller's version and binding.
    pub fn error(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(b"event: error\ndata: ");
        self.bytes.extend_from_slice(payload);
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// Adds an error as an event like any other. Clients of 0.3 read the code in it; the Python SDK 1.3 takes one that is named
    /// `error` for a broken stream and drops the code.
    pub fn refusal(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(payload);
        self.bytes.extend_from_slice(b"\n\n");
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes what was written so far.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_of_data_whatever_the_text_holds() {
        let mut frames = Frames::json_rpc("\"r-1\"");
        frames.set_event_id(7);
        frames.push("a\nb\r\ndata: c\u{2028}", true);
        let text = String::from_utf8(frames.take()).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("id: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"r-1\",\"result\":\"a\\nb"), "{text}");
        assert!(text.ends_with("\"}\n\n"));
    }

    #[test]
    fn only_the_last_frame_of_an_event_has_its_id() {
        let mut frames = Frames::bare();
        frames.set_event_id(2);
        frames.push("a", false);
        frames.push("b", true);
        assert_eq!(String::from_utf8(frames.take()).unwrap(), "data: \"a\"\n\nid: 2\ndata: \"b\"\n\n");
    }

    #[test]
    fn a_name_is_written_only_where_payloads_stand_alone() {
        let mut frames = Frames::bare();
        frames.push_named("status", "a", true);
        assert_eq!(String::from_utf8(frames.take()).unwrap(), "event: status\nid: 0\ndata: \"a\"\n\n");
        let mut frames = Frames::json_rpc("1");
        frames.push_named("status", "a", true);
        assert!(!String::from_utf8(frames.take()).unwrap().contains("event"));
    }

    #[test]
    fn a_payload_written_apart_stands_in_each_stream_as_if_it_were_written_there() {
        let mut apart = Frames::apart();
        apart.push_named("status", "a", false);
        apart.push("b", true);
        let payloads = apart.take_payloads();
        for mut frames in [Frames::bare(), Frames::json_rpc("7")] {
            frames.set_event_id(2);
            let mut there = frames.clone();
            there.push_named("status", "a", false);
            there.push("b", true);
            let mut joined = Vec::new();
            for payload in &payloads {
                frames.before(payload);
                joined.extend(frames.take());
                joined.extend_from_slice(payload.bytes());
                frames.after();
                joined.extend(frames.take());
            }
            assert_eq!(String::from_utf8(joined).unwrap(), String::from_utf8(there.take()).unwrap());
        }
    }

    #[test]
    fn a_comment_cannot_break_out_of_its_line() {
        let mut frames = Frames::bare();
        frames.comment("x\ndata: {}");
        assert_eq!(String::from_utf8(frames.take()).unwrap(), ": x data: {}\n\n");
    }
}
