//! After a restart: tasks nobody works on any more are taken up again, or fail with the restart as their reason.

use std::sync::Arc;

use chancery_protocol::{Error, TaskState};

use crate::Stored;
use crate::find::internal;
use crate::govern::allot::Allotment;
use crate::live::Said;
use crate::runner::AfterRestart;
use crate::service::{Chancery, Inner};
use crate::whole::whole_message;

/// What a start found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub failed: usize,
    pub resumed: usize,
}

impl Chancery {
    /// To be called once, before the first call is taken.
    pub async fn recover(&self) -> Result<Recovered, Error> {
        let mut recovered = Recovered::default();
        let mut allotments = self.0.restore().await?;
        for stored in self.0.store.unfinished().await.map_err(internal)? {
            let allotment = allotments.remove(&stored.task.id);
            match self.0.take_up(stored, allotment).await? {
                AfterRestart::Fail => recovered.failed += 1,
                AfterRestart::Resume => recovered.resumed += 1,
            }
        }
        Ok(recovered)
    }
}

impl Inner {
    async fn take_up(self: &Arc<Self>, stored: Stored, allotment: Option<Box<Allotment>>) -> Result<AfterRestart, Error> {
        let agent = self.agents.load().get(&stored.task.agent).cloned();
        let live = self.open(stored).await?;
        let agent = agent.filter(|agent| agent.runner.after_restart() == AfterRestart::Resume);
        if let (Some(agent), Some(said)) = (agent, Said::again(&live)) {
            let message = match self.desk.get() {
                Some(desk) => whole_message(desk, &live.record.id, &said.message).await?,
                None => Arc::clone(&said.message),
            };
            if let Some((said, token)) = live.begin_turn(Said { allotment, message, ..said }) {
                self.execute(&live, &agent, said, token, true).await;
            }
            return Ok(AfterRestart::Resume);
        }
        if let Some(allotment) = allotment {
            live.give(allotment);
        }
        let reason = "the node restarted while this task was being worked on; send the message again";
        self.end_by_force(&live, TaskState::Failed, Some(reason.to_owned())).await;
        Ok(AfterRestart::Fail)
    }
}
