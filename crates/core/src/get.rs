//! One task, as it is now.

use chancery_protocol::{CallContext, Error, GetTask, Shown};

use crate::agents::Agent;
use crate::check;
use crate::find::shown;
use crate::service::Inner;

impl Inner {
    pub(crate) async fn get(&self, context: &CallContext, agent: &Agent, get: GetTask) -> Result<Shown, Error> {
        check::history_length("historyLength", get.history_length)?;
        let stored = self.find(context, agent, &get.id).await?;
        let task = self.current(&stored).await?;
        Ok(shown(&stored.task, task, get.history_length))
    }
}
