//! Encodes replies: one function per kind of answer.

use chancery_protocol::{Error, Reply, Sent, TaskPage};

use super::{card, message, proto, push, task};
use crate::pb::calls::replies;
use crate::pb::fields::other_reply;

replies! { payload: Message, push_configs: ListTaskPushNotificationConfigsResponse }

pub fn tasks(reply: Reply) -> Result<proto::ListTasksResponse, Error> {
    let Reply::Tasks(page) = reply else { return Err(other_reply()) };
    let TaskPage { tasks, next_page_token, page_size, total_size, include_artifacts } = page;
    let artifacts = |task| if include_artifacts { task::write_artifacts(task) } else { Vec::new() };
    let tasks = tasks.iter().map(|shown| task::write_with(&shown.task, artifacts(&shown.task))).collect();
    Ok(proto::ListTasksResponse { tasks, next_page_token, page_size, total_size })
}
