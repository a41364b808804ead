//! Pages that a test puts up and changes: cards and keys of agents that are never called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::scripted::{Asked, Script, Scripted};

pub(super) const CARD: &str = "/.well-known/agent-card.json";

/// Each page has its text's length for a tag.
pub(super) struct Pages {
    pub(super) agent: Scripted,
    texts: Arc<Mutex<HashMap<String, String>>>,
}

impl Pages {
    pub(super) async fn open() -> Self {
        let texts = Arc::<Mutex<HashMap<String, String>>>::default();
        let shown = Arc::clone(&texts);
        let agent = Scripted::start(|_| {
            move |asked: &Asked| match shown.lock().expect("no test panics inside").get(&asked.path) {
                None => Script::page(404, "text/plain", "nothing here"),
                // An empty page is one that cannot be had just now.
                Some(text) if text.is_empty() => Script::page(503, "text/plain", "later"),
                Some(text) => {
                    let tag = format!("\"{}\"", text.len());
                    if asked.headers.get("if-none-match") == Some(&tag) {
                        return Script::page_with(304, "application/json", &[("ETag", &tag)], "");
                    }
                    Script::page_with(200, "application/json", &[("ETag", &tag)], text)
                }
            }
        })
        .await;
        Self { agent, texts }
    }

    pub(super) fn hide(&self, path: &str) {
        self.texts.lock().expect("no test panics inside").remove(path);
    }

    pub(super) fn show(&self, path: &str, text: &str) {
        self.texts.lock().expect("no test panics inside").insert(path.to_owned(), text.to_owned());
    }
}
