//! Holds what clients were told against the record: after each kill its chain is whole, and every acknowledged decision is in it.

use std::collections::{HashMap, HashSet};

use chancery_evidence::bundle::verify;
use serde_json::Value;

use super::check::Complaints;
use super::clients::Told;
use crate::operating::cli::run;
use crate::support::line::is_terminal;
use crate::support::server::Home;

#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// How many entries there are.
    pub(super) entries: usize,
    /// When the last one happened.
    since: Option<String>,
    /// What is recorded of each task: its types of entries, and its states.
    tasks: HashMap<String, HashSet<String>>,
}

impl Recorded {
    /// Exports what is new, checks it, and looks for what was acknowledged.
    pub(super) fn hold<'a>(&mut self, home: &Home, told: impl Iterator<Item = &'a Told>) -> Complaints {
        let mut complaints = Complaints::new();
        if let Err(complaint) = self.take_in(home) {
            complaints.push(complaint);
        }
        for told in told {
            let id = told.task["id"].as_str().unwrap_or_default();
            let known = self.tasks.get(id);
            let state = told.task["status"]["state"].as_str().unwrap_or_default();
            let due = ["chancery.task.requested", "chancery.decision.admitted"]
                .into_iter()
                .chain(Some(state).filter(|state| is_terminal(state)));
            for due in due {
                if !known.is_some_and(|known| known.contains(due)) {
                    complaints.push(format!("{}: {due} of task {id} was acknowledged and is not in the record", told.call.key));
                }
            }
        }
        complaints
    }

    fn take_in(&mut self, home: &Home) -> Result<(), String> {
        let file = home.path().join("record.tar.gz");
        let file_name = file.to_string_lossy().into_owned();
        let mut arguments = vec!["evidence", "export", "--output", &file_name];
        if let Some(since) = &self.since {
            arguments.extend(["--since", since]);
        }
        let ran = run(home, &arguments);
        if ran.stderr.contains("no entry that matches") {
            return Ok(());
        }
        if ran.code != Some(0) {
            return Err(format!("the record could not be exported: {}", ran.stderr));
        }
        let bundle = std::fs::read(&file).map_err(|error| error.to_string())?;
        let (checked, report) = verify(&bundle, &[]).map_err(|fault| format!("the record is not whole: {fault}"))?;
        self.entries += report.entries;
        for event in &checked.events {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let (Some(kind), Some(task)) = (text(&event["type"]), text(&event["data"]["task"])) else { continue };
            let known = self.tasks.entry(task).or_default();
            known.insert(kind);
            known.extend(text(&event["data"]["state"]));
            self.since = text(&event["time"]);
        }
        Ok(())
    }
}
