//! The form of a scenario file: a story in steps, told without saying over which transport or in which version.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::support::wire_client::Combination;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Story {
    #[serde(skip)]
    pub(crate) name: String,
    /// What the story shows, in a sentence.
    pub(crate) story: String,
    /// Where it cannot be told, and why: a version, a binding, or both, as in `grpc-0.3`.
    #[serde(default)]
    not_applicable: BTreeMap<String, String>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verb {
    /// Send a message and wait for the answer.
    Send,
    /// Send a message and watch.
    Stream,
    /// Watch a task.
    Subscribe,
    /// Read on in a stream that was left open.
    Read,
    Get,
    List,
    Cancel,
    /// Look until the task is in the expected state.
    Await,
    /// Register webhooks for a task in all ways the version has, read, list and delete them.
    Push,
    ExtendedCard,
    /// Call what does not exist.
    Nothing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Step {
    pub(crate) r#do: Verb,
    /// The step is only for these; `except` is for all but these.
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    pub(crate) text: Option<String>,
    /// The task this is about, by the name a step before gave it; a name no step gave is an id nobody has.
    pub(crate) task: Option<String>,
    /// The context to name: that of a known task, or a new one of this name.
    pub(crate) context: Option<String>,
    /// The name for the task that comes of it.
    pub(crate) r#as: Option<String>,
    /// Whether to wait for the end of the turn.
    #[serde(default = "yes")]
    pub(crate) wait: bool,
    pub(crate) history_length: Option<i32>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) last_event_id: Option<String>,
    /// So many of the same at once, which all have to end alike.
    pub(crate) times: Option<usize>,
    /// The name for a stream that stays open, or of one to read on in.
    pub(crate) open: Option<String>,
    pub(crate) state: Option<String>,
    /// List what has changed since the task of this name did.
    pub(crate) since: Option<String>,
    pub(crate) page_size: Option<i32>,
    pub(crate) page: Option<Page>,
    #[serde(default)]
    pub(crate) with_artifacts: bool,
    #[serde(default)]
    pub(crate) expect: Expect,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Page {
    /// The one after the page that was listed last.
    Next,
    /// The same, with the token changed in one place.
    Tampered,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Expect {
    pub(crate) state: Option<String>,
    /// What the agent says with the status.
    pub(crate) said: Option<String>,
    pub(crate) artifacts: Option<Vec<String>>,
    pub(crate) history: Option<Vec<String>>,
    /// A message instead of a task.
    pub(crate) reply: Option<String>,
    /// The task is the one of this name.
    pub(crate) same_as: Option<String>,
    pub(crate) other_than: Option<String>,
    /// Its context is that of the task of this name.
    pub(crate) context_of: Option<String>,
    pub(crate) events: Option<Vec<String>>,
    /// The stream is over after these events.
    #[serde(default)]
    pub(crate) over: bool,
    /// The tasks of a page, by their names.
    pub(crate) tasks: Option<Vec<String>>,
    pub(crate) total: Option<i32>,
    pub(crate) more: Option<bool>,
    /// The kind of error it is refused with, and the field that names.
    pub(crate) error: Option<String>,
    pub(crate) field: Option<String>,
}

const fn yes() -> bool {
    true
}

impl Step {
    pub(crate) fn is_for(&self, combination: Combination) -> bool {
        let named = |words: &[String]| words.iter().any(|word| combination.is(word));
        (self.only.is_empty() || named(&self.only)) && !named(&self.except)
    }
}

impl Story {
    /// Every story in a folder, in the order of the file names.
    pub(crate) fn all_in(folder: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
        files.retain(|file| file.extension().is_some_and(|kind| kind == "toml"));
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }

    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("a scenario can be read");
        let mut story: Self = toml::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
        story.name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let known = |word: &String| Combination::ALL.iter().chain([&Combination::SWP]).any(|combination| combination.is(word));
        let words = story.steps.iter().flat_map(|step| step.only.iter().chain(&step.except)).chain(story.not_applicable.keys());
        if let Some(typo) = words.into_iter().find(|word| !known(word)) {
            panic!("{}: {typo:?} is neither a version nor a binding", file.display());
        }
        story
    }

    /// Why it cannot be told there.
    pub(crate) fn not_applicable(&self, combination: Combination) -> Option<&str> {
        self.not_applicable.iter().find(|(word, _)| combination.is(word)).map(|(_, reason)| reason.as_str())
    }
}
