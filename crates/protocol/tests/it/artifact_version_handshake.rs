//! Two sides agree on the newest version of typed artifacts that both read, and nothing newer is taken for it unasked.

use chancery_protocol::{ArtifactKind, ArtifactVersions, ErrorKind, Metadata, negotiate_version};
use serde_json::json;

fn versions(supported: &[&str]) -> ArtifactVersions {
    ArtifactVersions { supported: supported.iter().map(ToString::to_string).collect(), ..ArtifactVersions::default() }
}

fn witness() -> ArtifactKind {
    ArtifactKind::RuLakeWitness {
        witness: "ab".repeat(32),
        data_ref: "s3://bucket/notes".into(),
        capabilities: vec!["read".into()],
    }
}

#[test]
fn artifact_version_handshake() {
    let (old, new) = (versions(&["1"]), versions(&["1", "2"]));
    assert_eq!(old.agree(&new.supported).unwrap(), "1");
    assert_eq!(new.agree(&old.supported).unwrap(), "1");
    let sent = witness().to_artifact("a");
    for side in [&old, &new] {
        assert_eq!(ArtifactKind::read(&sent, side).unwrap(), witness());
    }
}

#[test]
fn the_highest_common_version_is_a_number_not_a_word() {
    let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(negotiate_version(&named(&["1", "2", "10"]), &named(&["2", "10"])).as_deref(), Some("10"));
    assert_eq!(negotiate_version(&named(&["1", "z"]), &named(&["z"])), None);
    assert_eq!(versions(&["1"]).agree(&named(&["9"])).unwrap_err().kind, ErrorKind::ContentTypeNotSupported);
}

#[test]
fn a_newer_artifact_is_refused_unless_its_reader_settles_for_less() {
    let mut sent = witness().to_artifact("a");
    let tags = json!({ "artifact_kind": "rulake_witness", "artifact_kind_version": "2" });
    sent.metadata = Some(Metadata::from_object([("ruvector".to_owned(), tags)].into_iter().collect()));
    let refusal = ArtifactKind::from_artifact(&sent).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::ContentTypeNotSupported);
    assert!(refusal.facts.contains(&("artifact_kind_version", "2".to_owned())), "{refusal:?}");
    let content = ArtifactVersions { accept_lower_version_artifacts: true, ..ArtifactVersions::default() };
    assert_eq!(ArtifactKind::read(&sent, &content).unwrap(), witness());
}

#[test]
fn a_version_that_is_no_text_is_not_taken_for_the_first() {
    let mut sent = witness().to_artifact("a");
    let tags = json!({ "artifact_kind": "rulake_witness", "artifact_kind_version": 2 });
    sent.metadata = Some(Metadata::from_object([("ruvector".to_owned(), tags)].into_iter().collect()));
    assert!(ArtifactKind::from_artifact(&sent).is_err());
}
