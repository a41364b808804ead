//! Ids and names with control characters are refused, and nothing of them is written.

use std::sync::Arc;

use chancery_core::{Append, Freeze, FreezeScope, Link, ListFilter, LogEntry, TaskRecord};
use chancery_protocol::{Artifact, ArtifactChunk, Caller, Message, Part, Role, TaskEvent};

use crate::contract::outbox::new_registration;
use crate::contract::sample::{Opened, ada, at, creation, creation_with_key, decision, governed, on_every_store, record, task};

on_every_store! {
    an_id_or_a_name_with_a_control_character_is_refused_and_nothing_is_written,
}

/// A line break, the end of a C string, the first character of a terminal's escape, DEL, and one of C1.
const CONTROLS: [&str; 5] = ["a\nb", "\0", "\u{1b}[2J", "x\u{7f}", "x\u{9b}2J"];

/// Appends that would each write such a text in another place.
fn tainted(bad: &str) -> Vec<(&'static str, Append)> {
    let plain = || record("t", ada());
    let made = |record: TaskRecord| creation(&Arc::new(record));
    let message = || Arc::new(Message::of_parts(Role::User, bad, vec![Part::text("x")]));
    let entry = |event| vec![Arc::new(LogEntry { seq: 1, at: at(1_000), event })];
    let link = |peer: &str, task: &str, context: &str| {
        Some(Link { peer: peer.into(), task: Some(task.into()), context: Some(context.into()) })
    };
    let mut skilled = governed(&plain(), "t", 7);
    Arc::make_mut(&mut skilled.kinship).skill = Some(bad.into());
    let artifact = Arc::new(Artifact::new(bad, vec![Part::text("x")]));
    let piece = ArtifactChunk { artifact, append: false, last_chunk: true, metadata: None, unknown: Default::default() };
    vec![
        ("task", made(TaskRecord { id: bad.into(), ..plain() })),
        ("context", made(TaskRecord { context_id: bad.into(), ..plain() })),
        ("agent", made(TaskRecord { agent: bad.into(), ..plain() })),
        ("tenant", made(TaskRecord { owner: Caller::new(bad, "ada"), ..plain() })),
        ("caller", made(TaskRecord { owner: Caller::new("acme", bad), ..plain() })),
        ("client's name", made(TaskRecord { client_task_id: Some(bad.into()), ..plain() })),
        ("idempotency key", creation_with_key(&task("t"), bad, 1, at(9_000))),
        ("peer", Append { link: link(bad, "x", "y"), ..made(plain()) }),
        ("peer's task", Append { link: link("p", bad, "y"), ..made(plain()) }),
        ("peer's context", Append { link: link("p", "x", bad), ..made(plain()) }),
        ("skill", Append { governed: Some(Box::new(skilled)), ..made(plain()) }),
        ("message", Append { entries: entry(TaskEvent::Said(message())), ..made(plain()) }),
        ("reply", Append { entries: entry(TaskEvent::Replied(message())), ..made(plain()) }),
        ("artifact", Append { entries: entry(TaskEvent::Artifact(piece)), ..made(plain()) }),
        ("webhook", Append { register: Some(Box::new(new_registration(&plain(), bad))), ..made(plain()) }),
    ]
}

async fn an_id_or_a_name_with_a_control_character_is_refused_and_nothing_is_written(Opened { store, outbox, .. }: Opened) {
    for bad in CONTROLS {
        for (place, append) in tainted(bad) {
            let id = append.task.id.clone();
            let refusal = store.append(append).await.expect_err(place);
            assert!(refusal.message.contains("control character"), "{place}: {refusal}");
            assert_eq!(store.find_any(id.as_str()).await.unwrap(), None, "{place}");
        }
        assert_eq!(store.keyed(&ada(), bad, at(0)).await.unwrap(), None);
        let freeze = Freeze { scope: FreezeScope::Caller(bad.into()), by: "op".into(), at: at(1), why: None };
        assert!(store.freeze(freeze).await.is_err());
        assert_eq!(store.freezes().await.unwrap(), []);
        let refused = Arc::unwrap_or_clone(decision("d", None));
        assert!(store.decide(Arc::new(chancery_core::Decision { caller: bad.into(), ..refused })).await.is_err());
        assert_eq!(store.decisions(10).await.unwrap(), []);
    }
    assert_eq!(store.list(&ListFilter::default(), None, 10).await.unwrap().total, 0);
    store.append(creation(&task("t"))).await.expect("a plain one is taken");
    for bad in CONTROLS {
        assert!(outbox.register(new_registration(&record("t", ada()), bad)).await.is_err());
    }
    assert_eq!(outbox.registrations(&"t".into(), 0, 10).await.unwrap(), []);
}
