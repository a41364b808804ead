//! Writes what an agent sent again as 1.0 writes it, by what its shape says.

use chancery_protocol::Version;

use super::object::{ObjectMembers, items, string};
use super::outline::is_name;
use super::unreadable::{MemberFault, join};
use super::words::{self, letters};
use super::{ClaimedForm, Leniencies, Leniency};

/// The four things that a result or an event can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventForm {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

impl EventForm {
    const ALL: [Self; 4] = [Self::Task, Self::Message, Self::StatusUpdate, Self::ArtifactUpdate];

    pub(super) const fn wrapper(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Message => "message",
            Self::StatusUpdate => "statusUpdate",
            Self::ArtifactUpdate => "artifactUpdate",
        }
    }

    /// Wrapper members, in every spelling. `msg` is what the 0.3 proto calls a message.
    const fn wrappers(self) -> &'static [&'static str] {
        match self {
            Self::Task => &["task"],
            Self::Message => &["message", "msg"],
            Self::StatusUpdate => &["statusUpdate", "status_update"],
            Self::ArtifactUpdate => &["artifactUpdate", "artifact_update"],
        }
    }

    fn of_kind(kind: &str) -> Option<Self> {
        match letters(kind).as_str() {
            "task" => Some(Self::Task),
            "message" => Some(Self::Message),
            "statusupdate" => Some(Self::StatusUpdate),
            "artifactupdate" => Some(Self::ArtifactUpdate),
            _ => None,
        }
    }
}

/// Writes 1.0 and counts what it had to overlook.
#[derive(Debug)]
pub(super) struct Rewriter {
    pub(super) claimed: ClaimedForm,
    pub(super) out: String,
    pub(super) leniencies: Leniencies,
    /// Artifacts that came without an id in the events before.
    pub(super) unnamed: usize,
}

/// What the artifacts without an id are called: by their place in the task, so that a second reading calls them the same.
pub(super) fn artifact_name(place: usize) -> String {
    format!("artifact-{place}")
}

impl Rewriter {
    pub(super) fn new(claimed: ClaimedForm, unnamed: usize) -> Self {
        Self { claimed, out: String::new(), leniencies: Leniencies::new(), unnamed }
    }

    pub(super) fn note(&mut self, leniency: Leniency) {
        self.leniencies.insert(leniency);
    }

    /// The original spells nearly everything in its own way, so that nothing follows from a spelling there.
    pub(super) fn note_spelling(&mut self) {
        if self.claimed.version != Version::Original {
            self.note(Leniency::SpellingOfOtherVersion);
        }
    }

    /// Whether the version claimed tags its objects with `kind`.
    fn tags(&self) -> bool {
        self.claimed.version == Version::V0_3 && !self.claimed.is_rest
    }

    /// Writes an event, or the result of sending a message, in its wrapper.
    pub(super) fn event(&mut self, raw: &str) -> Result<EventForm, MemberFault> {
        let (form, inner) = self.classify(raw)?;
        self.open();
        self.key(form.wrapper());
        match form {
            EventForm::Task => self.task(inner, "task")?,
            EventForm::Message => self.message(inner, "message", true)?,
            EventForm::StatusUpdate => self.update(form, inner)?,
            EventForm::ArtifactUpdate => self.update(form, inner)?,
        }
        self.close();
        Ok(form)
    }

    /// Writes a task without a wrapper, from any wrapper. A status update is a snapshot of its task too.
    pub(super) fn task_alone(&mut self, raw: &str) -> Result<(), MemberFault> {
        match self.classify(raw)? {
            (EventForm::Task, inner) => self.task(inner, "task"),
            (EventForm::StatusUpdate, inner) => {
                self.note(Leniency::UpdateForTask);
                self.task(inner, "statusUpdate")
            }
            (form, _) => Err(MemberFault::new(form.wrapper(), "a task was asked for")),
        }
    }

    /// What a result or an event is, and the object that says it: by its wrapper, else by its `kind`, else by its members.
    pub(super) fn classify<'a>(&mut self, raw: &'a str) -> Result<(EventForm, &'a str), MemberFault> {
        let object = ObjectMembers::read(raw, "")?;
        let wrapped = EventForm::ALL.map(|form| object.get(form.wrappers()).filter(|value| value.starts_with('{')));
        let mut found = EventForm::ALL.into_iter().zip(wrapped).filter_map(|(form, inner)| Some((form, inner?)));
        match (found.next(), found.next()) {
            (Some((one, _)), Some((other, _))) => {
                return Err(MemberFault::new("", format!("has both {} and {}", one.wrapper(), other.wrapper())));
            }
            (Some(found), None) => {
                if self.tags() {
                    self.note(Leniency::WrapperOfOtherVersion);
                }
                return Ok(found);
            }
            (None, _) => {}
        }
        if self.claimed.version == Version::V1_0 || self.claimed.is_rest {
            self.note(Leniency::NoWrapper);
        }
        let kind = object.get(&["kind"]).or_else(|| object.get(&["type"])).and_then(string);
        if let Some(form) = kind.as_deref().and_then(EventForm::of_kind) {
            return Ok((form, raw));
        }
        if self.tags() {
            self.note(Leniency::NoKind);
        }
        let has = |names: &[&str]| object.has(names);
        let (names_a_task, has_id) = (has(&["taskId", "task_id"]), has(&["id"]));
        let is_picture = has(&["artifacts", "history"]);
        let is_original = self.claimed.version == Version::Original && has_id;
        match () {
            () if has(&["status"]) && has(&["artifact"]) => Err(MemberFault::new("", "has both status and artifact")),
            () if has(&["status"]) && names_a_task && !(has_id && is_picture) => Ok((EventForm::StatusUpdate, raw)),
            () if has(&["artifact"]) && (names_a_task || is_original) => Ok((EventForm::ArtifactUpdate, raw)),
            // The updates of the original call their task `id`. Only they have `final`.
            () if has(&["status"]) && is_original && has(&["final"]) => Ok((EventForm::StatusUpdate, raw)),
            () if has(&["status"]) && has_id => Ok((EventForm::Task, raw)),
            () if has(&["parts", "content"]) && has(&["role", "messageId", "message_id"]) => Ok((EventForm::Message, raw)),
            () => Err(MemberFault::new("", no_event(&object))),
        }
    }

    fn task(&mut self, raw: &str, path: &str) -> Result<(), MemberFault> {
        let mut object = ObjectMembers::read(raw, path)?;
        self.open();
        self.tag(&mut object, path)?;
        if path == EventForm::StatusUpdate.wrapper() {
            self.take(&mut object, path, &["final"])?;
        }
        let id = match self.take(&mut object, path, &["id"])? {
            None => self.take(&mut object, path, &["id", "taskId", "task_id"])?,
            id => id,
        };
        self.text_member("id", id.ok_or_else(|| MemberFault::missing(path, "id"))?, path)?;
        self.context(&mut object, path, true)?;
        self.status(&mut object, path)?;
        if let Some(raw) = self.take(&mut object, path, &["artifacts"])? {
            self.key("artifacts");
            self.list(raw, &join(path, "artifacts"), |this, raw, path, place| this.artifact(raw, path, place + 1))?;
        }
        if let Some(raw) = self.take(&mut object, path, &["history"])? {
            self.key("history");
            self.list(raw, &join(path, "history"), |this, raw, path, _| this.message(raw, path, false))?;
        }
        self.metadata(&mut object, path)?;
        self.close_with(object);
        Ok(())
    }

    /// A status update or an artifact update. One without a task's id belongs to the task of its stream.
    fn update(&mut self, form: EventForm, raw: &str) -> Result<(), MemberFault> {
        let path = form.wrapper();
        let mut object = ObjectMembers::read(raw, path)?;
        self.open();
        self.tag(&mut object, path)?;
        let id = match self.take(&mut object, path, &["taskId", "task_id"])? {
            None => self.take(&mut object, path, &["taskId", "id"])?,
            id => id,
        };
        self.id_or_empty("taskId", id, path)?;
        self.context(&mut object, path, true)?;
        if form == EventForm::StatusUpdate {
            if self.take(&mut object, path, &["final"])?.is_some() && self.claimed.version == Version::V1_0 {
                self.note_spelling();
            }
            self.status(&mut object, path)?;
        } else {
            let appends = object.get(&["append"]).is_some_and(|raw| matches!(raw, "true" | r#""true""# | r#""True""# | "1"));
            let raw = self.take(&mut object, path, &["artifact"])?.ok_or_else(|| MemberFault::missing(path, "artifact"))?;
            // A piece that is not appended begins the next artifact, if nothing says which one it is.
            let place = if appends { self.unnamed.max(1) } else { self.unnamed + 1 };
            self.key("artifact");
            self.artifact(raw, &join(path, "artifact"), place)?;
            self.boolean(&mut object, path, &["append"])?;
            self.boolean(&mut object, path, &["lastChunk", "last_chunk"])?;
        }
        self.metadata(&mut object, path)?;
        self.close_with(object);
        Ok(())
    }

    fn status(&mut self, object: &mut ObjectMembers<'_>, path: &str) -> Result<(), MemberFault> {
        let raw = self.take(object, path, &["status"])?.ok_or_else(|| MemberFault::missing(path, "status"))?;
        let path = join(path, "status");
        self.key("status");
        self.open();
        if raw.starts_with('"') {
            self.note(Leniency::TextForObject);
            self.state(raw, &path)?;
            self.close();
            return Ok(());
        }
        let mut object = ObjectMembers::read(raw, &path)?;
        let state = self.take(&mut object, &path, &["state"])?.ok_or_else(|| MemberFault::missing(&path, "state"))?;
        self.state(state, &path)?;
        if let Some(raw) = self.take(&mut object, &path, &["message", "update"])? {
            self.key("message");
            self.message(raw, &join(&path, "message"), true)?;
        }
        if let Some(raw) = self.take(&mut object, &path, &["timestamp"])? {
            self.time(raw);
        }
        self.close_with(object);
        Ok(())
    }

    fn state(&mut self, raw: &str, path: &str) -> Result<(), MemberFault> {
        // 1.0 allows the number of a state.
        let Some(word) = string(raw) else {
            self.member("state", raw);
            return Ok(());
        };
        let state =
            words::state(&word).ok_or_else(|| MemberFault { path: join(path, "state"), reason: "no task state".to_owned() })?;
        if (word == state.name()) == self.tags() {
            self.note_spelling();
        }
        self.key("state");
        self.out.extend(["\"", state.name(), "\""]);
        Ok(())
    }

    /// A time that cannot be read is left out: the time of receipt is used in its place.
    fn time(&mut self, raw: &str) {
        match string(raw).and_then(|text| words::time(&text)) {
            Some((time, names_its_zone)) => {
                if !names_its_zone {
                    self.note(Leniency::TimeWithoutZone);
                }
                self.key("timestamp");
                self.out.extend(["\"", &time, "\""]);
            }
            None => self.note(Leniency::UnreadableTime),
        }
    }

    /// A message. Only of one that is not in a history it is certain that the agent wrote it.
    fn message(&mut self, raw: &str, path: &str, is_agents: bool) -> Result<(), MemberFault> {
        if raw.starts_with('"') && is_agents {
            self.note(Leniency::TextForObject);
            self.open();
            self.out.extend([r#""messageId":"","role":"ROLE_AGENT","parts":[{"text":"#, raw, "}]"]);
            self.close();
            return Ok(());
        }
        let mut object = ObjectMembers::read(raw, path)?;
        self.open();
        self.tag(&mut object, path)?;
        let id = self.take(&mut object, path, &["messageId", "message_id"])?;
        self.id_or_empty("messageId", id, path)?;
        self.context(&mut object, path, false)?;
        if let Some(raw) = self.take(&mut object, path, &["taskId", "task_id"])? {
            self.text_member("taskId", raw, path)?;
        }
        self.role(&mut object, path, is_agents)?;
        let parts = self.take(&mut object, path, &["parts"])?;
        let is_empty = parts.is_none_or(|raw| items(raw).is_some_and(|items| items.is_empty()));
        let parts = if is_empty { self.take(&mut object, path, &["parts", "content"])?.or(parts) } else { parts };
        self.parts(parts, path)?;
        self.metadata(&mut object, path)?;
        self.strings(&mut object, path, &["extensions"])?;
        self.strings(&mut object, path, &["referenceTaskIds", "reference_task_ids"])?;
        self.close_with(object);
        Ok(())
    }

    fn role(&mut self, object: &mut ObjectMembers<'_>, path: &str, is_agents: bool) -> Result<(), MemberFault> {
        let fault = |reason: &str| MemberFault { path: join(path, "role"), reason: reason.to_owned() };
        self.key("role");
        match self.take(object, path, &["role"])? {
            None if is_agents => {
                self.note(Leniency::MissingRole);
                self.out.push_str(r#""ROLE_AGENT""#);
            }
            None => return Err(fault("is required")),
            Some(raw) => match string(raw) {
                Some(word) => {
                    let role = words::role(&word).ok_or_else(|| fault("neither user nor agent"))?;
                    if (word == role.name()) == self.tags() {
                        self.note_spelling();
                    }
                    self.out.extend(["\"", role.name(), "\""]);
                }
                // 1.0 allows the number of a role.
                None => self.out.push_str(raw),
            },
        }
        Ok(())
    }

    /// An artifact. `place` counts from one.
    fn artifact(&mut self, raw: &str, path: &str, place: usize) -> Result<(), MemberFault> {
        let mut object = ObjectMembers::read(raw, path)?;
        self.open();
        match self.take(&mut object, path, &["artifactId", "artifact_id"])?.filter(|raw| *raw != r#""""#) {
            Some(raw) => self.text_member("artifactId", raw, path)?,
            None => {
                self.note(Leniency::MissingId);
                self.unnamed = place;
                self.key("artifactId");
                self.out.extend(["\"", &artifact_name(place), "\""]);
            }
        }
        self.optional_text(&mut object, path, &["name"])?;
        self.optional_text(&mut object, path, &["description"])?;
        let parts = self.take(&mut object, path, &["parts"])?;
        self.parts(parts, path)?;
        self.metadata(&mut object, path)?;
        self.strings(&mut object, path, &["extensions"])?;
        self.close_with(object);
        Ok(())
    }

    fn parts(&mut self, raw: Option<&str>, path: &str) -> Result<(), MemberFault> {
        self.key("parts");
        self.list(raw.unwrap_or("[]"), &join(path, "parts"), |this, raw, path, _| this.part(raw, path))
    }

    /// Drops the tag of 0.3, which 1.0 has no member for.
    fn tag(&mut self, object: &mut ObjectMembers<'_>, path: &str) -> Result<(), MemberFault> {
        if self.take(object, path, &["kind"])?.is_some() && !self.tags() {
            self.note_spelling();
        }
        Ok(())
    }

    fn context(&mut self, object: &mut ObjectMembers<'_>, path: &str, is_required: bool) -> Result<(), MemberFault> {
        match self.take(object, path, &["contextId", "context_id", "sessionId"])? {
            Some(raw) => self.text_member("contextId", raw, path),
            None if is_required => self.id_or_empty("contextId", None, path),
            None => Ok(()),
        }
    }

    /// An id that may be missing: it is empty then, and the code that knows the call supplies it.
    fn id_or_empty(&mut self, name: &str, raw: Option<&str>, path: &str) -> Result<(), MemberFault> {
        match raw {
            Some(raw) => self.text_member(name, raw, path),
            None => {
                self.note(Leniency::MissingId);
                self.member(name, r#""""#);
                Ok(())
            }
        }
    }
}

/// Why an object is no event, by the names of its members.
fn no_event(object: &ObjectMembers<'_>) -> String {
    const NAMES: usize = 6;
    let names: Vec<&str> = object.names().filter(|name| is_name(name)).take(NAMES).collect();
    match names.is_empty() {
        true => "neither a task nor a message nor an update".to_owned(),
        false => format!("neither a task nor a message nor an update; its members are {}", names.join(", ")),
    }
}
