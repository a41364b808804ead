//! Whatever arrives, the readers answer with a request or an error, never with a panic.

use chancery_protocol::{Operation, Version};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::rest::{Found, Verb, find};
use chancery_wire::{Codec, JsonLimits, errors, json_rpc, scan};
use proptest::prelude::*;

const CODECS: [&dyn Codec; 4] = [&V1_0, &V0_3, &V0_3Rest, &Original];

/// Requests of every version, to be broken.
const SAMPLES: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{"raw":"AAA="},{"data":{"k":[1,2.5e3,null]}}],"metadata":{"a":"b"}},"configuration":{"historyLength":"3","returnImmediately":true}}}"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"a"},{"kind":"file","file":{"bytes":"AAA=","mimeType":"a/b"}},{"kind":"data","data":{"k":1}}]},"configuration":{"blocking":false}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"tasks/send","params":{"id":"t","sessionId":"s","message":{"role":"user","parts":[{"type":"text","text":"a"}]},"skill":"x","policy":null}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"ListTasks","params":{"pageSize":5,"status":"TASK_STATE_WORKING","statusTimestampAfter":"2026-01-01T00:00:00Z"}}"#,
    r#"{"message":{"message_id":"m","role":"ROLE_USER","content":[{"text":"a"},{"file":{"fileWithBytes":"AAA="}},{"data":{"data":{}}}]},"configuration":{"blocking":true}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"t","url":"http://h/","authentication":{"scheme":"Bearer"}}}"#,
];

fn read(bytes: &[u8]) {
    let limits = JsonLimits::default();
    let Ok(text) = scan(bytes, &limits) else { return };
    let params = match json_rpc::open(text, 256) {
        Ok(call) => call.params,
        Err(refused) => {
            let written = errors::json_rpc(&refused.error, Version::V1_0, refused.id);
            assert!(serde_json::from_slice::<serde_json::Value>(&written).is_ok(), "a broken answer");
            text
        }
    };
    for codec in CODECS {
        for operation in Operation::ALL {
            if let Err(error) = codec.decode_request(operation, params) {
                assert!(serde_json::from_slice::<serde_json::Value>(&errors::rest(&error, Version::V0_3)).is_ok());
            }
            let _ = codec.decode_reply(operation, params);
        }
        let _ = codec.decode_event(params);
        let _ = codec.decode_card(params);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
    }

    #[test]
    fn any_text_of_json_pieces_is_read_or_refused(
        text in prop::collection::vec(prop::sample::select(vec!["{", "}", "[", "]", "\"", ":", ",", "\\", "null", "1e9", "\"id\"", "\"parts\"", "u", "é"]), 0..60)
    ) {
        read(text.concat().as_bytes());
    }

    #[test]
    fn a_broken_request_is_read_or_refused(sample in 0_usize..6, at in any::<prop::sample::Index>(), cut in 0_usize..6, put in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut bytes = SAMPLES[sample].as_bytes().to_vec();
        let at = at.index(bytes.len());
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, put);
        read(&bytes);
    }

    #[test]
    fn any_path_and_query_is_found_or_not(path in "/[a-zA-Z0-9:/%{}.é-]{0,40}", query in "[a-zA-Z0-9=&%+]{0,40}") {
        for verb in [Verb::Get, Verb::Post, Verb::Delete] {
            if let Found::Call(call) = find(verb, &path) {
                let _ = call.params(Some(&query), "");
            }
        }
    }
}

#[test]
fn every_sample_is_whole_before_it_is_broken() {
    for sample in SAMPLES {
        assert!(scan(sample.as_bytes(), &JsonLimits::default()).is_ok(), "{sample}");
        assert!(serde_json::from_str::<serde_json::Value>(sample).is_ok(), "{sample}");
    }
}
