//! The agent of both sides of the mounted row: the same words behind a bare handler and behind Chancery's router.

use chancery::{Artifact, Finished, Part, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait};

/// Says what it was told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parrot;

impl Parrot {
    pub(crate) const ARTIFACT: &str = "echo";

    pub(crate) fn say(self, told: &str) -> String {
        told.to_owned()
    }
}

#[async_trait]
impl TaskRunner for Parrot {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let said = self.say(turn.message.first_text().unwrap_or_default());
        updates.artifact(Artifact::new(Self::ARTIFACT, vec![Part::text(said)])).await?;
        Ok(updates.complete(None))
    }
}
