//! Requests and answers that both schemas have in the same shape, as one macro for each direction.

/// Declares how messages that a caller sends are read:
///
/// - `tenant`: the field of the tenant, if the schema has one.
/// - `message`: the field of the message.
///
/// What a caller says about the answer is read by the `read_configuration` of the schema.
macro_rules! sent_messages {
    ($(tenant: $tenant:ident,)? message: $message:ident) => {
        pub fn send_message(request: proto::SendMessageRequest) -> Result<Request, Error> {
            read_send(request).map(Request::SendMessage)
        }

        pub fn stream_message(request: proto::SendMessageRequest) -> Result<Request, Error> {
            read_send(request).map(Request::StreamMessage)
        }

        fn read_send(request: proto::SendMessageRequest) -> Result<SendMessage, Error> {
            let message = required(request.$message, stringify!($message))?;
            Ok(SendMessage {
                tenant: first_text([$(request.$tenant)?]),
                message: Arc::new(message::read(message).within(stringify!($message))?),
                configuration: read_configuration(request.configuration.unwrap_or_default()).within("configuration")?,
                metadata: metadata(request.metadata, "metadata")?,
                client_task_id: None,
                unknown: Default::default(),
            })
        }
    };
}

/// Declares the replies, one function for each kind of answer:
///
/// - `payload`: the variant of an answer to a message that is a message.
/// - `push_configs`: the type of a page of webhooks.
macro_rules! replies {
    (payload: $Payload:ident, push_configs: $PushConfigs:ident) => {
        pub fn sent(reply: Reply) -> Result<proto::SendMessageResponse, Error> {
            use proto::send_message_response::Payload;
            let payload = match reply {
                Reply::Sent(Sent::Task(shown)) => Payload::Task(task::write(&shown.task)),
                Reply::Sent(Sent::Message(message)) => Payload::$Payload(message::write(&message)),
                _ => return Err(other_reply()),
            };
            Ok(proto::SendMessageResponse { payload: Some(payload) })
        }

        pub fn task(reply: Reply) -> Result<proto::Task, Error> {
            match reply {
                Reply::Task(shown) => Ok(task::write(&shown.task)),
                _ => Err(other_reply()),
            }
        }

        pub fn push_config(reply: Reply) -> Result<proto::TaskPushNotificationConfig, Error> {
            match reply {
                Reply::PushConfig(config) => Ok(push::write(&config)),
                _ => Err(other_reply()),
            }
        }

        pub fn push_configs(reply: Reply) -> Result<proto::$PushConfigs, Error> {
            match reply {
                Reply::PushConfigs(page) => Ok(proto::$PushConfigs {
                    configs: page.configs.iter().map(push::write).collect(),
                    next_page_token: page.next_page_token,
                }),
                _ => Err(other_reply()),
            }
        }

        /// The answer to a delete is empty.
        pub fn push_config_deleted(reply: Reply) -> Result<(), Error> {
            match reply {
                Reply::PushConfigDeleted => Ok(()),
                _ => Err(other_reply()),
            }
        }

        pub fn card(reply: Reply) -> Result<proto::AgentCard, Error> {
            match reply {
                Reply::Card(card) => Ok(card::write(&card)),
                _ => Err(other_reply()),
            }
        }
    };
}

/// Declares how a peer's answers are read, one function for each kind:
///
/// - `version`: the version that the peer speaks.
/// - `payload`: the variant of an answer to a message that is a message, and its name in the schema.
/// - `push_configs`: the type of a page of webhooks.
macro_rules! peer_replies {
    (version: $version:expr, payload: $Payload:ident as $payload:literal, push_configs: $PushConfigs:ident) => {
        pub fn sent(response: proto::SendMessageResponse) -> Result<Reply, Error> {
            use proto::send_message_response::Payload;
            of_peer(required(response.payload, "payload").and_then(|payload| {
                Ok(Reply::Sent(match payload {
                    Payload::Task(task) => Sent::Task(read_shown(task).within("task")?),
                    Payload::$Payload(message) => Sent::Message(Arc::new(message::read(message).within($payload)?)),
                }))
            }))
        }

        pub fn task(task: proto::Task) -> Result<Reply, Error> {
            of_peer(read_shown(task).map(Reply::Task))
        }

        fn read_shown(task: proto::Task) -> Result<NamedTask, Error> {
            Ok(NamedTask { task: Arc::new(task::read(task)?), dialect: $version.into(), client_task_id: None })
        }

        pub fn push_config(config: proto::TaskPushNotificationConfig) -> Result<Reply, Error> {
            of_peer(push::read(config).map(Reply::PushConfig))
        }

        pub fn push_configs(response: proto::$PushConfigs) -> Result<Reply, Error> {
            Ok(Reply::PushConfigs(PushConfigPage {
                configs: of_peer(list(response.configs, "configs", push::read))?,
                next_page_token: response.next_page_token,
            }))
        }

        pub fn card(card: proto::AgentCard) -> Result<Reply, Error> {
            card::read(card).map(|card| Reply::Card(Arc::new(card)))
        }
    };
}

pub(super) use {peer_replies, replies, sent_messages};
