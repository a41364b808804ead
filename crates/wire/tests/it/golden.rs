//! The exact bytes of every request, reply, event, error and card in every version, kept in `fixtures/`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p chancery-wire --test it golden` rewrites them; the diff is then the change to review.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chancery_protocol::{Error, ErrorKind, Operation, Reply, Version};
use chancery_wire::json::card::{adr, hybrid};
use chancery_wire::json::methods::name;
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec, Frames, errors as table};

use crate::samples::{self, calls};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// What one codec writes, by the name of its file.
type Written = BTreeMap<String, Vec<u8>>;

fn line(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(b'\n');
    bytes
}

fn requests(codec: &dyn Codec) -> Written {
    let mut written = Written::new();
    for (name, request) in calls::requests() {
        let mut out = Vec::new();
        if codec.encode_request(&mut out, &request).is_ok() {
            written.insert(format!("requests/{name}.json"), line(out));
        }
    }
    written
}

/// The operation a reply answers.
fn answered(reply: &Reply) -> Operation {
    match reply {
        Reply::Sent(_) => Operation::SendMessage,
        Reply::Task(_) => Operation::GetTask,
        Reply::Tasks(_) => Operation::ListTasks,
        Reply::PushConfig(_) => Operation::GetPushConfig,
        Reply::PushConfigs(_) => Operation::ListPushConfigs,
        Reply::PushConfigDeleted => Operation::DeletePushConfig,
        Reply::Card(_) => Operation::GetExtendedCard,
    }
}

/// The replies to what a version can ask.
fn replies(codec: &dyn Codec, version: Version) -> Written {
    let mut written = Written::new();
    for (file, reply) in calls::replies() {
        if name(version, answered(&reply)).is_some() {
            let mut out = Vec::new();
            codec.encode_reply(&mut out, &reply);
            written.insert(format!("replies/{file}.json"), line(out));
        }
    }
    written
}

fn events(codec: &dyn Codec, folder: &str, frames: &Frames) -> Written {
    let mut written = Written::new();
    for (id, (name, event)) in (1..).zip(samples::events()) {
        let mut frames = frames.clone();
        frames.set_event_id(id);
        codec.encode_event(&mut frames, &samples::face(), &event);
        written.insert(format!("{folder}/{name}.sse"), frames.take());
    }
    written
}

/// Every kind of error, a line each, in the order of `ErrorKind::ALL`.
fn errors(written: impl Fn(&Error) -> Vec<u8>) -> Written {
    let one = |kind| {
        let error = Error::new(kind, format!("a message about {kind:?}")).with_fact("limit", 5);
        if kind == ErrorKind::InvalidParams {
            Error { facts: error.facts, ..Error::invalid_field("message.parts[0]", "is odd") }
        } else {
            error
        }
    };
    let lines = ErrorKind::ALL.into_iter().flat_map(|kind| line(written(&one(kind)))).collect();
    Written::from([("errors/every-kind.jsonl".to_owned(), lines)])
}

/// Compares what is written with what is kept, or keeps it. A file that nothing writes any more is a fault too.
fn check(version: &str, written: Written) {
    let folder = fixtures().join(version);
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if update {
        let _ = std::fs::remove_dir_all(&folder);
    }
    for (name, bytes) in &written {
        let path = folder.join(name);
        if update {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        assert_eq!(String::from_utf8_lossy(bytes), String::from_utf8_lossy(&kept), "{version}/{name}");
    }
    let mut kept: Vec<String> = Vec::new();
    for kind in std::fs::read_dir(&folder).unwrap() {
        let kind = kind.unwrap();
        for file in std::fs::read_dir(kind.path()).unwrap() {
            kept.push(format!("{}/{}", kind.file_name().display(), file.unwrap().file_name().display()));
        }
    }
    kept.sort();
    assert_eq!(kept, written.into_keys().collect::<Vec<_>>(), "{version}");
}

/// What is written in a version can be read in it, and what was read writes the same bytes again.
fn check_read_back(codec: &dyn Codec, written: &Written) {
    let text = |name: &str| written.get(name).map(|bytes| std::str::from_utf8(bytes).unwrap());
    for (name, request) in calls::requests() {
        let Some(text) = text(&format!("requests/{name}.json")) else { continue };
        let read = codec.decode_request(request.operation(), text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut again = Vec::new();
        codec.encode_request(&mut again, &read).unwrap();
        assert_eq!(String::from_utf8(line(again)).unwrap(), text);
    }
    for (name, reply) in calls::replies() {
        let Some(text) = text(&format!("replies/{name}.json")) else { continue };
        let read = codec.decode_reply(answered(&reply), text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut again = Vec::new();
        codec.encode_reply(&mut again, &read);
        assert_eq!(String::from_utf8(line(again)).unwrap(), text);
    }
}

#[test]
fn version_1_0_is_written_as_kept() {
    let mut written = requests(&V1_0);
    written.extend(replies(&V1_0, Version::V1_0));
    check_read_back(&V1_0, &written);
    written.extend(events(&V1_0, "events", &Frames::json_rpc("\"call-1\"")));
    written.extend(events(&V1_0, "events-rest", &Frames::bare()));
    written.extend(errors(|error| table::json_rpc(error, Version::V1_0, "\"call-1\"")));
    let over_rest = errors(|error| table::rest(error, Version::V1_0));
    written.extend(over_rest.into_iter().map(|(name, bytes)| (name.replace("errors/", "errors-rest/"), bytes)));
    check("1.0", written);
}

#[test]
fn version_0_3_is_written_as_kept() {
    let mut written = requests(&V0_3);
    written.extend(replies(&V0_3, Version::V0_3));
    check_read_back(&V0_3, &written);
    written.extend(events(&V0_3, "events", &Frames::json_rpc("7")));
    written.extend(errors(|error| table::json_rpc(error, Version::V0_3, "7")));
    check("0.3", written);
}

#[test]
fn version_0_3_over_rest_is_written_as_kept() {
    let mut written = requests(&V0_3Rest);
    written.extend(replies(&V0_3Rest, Version::V0_3));
    check_read_back(&V0_3Rest, &written);
    written.extend(events(&V0_3Rest, "events", &Frames::bare()));
    written.extend(errors(|error| table::rest(error, Version::V0_3)));
    check("0.3-rest", written);
}

#[test]
fn the_original_is_written_as_kept() {
    let mut written = requests(&Original);
    written.extend(replies(&Original, Version::Original));
    check_read_back(&Original, &written);
    written.extend(events(&Original, "events", &Frames::json_rpc("7")));
    written.extend(events(&Original, "events-bare", &Frames::bare()));
    written.extend(errors(|error| table::json_rpc(error, Version::Original, "7")));
    check("original", written);
}

#[test]
fn the_served_cards_are_written_as_kept() {
    let card = calls::card();
    let written = [
        ("well-known/agent-card-1.0.json", V1_0.encode_card(&card)),
        ("well-known/agent-card-0.3.json", V0_3.encode_card(&card)),
        ("well-known/agent-card-hybrid.json", hybrid(&card)),
        ("well-known/agent.json", adr(&card)),
    ];
    check("served-cards", written.into_iter().map(|(name, bytes)| (name.to_owned(), line(bytes))).collect());
}
