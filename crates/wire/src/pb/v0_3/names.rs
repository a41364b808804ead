//! Resource names: `tasks/{task}` and `tasks/{task}/pushNotificationConfigs/{config}`.

use chancery_protocol::{Error, PushConfigRef, TaskId};

pub(super) fn of_task(id: &TaskId) -> String {
    format!("tasks/{id}")
}

pub(super) fn of_push_config(task: Option<&TaskId>, id: Option<&str>) -> String {
    format!("tasks/{}/pushNotificationConfigs/{}", task.map_or("", TaskId::as_str), id.unwrap_or_default())
}

pub(super) fn task(name: &str, field: &str) -> Result<TaskId, Error> {
    match read(name) {
        Some((task, None)) => Ok(task.into()),
        _ => Err(Error::invalid_field(field, "is not of the form tasks/{task}")),
    }
}

/// A configuration by name. Clients that know no id for it leave the last segment empty.
pub(super) fn push_config(name: &str, field: &str) -> Result<PushConfigRef, Error> {
    match read(name) {
        Some((task, Some(id))) => {
            let id = (!id.is_empty()).then(|| id.to_owned());
            Ok(PushConfigRef { tenant: None, task_id: task.into(), id })
        }
        _ => Err(Error::invalid_field(field, "is not of the form tasks/{task}/pushNotificationConfigs/{config}")),
    }
}

/// The ids in a name: of the task and, below it, of a configuration.
fn read(name: &str) -> Option<(&str, Option<&str>)> {
    let mut segments = name.strip_prefix("tasks/")?.split('/');
    let task = segments.next().filter(|id| !id.is_empty())?;
    match (segments.next(), segments.next(), segments.next()) {
        (None, ..) => Some((task, None)),
        (Some("pushNotificationConfigs"), Some(id), None) => Some((task, Some(id))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let id = TaskId::from("t-1");
        assert_eq!(task(&of_task(&id), "name").unwrap(), id);
        for config in [None, Some("p-1")] {
            let which = push_config(&of_push_config(Some(&id), config), "name").unwrap();
            assert_eq!((which.task_id, which.id.as_deref()), (id.clone(), config));
        }
    }

    #[test]
    fn anything_else_is_no_name() {
        for name in ["", "t-1", "tasks", "tasks/", "tasks//x", "task/t-1", "tasks/t-1/", "tasks/t-1/pushNotificationConfigs/p"] {
            assert_eq!(task(name, "name").unwrap_err().violations[0].field, "name", "{name}");
        }
        for name in ["tasks/t-1", "tasks/t-1/pushNotificationConfigs", "tasks/t/configs/p", "tasks/t/pushNotificationConfigs/p/q"]
        {
            assert_eq!(push_config(name, "parent").unwrap_err().violations[0].field, "parent", "{name}");
        }
    }
}
