//! What 0.3 callers send and list by. One macro declares it for both JSON forms, as `members` does for the objects.

use serde::{Deserialize, Serialize};

use super::members::MessageMembers;
use super::state::State;
use crate::json::part::Read;

/// Declares what one form reads of a request:
///
/// - `state`, `part`: the types that read them.
/// - `push`: the name of the webhook in a configuration.
/// - `waits`: whether a caller waits who does not say.
/// - `also by alias`: snake_case names and the names of the proto are read too.
macro_rules! request_members {
    (
        state: $State:ident,
        part: $Part:ty,
        push: $push:literal,
        waits: $waits:literal
        $(, also by $alias:ident)?
    ) => {
        use std::sync::Arc;

        use chancery_protocol::lenient::{int32, non_empty, null_default};
        use chancery_protocol::{
            ContextId, ListTasks, Metadata, Part, SendConfiguration, SendMessage, Timestamp, Unknown,
        };

        use crate::json::v0_3::push::ConfigMembers;
        use crate::json::v0_3::request::set;

        #[derive(Deserialize)]
        #[serde(bound(deserialize = "P: Deserialize<'de>"))]
        pub(super) struct SendMembers<P = $Part> {
            /// The proto calls it `request` and its JSON name is `message`; clients send either.
            $(#[serde($alias = "request")])?
            message: MessageMembers<P>,
            #[serde(default, deserialize_with = "null_default")]
            configuration: ConfigurationMembers,
            metadata: Option<Metadata>,
            #[serde(default, rename = "$unknown")]
            unknown: Unknown<SendMessage>,
        }

        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ConfigurationMembers {
            #[serde(default, deserialize_with = "null_default")]
            $(#[serde($alias = "accepted_output_modes")])?
            accepted_output_modes: Vec<String>,
            #[serde(default, deserialize_with = "int32")]
            $(#[serde($alias = "history_length")])?
            history_length: Option<i32>,
            #[serde(rename = $push)]
            $(#[serde($alias = "push_notification")])?
            push: Option<ConfigMembers>,
            blocking: Option<bool>,
        }

        impl<P: Into<Part>> From<SendMembers<P>> for SendMessage {
            fn from(send: SendMembers<P>) -> Self {
                let configuration = send.configuration;
                Self {
                    tenant: None,
                    message: Arc::new(send.message.into()),
                    configuration: SendConfiguration {
                        accepted_output_modes: configuration.accepted_output_modes,
                        task_push_notification_config: configuration.push.map(|config| Box::new(config.of(None))),
                        history_length: set(configuration.history_length),
                        return_immediately: !configuration.blocking.unwrap_or($waits),
                    },
                    metadata: send.metadata,
                    client_task_id: None,
                    unknown: send.unknown,
                }
            }
        }

        /// `tasks/list` is only named by 0.3; what can be asked is what 1.0 lets ask.
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct ListParams {
            #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
            $(#[serde($alias = "context_id")])?
            context_id: Option<ContextId>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            status: Option<$State>,
            #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
            $(#[serde($alias = "page_size")])?
            page_size: Option<i32>,
            #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
            $(#[serde($alias = "page_token")])?
            page_token: Option<String>,
            #[serde(default, deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
            $(#[serde($alias = "history_length")])?
            history_length: Option<i32>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $(#[serde($alias = "status_timestamp_after")])?
            status_timestamp_after: Option<Timestamp>,
            #[serde(default, deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
            $(#[serde($alias = "include_artifacts")])?
            include_artifacts: bool,
        }

        impl From<&ListTasks> for ListParams {
            fn from(list: &ListTasks) -> Self {
                Self {
                    context_id: list.context_id.clone(),
                    status: list.status.map($State),
                    page_size: list.page_size,
                    page_token: list.page_token.clone(),
                    history_length: set(list.history_length),
                    status_timestamp_after: list.status_timestamp_after,
                    include_artifacts: list.include_artifacts,
                }
            }
        }

        impl From<ListParams> for ListTasks {
            fn from(list: ListParams) -> Self {
                Self {
                    tenant: None,
                    context_id: list.context_id,
                    status: list.status.map(|$State(state)| state),
                    page_size: list.page_size,
                    page_token: list.page_token,
                    history_length: set(list.history_length),
                    status_timestamp_after: list.status_timestamp_after,
                    include_artifacts: list.include_artifacts,
                }
            }
        }
    };
}

pub(super) use request_members;

request_members! {
    state: State,
    part: Read<false>,
    push: "pushNotificationConfig",
    // Callers of JSON-RPC expect to wait unless they say otherwise.
    waits: true
}
