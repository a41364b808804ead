//! Stores the learnt facts about remote agents in a file of the data folder. Calls never wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_core::spawn_watched;
use chancery_outbound::remote::{AgentFacts, FactsKeeper};
use tokio::task::JoinHandle;

use crate::data_folder::DataFolder;

const FILE: &str = "agent_facts.json";
/// How long facts may be in memory alone: what a node that is killed can lose.
const WRITE_WITHIN: Duration = Duration::from_millis(200);

/// The facts of all replicas, by the replica's name.
#[derive(Debug)]
pub(crate) struct FactsFile {
    state: Arc<Mutex<State>>,
    folder: Option<Arc<DataFolder>>,
    /// The task that writes next, or the one that wrote last.
    writing: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    facts: BTreeMap<String, AgentFacts>,
    /// A write is scheduled.
    due: bool,
}

impl FactsFile {
    /// A file that cannot be read is as good as none: everything in it can be learnt again.
    pub(crate) fn open(folder: Option<Arc<DataFolder>>) -> Self {
        let bytes = folder.as_ref().and_then(|folder| folder.read(FILE).ok().flatten());
        let facts = bytes.map(|bytes| serde_json::from_slice(&bytes));
        let facts = facts.transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, file = FILE, "cannot read the learnt facts about agents; the node learns them again");
            None
        });
        let state = Arc::new(Mutex::new(State { facts: facts.unwrap_or_default(), due: false }));
        Self { state, folder, writing: Mutex::default() }
    }

    /// Forgets the replicas that `is_gone` names.
    pub(crate) fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.state).facts.retain(|replica, _| !is_gone(replica));
        self.write_soon();
    }

    /// Has everything written shortly, once for all changes until then.
    fn write_soon(&self) {
        let Some(folder) = self.folder.clone() else { return };
        if std::mem::replace(&mut lock(&self.state).due, true) {
            return;
        }
        let state = Arc::clone(&self.state);
        if tokio::runtime::Handle::try_current().is_err() {
            // A command without a runtime has no calls that would wait.
            return write(&folder, &state);
        }
        // A task that waits to write must not keep the folder from the next node.
        let folder = Arc::downgrade(&folder);
        let writing = spawn_watched("facts about agents", async move {
            tokio::time::sleep(WRITE_WITHIN).await;
            if let Some(folder) = folder.upgrade() {
                let _ = tokio::task::spawn_blocking(move || write(&folder, &state)).await;
            }
        });
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = Some(writing);
    }
}

impl Drop for FactsFile {
    fn drop(&mut self) {
        if let Some(writing) = self.writing.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            writing.abort();
        }
        let due = lock(&self.state).due;
        if let Some(folder) = self.folder.as_ref().filter(|_| due) {
            write(folder, &self.state);
        }
    }
}

fn write(folder: &DataFolder, state: &Mutex<State>) {
    let bytes = {
        let mut state = lock(state);
        state.due = false;
        serde_json::to_vec_pretty(&state.facts)
    };
    let written =
        bytes.map_err(|fault| fault.to_string()).and_then(|bytes| folder.write(FILE, &bytes).map_err(|fault| fault.to_string()));
    if let Err(error) = written {
        tracing::warn!(
            error,
            file = FILE,
            "cannot write the learnt facts about agents; the node learns them again after a restart"
        );
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FactsKeeper for FactsFile {
    fn facts(&self, replica: &str) -> Option<AgentFacts> {
        lock(&self.state).facts.get(replica).cloned()
    }

    fn save(&self, replica: &str, facts: &AgentFacts) {
        // Why the last call failed is news, not knowledge: it says nothing after a restart.
        let facts = AgentFacts { last_fault: None, ..facts.clone() };
        lock(&self.state).facts.insert(replica.to_owned(), facts);
        self.write_soon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::Version;

    #[tokio::test]
    async fn facts_are_on_disk_soon_after_they_were_learnt() {
        let home = tempfile::tempdir().unwrap();
        let folder = Arc::new(DataFolder::claim(home.path()).unwrap());
        let file = FactsFile::open(Some(Arc::clone(&folder)));
        let facts = AgentFacts { speaks: Some(Version::V0_3), ..AgentFacts::default() };
        file.save("a#1", &AgentFacts::default());
        file.save("a#1", &facts);
        file.save("b#1", &facts);
        let path = home.path().join(FILE);
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let again = FactsFile::open(Some(Arc::clone(&folder)));
        assert_eq!((again.facts("a#1"), again.facts("c#1")), (Some(facts.clone()), None));
        again.forget(|replica| replica == "a#1");
        assert_eq!(again.facts("a#1"), None);
        while FactsFile::open(Some(Arc::clone(&folder))).facts("a#1").is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[test]
    fn a_damaged_file_is_no_reason_not_to_start() {
        let home = tempfile::tempdir().unwrap();
        let folder = Arc::new(DataFolder::claim(home.path()).unwrap());
        std::fs::write(home.path().join(FILE), "{").unwrap();
        assert_eq!(FactsFile::open(Some(folder)).facts("a#1"), None);
    }
}
