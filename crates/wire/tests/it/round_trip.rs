//! Whatever a version can say comes back unchanged when it is written and read again.

use std::sync::Arc;

use chancery_protocol::{Operation, Reply, Request, TaskEvent};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec, Frames, TaskNames};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::any_model;
use crate::any_model::lost::Form;

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn fails(fault: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(fault.to_string())
}

fn request_returns(codec: &dyn Codec, form: Form, request: &Request) -> Result<(), TestCaseError> {
    let mut out = Vec::new();
    let written = codec.encode_request(&mut out, request);
    let Some(expected) = form.request(request) else {
        prop_assert!(written.is_err(), "what cannot be asked must not be written");
        return Ok(());
    };
    written.map_err(fails)?;
    let text = text(out);
    let read = codec.decode_request(request.operation(), &text).map_err(|fault| fails(format!("{fault}: {text}")))?;
    prop_assert_eq!(&read, &expected, "{}", text);
    let mut again = Vec::new();
    codec.encode_request(&mut again, &read).map_err(fails)?;
    prop_assert_eq!(String::from_utf8_lossy(&again), text, "what was read is written with the same bytes");
    Ok(())
}

fn reply_returns(codec: &dyn Codec, form: Form, reply: &Reply) -> Result<(), TestCaseError> {
    let operation = match reply {
        Reply::Sent(_) => Operation::SendMessage,
        Reply::Task(_) => Operation::CancelTask,
        Reply::Tasks(_) => Operation::ListTasks,
        Reply::PushConfig(_) => Operation::CreatePushConfig,
        Reply::PushConfigs(_) => Operation::ListPushConfigs,
        Reply::PushConfigDeleted => Operation::DeletePushConfig,
        Reply::Card(_) => Operation::GetExtendedCard,
    };
    let Some(expected) = form.reply(reply) else { return Ok(()) };
    let mut out = Vec::new();
    codec.encode_reply(&mut out, reply);
    let text = text(out);
    let read = codec.decode_reply(operation, &text).map_err(|fault| fails(format!("{fault}: {text}")))?;
    prop_assert_eq!(&read, &expected, "{}", text);
    if matches!(reply, Reply::Tasks(_)) {
        // Whether artifacts were asked for is not said, so a page without any is written without them.
        return Ok(());
    }
    let mut again = Vec::new();
    codec.encode_reply(&mut again, &read);
    prop_assert_eq!(String::from_utf8_lossy(&again), text, "what was read is written with the same bytes");
    Ok(())
}

fn event_returns(codec: &dyn Codec, form: Form, event: &TaskEvent) -> Result<(), TestCaseError> {
    let Some(expected) = form.event(event) else { return Ok(()) };
    let mut frames = Frames::bare();
    let face = TaskNames {
        task_id: "t".into(),
        context_id: "c".into(),
        client_task_id: Some("mine".into()),
        artifacts: Vec::new(),
        stays_open: false,
    };
    codec.encode_event(&mut frames, &face, event);
    let text = text(frames.take());
    let payloads: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    prop_assert_eq!(payloads.len(), 1, "{}", text);
    let (told, mut read) = codec.decode_event(payloads[0]).map_err(|fault| fails(format!("{fault}: {text}")))?;
    if let (Form::Original, TaskEvent::Artifact(chunk)) = (form, &mut read) {
        Arc::make_mut(&mut chunk.artifact).artifact_id = "".into();
    }
    prop_assert_eq!(&read, &expected, "{}", text);
    // Updates name their task as they were told to; a task and a message name their own.
    if let (TaskEvent::Status(_) | TaskEvent::Artifact(_), Some(told)) = (&read, told) {
        let expected = if form == Form::Original { "mine" } else { "t" };
        prop_assert_eq!(told.task_id.as_str(), expected);
    }
    Ok(())
}

/// Failures are printed whole; nothing is kept between runs. `PROPTEST_CASES` sets how many are tried.
fn settings() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

macro_rules! returns {
    ($($name:ident: $codec:expr, $form:expr;)*) => {
        $(
            mod $name {
                use super::*;

                proptest! {
                    #![proptest_config(settings())]

                    #[test]
                    fn every_request_comes_back(request in any_model::request()) {
                        request_returns(&$codec, $form, &request)?;
                    }

                    #[test]
                    fn every_reply_comes_back(reply in any_model::reply()) {
                        reply_returns(&$codec, $form, &reply)?;
                    }

                    #[test]
                    fn every_event_comes_back(event in any_model::event()) {
                        event_returns(&$codec, $form, &event)?;
                    }
                }
            }
        )*
    };
}

returns! {
    version_1_0: V1_0, Form::V1_0;
    version_0_3: V0_3, Form::V0_3;
    version_0_3_over_rest: V0_3Rest, Form::V0_3Rest;
    the_original: Original, Form::Original;
}

proptest! {
    #![proptest_config(settings())]

    /// Whatever JSON arrives is read or refused.
    #[test]
    fn no_json_makes_a_codec_panic(json in any_model::loose_json()) {
        let codecs: [&dyn Codec; 4] = [&V1_0, &V0_3, &V0_3Rest, &Original];
        for codec in codecs {
            for operation in Operation::ALL {
                let _ = codec.decode_request(operation, &json);
                let _ = codec.decode_reply(operation, &json);
            }
            let _ = codec.decode_event(&json);
            let _ = codec.decode_card(&json);
        }
    }
}
