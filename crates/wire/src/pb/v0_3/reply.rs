//! Encodes replies: one function per kind of answer.

use chancery_protocol::{Error, Reply, Sent};

use super::{card, message, proto, push, task};
use crate::pb::calls::replies;
use crate::pb::fields::other_reply;

replies! { payload: Msg, push_configs: ListTaskPushNotificationConfigResponse }
