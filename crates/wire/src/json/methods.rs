//! The JSON-RPC method names of every version.

use chancery_protocol::{Operation, Version};

/// What a method name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub version: Version,
    pub operation: Operation,
    /// The original protocol has a method of this name too: the task's own dialect decides.
    pub ambiguous: bool,
}

type Row = (&'static str, Version, Operation);

const METHODS: [Row; 29] = [
    ("SendMessage", Version::V1_0, Operation::SendMessage),
    ("SendStreamingMessage", Version::V1_0, Operation::StreamMessage),
    ("GetTask", Version::V1_0, Operation::GetTask),
    ("ListTasks", Version::V1_0, Operation::ListTasks),
    ("CancelTask", Version::V1_0, Operation::CancelTask),
    ("SubscribeToTask", Version::V1_0, Operation::SubscribeToTask),
    ("CreateTaskPushNotificationConfig", Version::V1_0, Operation::CreatePushConfig),
    ("GetTaskPushNotificationConfig", Version::V1_0, Operation::GetPushConfig),
    ("ListTaskPushNotificationConfigs", Version::V1_0, Operation::ListPushConfigs),
    ("DeleteTaskPushNotificationConfig", Version::V1_0, Operation::DeletePushConfig),
    ("GetExtendedAgentCard", Version::V1_0, Operation::GetExtendedCard),
    ("message/send", Version::V0_3, Operation::SendMessage),
    ("message/stream", Version::V0_3, Operation::StreamMessage),
    ("tasks/get", Version::V0_3, Operation::GetTask),
    ("tasks/list", Version::V0_3, Operation::ListTasks),
    ("tasks/cancel", Version::V0_3, Operation::CancelTask),
    ("tasks/resubscribe", Version::V0_3, Operation::SubscribeToTask),
    ("tasks/pushNotificationConfig/set", Version::V0_3, Operation::CreatePushConfig),
    ("tasks/pushNotificationConfig/get", Version::V0_3, Operation::GetPushConfig),
    ("tasks/pushNotificationConfig/list", Version::V0_3, Operation::ListPushConfigs),
    ("tasks/pushNotificationConfig/delete", Version::V0_3, Operation::DeletePushConfig),
    ("agent/getAuthenticatedExtendedCard", Version::V0_3, Operation::GetExtendedCard),
    ("tasks/send", Version::Original, Operation::SendMessage),
    ("tasks/sendSubscribe", Version::Original, Operation::StreamMessage),
    ("tasks/get", Version::Original, Operation::GetTask),
    ("tasks/cancel", Version::Original, Operation::CancelTask),
    ("tasks/resubscribe", Version::Original, Operation::SubscribeToTask),
    ("tasks/pushNotification/set", Version::Original, Operation::CreatePushConfig),
    ("tasks/pushNotification/get", Version::Original, Operation::GetPushConfig),
];

/// The version and operation of a method name. A name that two versions share is given as the newer one's.
pub fn method(name: &str) -> Option<Method> {
    let mut rows = METHODS.iter().filter(|row| row.0 == name);
    let &(_, version, operation) = rows.next()?;
    Some(Method { version, operation, ambiguous: rows.next().is_some() })
}

/// The name of an operation in a version, if it exists there.
pub fn name(version: Version, operation: Operation) -> Option<&'static str> {
    METHODS.iter().find(|row| row.1 == version && row.2 == operation).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_two_versions_share_are_ambiguous() {
        let shared: Vec<_> = METHODS.iter().filter(|row| method(row.0).unwrap().ambiguous).map(|row| row.0).collect();
        let twice = ["tasks/get", "tasks/cancel", "tasks/resubscribe"];
        assert_eq!(shared, [twice, twice].concat());
        for name in twice {
            assert_eq!(method(name).unwrap().version, Version::V0_3);
        }
    }

    #[test]
    fn every_name_and_its_operation_lead_to_each_other() {
        for (text, version, operation) in METHODS {
            assert_eq!(name(version, operation), Some(text));
            assert_eq!(method(text).unwrap().operation, operation);
        }
        assert_eq!(method("tasks/send").unwrap().version, Version::Original);
        assert_eq!(method("SendMessage").unwrap().version, Version::V1_0);
    }

    #[test]
    fn one_zero_and_zero_three_have_every_operation_and_the_original_has_seven() {
        for operation in Operation::ALL {
            assert!(name(Version::V1_0, operation).is_some());
            assert!(name(Version::V0_3, operation).is_some());
        }
        assert_eq!(Operation::ALL.into_iter().filter(|op| name(Version::Original, *op).is_some()).count(), 7);
    }

    #[test]
    fn names_are_exact() {
        for text in ["", "sendMessage", "Message/send", "tasks/send ", "message/sends"] {
            assert_eq!(method(text), None);
        }
    }
}
