//! The message that is sent: its parts, the task and conversation it belongs to, and what goes beside it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use chancery::protocol::{Json, Message, Metadata, Part, PartContent, Role, SendConfiguration, SendMessage};
use chancery_core::{GOVERNANCE_EXTENSION, MicroUsd};
use chancery_outbound::new_message_id;
use serde_json::{Map, Value, json};

use super::super::Failure;

/// Bytes of one file that is sent. Larger ones are sent as links.
const MOST_FILE_BYTES: u64 = 64 * 1024 * 1024;

#[derive(clap::Args)]
#[command(next_help_heading = "Message")]
pub(super) struct MessageFlags {
    /// The requested skill, by its id on the card
    #[arg(long, value_name = "ID")]
    skill: Option<String>,
    /// A part of JSON, or of the JSON in @FILE; can be given several times
    #[arg(long, value_name = "JSON|@FILE")]
    data: Vec<String>,
    /// A file that is sent along, or a URL that is sent as a link; can be given several times
    #[arg(long = "file", value_name = "PATH|URL")]
    files: Vec<String>,
    /// Metadata beside the message: NAME=VALUE, a JSON object, or one in @FILE; can be given several times
    #[arg(long, value_name = "NAME=VALUE|JSON|@FILE")]
    metadata: Vec<String>,
    /// The most that the task and all below it may cost: USD, tokens=N, or both as 0.25,tokens=5000
    #[arg(long, value_name = "BUDGET", value_parser = budget)]
    pub(super) budget: Option<TaskBudget>,
    /// The conversation a new task belongs to
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// The task to continue
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The same key again attaches to the task it made the first time
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
}

/// The most that a task may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskBudget {
    usd: Option<MicroUsd>,
    tokens: Option<u64>,
}

impl MessageFlags {
    /// Whether there is anything to send beside a text.
    pub(super) fn has_parts(&self) -> bool {
        !self.data.is_empty() || !self.files.is_empty()
    }

    /// `text` of `-` is read from stdin.
    pub(super) fn message(&self, text: Option<&str>, no_wait: bool) -> Result<SendMessage, Failure> {
        let mut parts = Vec::new();
        match text {
            Some("-") => {
                let mut text = String::new();
                let read = std::io::stdin().read_to_string(&mut text);
                read.map_err(|error| Failure::Usage(format!("cannot read the text from stdin: {error}")))?;
                parts.push(Part::text(text));
            }
            Some(text) => parts.push(Part::text(text)),
            None => {}
        }
        for given in &self.data {
            let text = text_of("--data", given)?;
            let json = Json::parse(text).map_err(|fault| {
                let folder = "the data folder of a node goes before the command: chancery --data FOLDER send";
                Failure::Usage(format!("--data {given}: it is no JSON: {fault}; {folder}"))
            })?;
            parts.push(Part::new(PartContent::Data(json)));
        }
        for file in &self.files {
            parts.push(file_part(file)?);
        }
        // A message is part of what a key stands for, so the same key must make the same message.
        let message_id = self.idempotency_key.clone().unwrap_or_else(new_message_id);
        let mut message = Message::of_parts(Role::User, message_id, parts);
        message.task_id = self.task.as_deref().map(Into::into);
        message.context_id = self.context.as_deref().map(Into::into);
        Ok(SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration { return_immediately: no_wait, ..SendConfiguration::default() },
            metadata: self.metadata()?,
            // The name of a new task, where the client chooses it: the same key is the same task.
            client_task_id: self.idempotency_key.as_deref().filter(|_| self.task.is_none()).map(Into::into),
            unknown: Default::default(),
        })
    }

    /// What was given, with the skill and the budget where nodes look for them.
    fn metadata(&self) -> Result<Option<Metadata>, Failure> {
        let mut all = Map::new();
        for given in &self.metadata {
            all.extend(members(given)?);
        }
        if let Some(skill) = &self.skill {
            all.insert("skill".to_owned(), json!(skill));
        }
        if let Some(budget) = self.budget {
            let governance = all.entry(GOVERNANCE_EXTENSION).or_insert_with(|| json!({})).as_object_mut();
            let wrong = || format!("--metadata: {GOVERNANCE_EXTENSION} has to be an object, because --budget goes there");
            governance.ok_or_else(|| Failure::Usage(wrong()))?.insert("budget".to_owned(), budget.to_json());
        }
        Ok((!all.is_empty()).then(|| Metadata::from_object(all)))
    }
}

/// `NAME=VALUE`, an object, or an object in a file. A value that is JSON is taken as JSON, and as text otherwise.
fn members(given: &str) -> Result<Map<String, Value>, Failure> {
    let is_object = given.starts_with('@') || given.trim_start().starts_with('{');
    if !is_object {
        let pair = given.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair
            .ok_or_else(|| Failure::Usage(format!("--metadata {given}: write NAME=VALUE, a JSON object, or @FILE with one")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        return Ok(Map::from_iter([(name.to_owned(), value)]));
    }
    let text = text_of("--metadata", given)?;
    serde_json::from_str(&text).map_err(|fault| Failure::Usage(format!("--metadata {given}: it is no JSON object: {fault}")))
}

/// The text itself, or that of the file after an `@`.
fn text_of(flag: &str, given: &str) -> Result<String, Failure> {
    match given.strip_prefix('@') {
        Some(file) => {
            let unreadable = |fault| Failure::Usage(format!("{flag}: {file} cannot be read: {fault}"));
            std::fs::read_to_string(file).map_err(unreadable)
        }
        None => Ok(given.to_owned()),
    }
}

fn file_part(given: &str) -> Result<Part, Failure> {
    let named = |content, name: &str| Part {
        filename: Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()),
        media_type: media_type(name).map(str::to_owned),
        ..Part::new(content)
    };
    if ["https://", "http://"].iter().any(|scheme| given.starts_with(scheme)) {
        let path = given.split(['?', '#']).next().unwrap_or(given);
        return Ok(named(PartContent::Url(given.to_owned()), path));
    }
    let unreadable = |fault: std::io::Error| Failure::Usage(format!("--file {given}: it cannot be read: {fault}"));
    let size = std::fs::metadata(given).map_err(unreadable)?.len();
    if size > MOST_FILE_BYTES {
        return Err(Failure::Usage(format!(
            "--file {given}: it has {size} bytes, and {MOST_FILE_BYTES} can be sent; give its URL to send a link"
        )));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(given).map_err(unreadable)?;
    // A pipe or a device has no size that says how much it gives.
    file.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_FILE_BYTES {
        return Err(Failure::Usage(format!("--file {given}: it gives more than the {MOST_FILE_BYTES} bytes that can be sent")));
    }
    Ok(named(PartContent::Raw(bytes.into()), given))
}

/// The media type that the end of a name stands for. `None` leaves it to the agent.
fn media_type(name: &str) -> Option<&'static str> {
    let end = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    Some(match end.as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

/// `0.25`, `usd=0.25`, `tokens=5000`, or both with a comma between.
fn budget(text: &str) -> Result<TaskBudget, String> {
    let mut budget = TaskBudget::default();
    for part in text.split(',') {
        let (unit, amount) = part.split_once('=').unwrap_or(("usd", part));
        let is_new = match unit {
            "usd" => {
                let usd = MicroUsd::parse(amount).map_err(|fault| format!("{amount:?} is no amount of USD: {fault}"))?;
                budget.usd.replace(usd).is_none()
            }
            "tokens" => {
                let tokens = amount.parse().map_err(|_| format!("{amount:?} is no number of tokens"))?;
                budget.tokens.replace(tokens).is_none()
            }
            _ => return Err(format!("{unit:?} is no unit; write an amount of USD, tokens=N, or both with a comma between")),
        };
        if !is_new {
            return Err(format!("{unit} is given twice"));
        }
    }
    Ok(budget)
}

impl TaskBudget {
    fn to_json(self) -> Value {
        let mut object = Map::new();
        object.extend(self.usd.map(|amount| ("usd".to_owned(), json!(amount))));
        object.extend(self.tokens.map(|number| ("tokens".to_owned(), json!(number))));
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_money_tokens_or_both_and_never_anything_else() {
        let read = |text: &str| budget(text).map(TaskBudget::to_json);
        assert_eq!(read("0.25"), Ok(json!({ "usd": "0.25" })));
        assert_eq!(read("tokens=5000"), Ok(json!({ "tokens": 5000 })));
        assert_eq!(read("usd=1,tokens=7").map(|both| both["tokens"].clone()), Ok(json!(7)));
        for bad in ["", "much", "-1", "0.25,0.30", "tokens=x", "eur=1", "0.0000001"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn metadata_is_pairs_and_objects_and_what_is_neither_is_named() {
        assert_eq!(members("a=1").map(Value::Object).ok(), Some(json!({ "a": 1 })));
        assert_eq!(members("a=b=c").map(Value::Object).ok(), Some(json!({ "a": "b=c" })));
        assert_eq!(members(r#"{"a":[1]}"#).map(Value::Object).ok(), Some(json!({ "a": [1] })));
        for bad in ["", "a", "=1", "{", "@no-such-file"] {
            assert!(matches!(members(bad), Err(Failure::Usage(reason)) if reason.contains("--metadata")), "{bad}");
        }
    }

    #[test]
    fn a_link_keeps_its_name_and_type() {
        let part = file_part("https://h/maps/bern.png?size=2").unwrap();
        assert_eq!((part.filename.as_deref(), part.media_type.as_deref()), (Some("bern.png"), Some("image/png")));
        assert!(matches!(part.content, PartContent::Url(url) if url.ends_with("size=2")));
        assert_eq!(media_type("Makefile"), None);
    }

    #[test]
    fn a_file_at_the_limit_is_sent_and_one_byte_more_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MOST_FILE_BYTES).unwrap();
        let path = file.path().to_str().unwrap();
        assert!(matches!(file_part(path).unwrap().content, PartContent::Raw(bytes) if bytes.len() as u64 == MOST_FILE_BYTES));
        file.as_file().set_len(MOST_FILE_BYTES + 1).unwrap();
        assert!(matches!(file_part(path), Err(Failure::Usage(reason)) if reason.contains("can be sent")));
    }
}
