//! The stage of a task, as a number that indexes test.

use chancery_core::Progress;
use chancery_protocol::TaskState;

use crate::numbering;

/// The `stage` of a task, which follows from its state. It has a number of its own because the indexes of
/// unfinished and of finished tasks test it at each write. To test a state against a list, SQLite needs a
/// temporary table.
#[derive(Clone, Copy)]
pub(crate) enum TaskStage {
    Unfinished = 1,
    Waiting = 2,
    Finished = 3,
}

impl TaskStage {
    pub(crate) fn of(progress: &Progress) -> Self {
        match progress.state {
            _ if numbering::is_finished(progress) => Self::Finished,
            TaskState::Submitted | TaskState::Working => Self::Unfinished,
            _ => Self::Waiting,
        }
    }
}
