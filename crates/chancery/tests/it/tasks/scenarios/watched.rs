//! A stream under watch: what it has shown so far, and whether it keeps the rules every stream has.

use chancery_protocol::{TaskEvent, Version};

use super::lines;
use super::story::Step;
use super::teller::Known;
use crate::support::wire_client::{EventStream, Seen, WireClient};

pub(super) struct Watched {
    stream: EventStream,
    known: Option<Known>,
    last_id: Option<u64>,
    shown: usize,
    over: bool,
    ended: bool,
}

impl Watched {
    pub(super) fn new(stream: EventStream, resumed: Option<u64>) -> Self {
        Self { stream, known: None, last_id: resumed, shown: 0, over: false, ended: false }
    }

    pub(super) fn known(&self) -> Option<Known> {
        self.known.clone()
    }

    /// Reads the events that the step expects; all there are, if it expects none in particular.
    pub(super) async fn read(&mut self, step: &Step, client: &WireClient) -> Result<(), String> {
        let version = client.combination.version;
        let Some(expected) = &step.expect.events else {
            while self.next(version).await?.is_some() {}
            return Ok(());
        };
        let expected: Vec<String> = expected.iter().map(|line| lines::event_in(version, line)).collect();
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            match self.next(version).await? {
                Some(event) => seen.push(lines::event(&event.event)),
                None => break,
            }
        }
        if seen != expected {
            return Err(format!("saw {seen:?}, not {expected:?}"));
        }
        if step.expect.over { self.must_be_over().await } else { Ok(()) }
    }

    pub(super) async fn must_be_over(&mut self) -> Result<(), String> {
        if self.over {
            return Ok(());
        }
        match self.stream.next().await.map_err(|refusal| format!("{refusal:?}"))? {
            None => {
                self.over = true;
                Ok(())
            }
            Some(more) => Err(format!("there is more: {}", lines::event(&more.event))),
        }
    }

    async fn next(&mut self, version: Version) -> Result<Option<Seen>, String> {
        let Some(seen) = self.stream.next().await.map_err(|refusal| format!("{refusal:?}"))? else {
            self.over = true;
            return Ok(None);
        };
        self.rules(&seen, version).map_err(|rule| format!("{}: {rule}", lines::event(&seen.event)))?;
        self.shown += 1;
        if let Some(face) = &seen.face {
            self.known = Some(Known { id: face.task_id.clone(), context: face.context_id.clone(), at: None });
        }
        Ok(Some(seen))
    }

    fn rules(&mut self, seen: &Seen, version: Version) -> Result<(), &'static str> {
        if self.ended {
            return Err("comes after the end");
        }
        if let (Some(known), Some(face)) = (&self.known, &seen.face)
            && known.id != face.task_id
        {
            return Err("belongs to another task");
        }
        // The first event of a resumed stream may be the task as it was at the id that was given.
        if let (Some(last), Some(id)) = (self.last_id, seen.id)
            && (id < last || id == last && self.shown > 0)
        {
            return Err("has an id that does not go up");
        }
        self.last_id = seen.id.or(self.last_id);
        let TaskEvent::Status(change) = &seen.event else {
            return Ok(());
        };
        let state = change.status.state;
        self.ended = state.is_terminal();
        let is_last = state.is_terminal() || state.is_interrupted() && (version != Version::V1_0) && self.shown > 0;
        match (version, seen.is_final) {
            (Version::V1_0, None) => Ok(()),
            (Version::V1_0, Some(_)) => Err("says final, which 1.0 does not have"),
            (_, Some(said)) if said == is_last => {
                self.ended |= is_last;
                Ok(())
            }
            _ => Err("says the wrong thing about being the final event"),
        }
    }
}
