//! Typed artifacts keep their kind over every version and binding, and are plain parts to everybody else.

use std::sync::Arc;

use chancery_protocol::{Artifact, ArtifactChunk, ArtifactKind, ErrorKind, Metadata, Part, PartContent, TaskEvent, Unknown};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec, Frames, pb};
use serde_json::{Value, json};

use crate::samples;

fn kinds() -> Vec<ArtifactKind> {
    let witness = "5e".repeat(32);
    vec![
        ArtifactKind::Text("plain words".into()),
        ArtifactKind::StructuredJson { value: json!({ "answer": 42, "tags": ["a"] }), schema: Some("urn:example:answer".into()) },
        ArtifactKind::StructuredJson { value: json!({ "kind": "structured_json", "value": 1 }), schema: None },
        ArtifactKind::VectorRef {
            backend: "tier".into(),
            collection: "notes".into(),
            witness: witness.clone(),
            dim: 128,
            count: 1_000_000,
        },
        ArtifactKind::RuLakeWitness {
            witness,
            data_ref: "gs://bucket/prod/notes".into(),
            capabilities: vec!["read".into(), "search".into()],
        },
        ArtifactKind::Raw(vec![Part::text("one"), Part::data(&json!({ "two": 2 }))]),
    ]
}

fn event(artifact: Artifact) -> TaskEvent {
    let artifact = Arc::new(artifact);
    TaskEvent::Artifact(ArtifactChunk { artifact, append: false, last_chunk: true, metadata: None, unknown: Unknown::none() })
}

fn artifact(event: TaskEvent) -> Artifact {
    let TaskEvent::Artifact(chunk) = event else { panic!("{event:?}") };
    Arc::unwrap_or_clone(chunk.artifact)
}

/// Each way an artifact can travel.
fn everywhere(sent: &Artifact) -> Vec<(&'static str, Artifact)> {
    let codecs: [(&str, &dyn Codec); 4] = [("1.0", &V1_0), ("0.3", &V0_3), ("0.3 REST", &V0_3Rest), ("original", &Original)];
    let mut arrived: Vec<_> = codecs
        .into_iter()
        .map(|(name, codec)| {
            let mut frames = Frames::bare();
            let mut face = samples::face();
            face.artifacts.push(sent.artifact_id.clone());
            codec.encode_event(&mut frames, &face, &event(sent.clone()));
            let text = String::from_utf8(frames.take().to_vec()).unwrap();
            let payload = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("one frame");
            (name, artifact(codec.decode_event(payload).unwrap().1))
        })
        .collect();
    let v1 = pb::v1::event::write(&samples::face(), &event(sent.clone())).unwrap();
    arrived.push(("1.0 gRPC", artifact(pb::v1::event::read(v1).unwrap().1)));
    let v0_3 = pb::v0_3::event::write(&samples::face(), &event(sent.clone())).unwrap();
    arrived.push(("0.3 gRPC", artifact(pb::v0_3::event::read(v0_3).unwrap().1)));
    arrived
}

#[test]
fn artifact_kinds() {
    for kind in kinds() {
        for (way, arrived) in everywhere(&kind.to_artifact("artifact-1")) {
            assert_eq!(ArtifactKind::from_artifact(&arrived).unwrap(), kind, "{way}");
        }
    }
}

#[test]
fn a_part_keeps_its_kind_in_a_message() {
    for kind in kinds() {
        if let [part] = &kind.to_parts()[..] {
            assert_eq!(ArtifactKind::from_part(part).unwrap(), kind);
        }
    }
}

#[test]
fn whoever_knows_no_kinds_sees_text_and_data() {
    let contents: Vec<Value> =
        kinds().iter().map(|kind| serde_json::to_value(&kind.to_artifact("a").parts[0]).unwrap()).collect();
    assert_eq!(contents[0]["text"], "plain words");
    assert_eq!(contents[1]["data"], json!({ "answer": 42, "tags": ["a"] }));
    assert_eq!(contents[1]["metadata"]["schema"], "urn:example:answer");
    assert_eq!(contents[4]["metadata"]["ruvector"]["rvlake_witness"], json!("5e".repeat(32)));
    assert_eq!(contents[4]["data"]["capabilities"], json!(["read", "search"]));
}

#[test]
fn a_kind_nobody_knows_is_opaque_data() {
    let mut sent = kinds()[4].to_artifact("a");
    let tags = |kind: &str| json!({ "ruvector": { "artifact_kind": kind, "artifact_kind_version": "1" } });
    for holder in [&mut sent.metadata, &mut sent.parts[0].metadata] {
        let Value::Object(object) = tags("hologram") else { unreachable!() };
        *holder = Some(Metadata::from_object(object));
    }
    for (way, arrived) in everywhere(&sent) {
        let ArtifactKind::Raw(parts) = ArtifactKind::from_artifact(&arrived).unwrap() else { panic!("{way}") };
        assert!(matches!(parts[0].content, PartContent::Data(_)), "{way}");
    }
}

#[test]
fn a_mark_that_names_another_witness_is_refused() {
    let mut sent = kinds()[4].to_artifact("a");
    let mut metadata = sent.parts[0].metadata.take().unwrap().to_object();
    metadata["ruvector"]["rvlake_witness"] = json!("00".repeat(32));
    sent.parts[0].metadata = Some(Metadata::from_object(metadata));
    assert_eq!(ArtifactKind::from_artifact(&sent).unwrap_err().kind, ErrorKind::InvalidParams);
}

#[test]
fn what_others_put_inside_the_data_is_read_too() {
    let data = json!({ "kind": "structured_json", "value": { "n": 1 }, "schema": "urn:x" });
    let mut sent = Artifact::new("a", vec![Part::data(&data)]);
    let Value::Object(object) = json!({ "ruvector": { "artifact_kind": "structured_json", "artifact_kind_version": "1" } })
    else {
        unreachable!()
    };
    sent.metadata = Some(Metadata::from_object(object));
    let expected = ArtifactKind::StructuredJson { value: json!({ "n": 1 }), schema: Some("urn:x".into()) };
    assert_eq!(ArtifactKind::from_artifact(&sent).unwrap(), expected);
}
