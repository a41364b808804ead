//! Watches the config file and reloads it after a writer has finished.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chancery_core::LoopNeed;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use super::Reloader;
use crate::build_error::BuildError;
use crate::config::digest;

/// How long nothing may happen to the file before it is looked at: saving is often several steps.
const QUIET: Duration = Duration::from_millis(50);

/// Where files are mounted into containers they are links into this, which is replaced.
const MOUNTED: &str = "..data";

/// What happened to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happened {
    /// A program is writing the file.
    Written,
    /// It is whole: who wrote it closed it, or it was put there by renaming.
    Settled,
}

impl Reloader {
    /// Reloads the file whenever it has changed, until the node stops.
    pub(crate) fn watch(self: &Arc<Self>) -> Result<(), BuildError> {
        let source = self.source.as_ref().ok_or(BuildError::NoConfigFile)?;
        let unwatched = |error: notify::Error| BuildError::Watch(error.to_string());
        let (folder, name) = folder_and_name(&source.file);
        let (tell, mut events) = mpsc::unbounded_channel();
        let since_start = tell.clone();
        let mut watcher = notify::recommended_watcher(move |event: Result<notify::Event, notify::Error>| {
            let happened = match event {
                Ok(event) if concerns(&event, &name) => meaning(event.kind),
                Ok(_) => None,
                // Something was missed; the file tells.
                Err(_) => Some(Happened::Settled),
            };
            if let Some(happened) = happened {
                let _ = tell.send(happened);
            }
        })
        .map_err(unwatched)?;
        // The folder and not the file: editors put a new file in the place of the old one.
        watcher.watch(&folder, RecursiveMode::NonRecursive).map_err(unwatched)?;
        tracing::info!(file = %source.file.display(), "watching the config file");
        // It may have changed between the start that read it and now.
        let now = std::fs::read_to_string(&source.file).map(|text| digest(&text));
        if now.ok().as_ref() != Some(&source.digest) {
            let _ = since_start.send(Happened::Settled);
        }
        drop(since_start);
        let (reloader, stopping) = (Arc::clone(self), self.running.service().chancery.shutdown_token());
        let loops = self.running.service().chancery.loops().clone();
        loops.start("config file", LoopNeed::Optional, async move {
            let _watcher = watcher;
            loop {
                tokio::select! {
                    settled = settled(&mut events) => if !settled { return },
                    () = stopping.cancelled() => return,
                }
                // What is wrong with it is logged, and shown to whoever asks.
                let _ = reloader.reload().await;
            }
        });
        Ok(())
    }
}

fn folder_and_name(file: &Path) -> (PathBuf, Option<OsString>) {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    (folder.to_owned(), file.file_name().map(ToOwned::to_owned))
}

fn concerns(event: &notify::Event, name: &Option<OsString>) -> bool {
    event.paths.is_empty()
        || event.paths.iter().filter_map(|path| path.file_name()).any(|file| Some(file) == name.as_deref() || file == MOUNTED)
}

/// Only some systems say when a file that was written is closed; on the others quiet has to do.
fn meaning(kind: EventKind) -> Option<Happened> {
    let tells_of_closing = cfg!(target_os = "linux");
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Happened::Settled),
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => Some(Happened::Settled),
        // Owner, mode and times say nothing new.
        EventKind::Modify(ModifyKind::Metadata(_)) => None,
        EventKind::Create(_) | EventKind::Modify(_) if tells_of_closing => Some(Happened::Written),
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Any | EventKind::Other => Some(Happened::Settled),
    }
}

/// Returns true when the file has changed and its writer is done. Returns false when no more events come.
async fn settled(events: &mut mpsc::UnboundedReceiver<Happened>) -> bool {
    let Some(mut last) = events.recv().await else { return false };
    loop {
        let next = match last {
            Happened::Written => events.recv().await,
            Happened::Settled => match tokio::time::timeout(QUIET, events.recv()).await {
                Ok(next) => next,
                Err(_) => return true,
            },
        };
        match next {
            Some(happened) => last = happened,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_file_is_looked_at_when_it_is_whole_and_once_for_all_steps_of_a_save() {
        let (tell, mut events) = mpsc::unbounded_channel();
        for happened in [Happened::Written, Happened::Settled, Happened::Written, Happened::Settled] {
            tell.send(happened).unwrap();
        }
        assert!(settled(&mut events).await);
        assert!(events.is_empty());
        tell.send(Happened::Settled).unwrap();
        tell.send(Happened::Written).unwrap();
        assert!(settled(&mut events).now_or_never().is_none(), "somebody is writing");
        assert!(events.is_empty(), "and no pause is long enough to end that");
        drop(tell);
        assert!(!settled(&mut events).await);
    }

    #[test]
    fn only_what_ends_a_change_of_this_file_counts() {
        let renamed = EventKind::Modify(ModifyKind::Name(notify::event::RenameMode::To));
        assert_eq!(meaning(renamed), Some(Happened::Settled));
        assert_eq!(meaning(EventKind::Access(AccessKind::Close(AccessMode::Write))), Some(Happened::Settled));
        assert_eq!(meaning(EventKind::Access(AccessKind::Close(AccessMode::Read))), None);
        let event = notify::Event::new(renamed).add_path("/etc/x/chancery.toml".into());
        assert!(concerns(&event, &Some("chancery.toml".into())));
        assert!(!concerns(&event, &Some("other.toml".into())));
        let mounted = notify::Event::new(renamed).add_path("/etc/x/..data".into());
        assert!(concerns(&mounted, &Some("chancery.toml".into())));
        assert_eq!(folder_and_name(Path::new("a.toml")), (".".into(), Some("a.toml".into())));
    }
}
