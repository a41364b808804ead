//! Pieces that were put together have the same effect as one after the other.

use std::sync::Arc;

use chancery_protocol::{Artifact, ArtifactChunk, Metadata, Part, Task, TaskEvent, Unknown};
use chancery_rules::push::merge;
use chancery_rules::task_state::apply;
use proptest::prelude::*;

fn piece(append: bool, texts: &[String], metadata: Option<(u8, u8)>, last_chunk: bool) -> ArtifactChunk {
    let metadata = metadata.map(|(key, value)| serde_json::from_str::<Metadata>(&format!(r#"{{"k{key}":{value}}}"#)).unwrap());
    let parts = texts.iter().map(|text| Part::text(text.clone())).collect();
    let artifact = Artifact { metadata, ..Artifact::new("a", parts) };
    ArtifactChunk { artifact: Arc::new(artifact), append, last_chunk, metadata: None, unknown: Unknown::none() }
}

#[test]
fn only_pieces_that_continue_one_another_become_one() {
    let first = piece(false, &["x".to_owned()], None, false);
    let second = piece(true, &["y".to_owned()], None, true);
    let whole = merge([&first, &second]).unwrap();
    assert_eq!((whole.append, whole.last_chunk, whole.artifact.parts.len()), (false, true, 2));
    assert_eq!(merge([&second, &first]), None, "one that begins anew continues nothing");
    let mut other = second.clone();
    Arc::make_mut(&mut other.artifact).artifact_id = "b".into();
    assert_eq!(merge([&first, &other]), None);
    assert_eq!(merge([]), None);
    assert_eq!(merge([&second]), Some(second));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_task_is_the_same_after_the_whole_as_after_its_pieces(
        begins in any::<bool>(),
        pieces in prop::collection::vec((prop::collection::vec("[a-z]{0,3}", 0..3), prop::option::of((0..3_u8, any::<u8>())), any::<bool>()), 1..8),
    ) {
        let pieces: Vec<_> = pieces
            .iter()
            .enumerate()
            .map(|(index, (texts, metadata, last))| piece(index > 0 || !begins, texts, *metadata, *last))
            .collect();
        let mut one_by_one = serde_json::from_str::<Task>(r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#).unwrap();
        apply(&mut one_by_one, &TaskEvent::Artifact(piece(false, &["there".to_owned()], Some((0, 7)), false)));
        let mut at_once = one_by_one.clone();
        pieces.iter().for_each(|piece| apply(&mut one_by_one, &TaskEvent::Artifact(piece.clone())));
        apply(&mut at_once, &TaskEvent::Artifact(merge(&pieces).unwrap()));
        prop_assert_eq!(at_once, one_by_one);
    }
}
