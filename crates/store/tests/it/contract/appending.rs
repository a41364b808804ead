//! Appends: what is recorded is found and read back, in order, and nothing out of turn gets in.

use std::sync::Arc;

use chancery_core::{Append, Appended, Creation, LogEntry, Names, Progress, fitting};
use chancery_protocol::{Json, Message, OpenObject, Part, Role, TaskEvent, TaskState, Unknown, Version};

use crate::contract::sample::{Opened, ada, at, bob, change, creation, on_every_store, piece, pieces, record, task};

on_every_store! {
    a_task_is_found_as_it_was_recorded,
    entries_are_read_in_pages_that_start_anywhere,
    a_page_weighs_what_it_may_and_has_at_least_one_entry,
    what_is_new_of_several_tasks_is_read_at_once,
    every_kind_of_entry_is_read_back_whole,
    members_nobody_knows_are_read_back_in_their_spelling,
    another_owners_task_is_no_task,
    an_append_out_of_turn_is_refused_and_changes_nothing,
    entries_that_do_not_count_are_refused,
    a_task_is_made_only_once,
    nothing_is_appended_to_a_task_that_does_not_exist,
    of_two_appends_from_the_same_view_one_is_refused,
    parallel_appends_keep_the_order_of_each_task,
    submitted_and_working_tasks_are_unfinished,
    the_store_says_that_it_works,
}

async fn a_task_is_found_as_it_was_recorded(Opened { store, .. }: Opened) {
    let mut first = record("t1", ada());
    first.dialect = Version::Original.into();
    first.client_task_id = Some("mine".into());
    let first = Arc::new(first);
    assert_eq!(store.append(creation(&first)).await.unwrap(), Appended::Recorded);
    let advanced = change(&first, 2, TaskState::InputRequired, at(77));
    assert_eq!(store.append(advanced.clone()).await.unwrap(), Appended::Recorded);

    let found = store.find(&ada(), "t1", Names::Server).await.unwrap().unwrap();
    assert_eq!(*found.task, *first);
    assert_eq!(found.progress, advanced.progress);
    assert_eq!(store.find_any("t1").await.unwrap().unwrap(), found);
    assert_eq!(store.find(&ada(), "t2", Names::ServerOrClient).await.unwrap(), None);
    assert_eq!(store.find_any("t2").await.unwrap(), None);
}

async fn entries_are_read_in_pages_that_start_anywhere(Opened { store, .. }: Opened) {
    let task = task("t1");
    // Neighbours on both sides, whose entries must never show up.
    for other in ["t0", "t2"] {
        store.append(creation(&crate::contract::sample::task(other))).await.unwrap();
    }
    store.append(creation(&task)).await.unwrap();
    // Appends of different length, one longer than a row holds.
    for (first, last) in [(2, 2), (3, 9), (10, 10), (11, 300), (301, 340)] {
        store.append(pieces(&task, first, last)).await.unwrap();
    }
    store.append(creation(&crate::contract::sample::task("t3"))).await.unwrap();

    let all = store.entries(&task.id, 0, usize::MAX).await.unwrap();
    assert_eq!(all.len(), 340);
    assert!(all[1..].iter().zip(2..).all(|(entry, seq)| **entry == *piece(seq)));
    for after in (0..345).chain([1 << 24, u64::MAX]) {
        for limit in [0, 1, 2, 7, 64, 65, 1000] {
            let page = store.entries(&task.id, after, limit).await.unwrap();
            let from = usize::try_from(after).unwrap().min(all.len());
            let to = (from + limit).min(all.len());
            assert_eq!(page, all[from..to], "after {after} limit {limit}");
        }
    }
    assert_eq!(store.entries(&"unknown".into(), 0, 10).await.unwrap(), Vec::new());
}

/// A piece with a text of so many bytes.
fn large_piece(seq: u64, bytes: usize) -> Arc<LogEntry> {
    let event = TaskEvent::Said(Arc::new(Message::text(Role::User, "m", "x".repeat(bytes))));
    Arc::new(LogEntry { seq, at: at(1), event })
}

async fn a_page_weighs_what_it_may_and_has_at_least_one_entry(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    // In one append: entries that share a row, one that is larger than a row, and such that follow it.
    let sizes = [100, 100, 100, 400_000, 100, 200_000, 200_000, 100];
    let entries: Vec<_> = sizes.iter().zip(2..).map(|(bytes, seq)| large_piece(seq, *bytes)).collect();
    store.append(Append { entries: entries.clone(), ..pieces(&task, 2, 9) }).await.unwrap();
    let all = store.entries(&task.id, 0, usize::MAX).await.unwrap();
    assert_eq!(all[1..], entries, "in their order, however they are kept");
    for after in 0..9 {
        for bytes in [0, 1, 164, 328, 492, 1000, 400_064, 400_500, 1_000_000] {
            for limit in [1, 3, 100] {
                let page = store.entries_within(&task.id, after, limit, bytes).await.unwrap();
                let rest = &all[usize::try_from(after).unwrap()..];
                let rest = &rest[..limit.min(rest.len())];
                assert_eq!(page, rest[..fitting(rest, bytes)], "after {after} limit {limit} bytes {bytes}");
                assert!(!page.is_empty());
            }
        }
    }
    assert_eq!(store.entries_within(&task.id, 9, 10, 10).await.unwrap(), Vec::new());
}

async fn what_is_new_of_several_tasks_is_read_at_once(Opened { store, .. }: Opened) {
    let mut logs = Vec::new();
    for (id, sizes) in [("t1", [100, 400_000, 100]), ("t2", [100; 3]), ("t3", [300_000; 3])] {
        let task = task(id);
        store.append(creation(&task)).await.unwrap();
        for (bytes, seq) in sizes.iter().zip(2..) {
            store.append(Append { entries: vec![large_piece(seq, *bytes)], ..pieces(&task, seq, seq) }).await.unwrap();
        }
        logs.push(store.entries(&task.id, 0, usize::MAX).await.unwrap());
    }
    for bytes in [1, 500, 1_000_000] {
        for after in 0..5 {
            // In any order, some of them twice, and one that is not there.
            let asked = [("t3", after), ("t1", 4 - after), ("none", 0), ("t2", after), ("t1", 1)];
            let asked = asked.map(|(id, after)| (chancery_protocol::TaskId::from(id), after));
            let read = store.entries_of(&asked, bytes).await.unwrap();
            assert_eq!(read.len(), asked.len());
            for ((id, after), read) in asked.iter().zip(&read) {
                let log = logs.iter().zip(["t1", "t2", "t3"]).find(|(_, name)| *name == id.as_str()).map(|(log, _)| log);
                let Some(log) = log else {
                    assert!(read.is_empty());
                    continue;
                };
                let rest = &log[usize::try_from(*after).unwrap()..];
                assert_eq!(read[..], rest[..read.len()], "{id} after {after}");
                assert!(
                    read.len() <= fitting(rest, bytes) && (rest.is_empty() || !read.is_empty()),
                    "{id} after {after} {bytes}"
                );
            }
        }
    }
    assert_eq!(store.entries_of(&[], 1).await.unwrap(), Vec::<Vec<_>>::new());
}

async fn every_kind_of_entry_is_read_back_whole(Opened { store, .. }: Opened) {
    let task = task("t1");
    let made = creation(&task);
    let said = TaskEvent::Said(Arc::new(Message::text(Role::User, "m1", "naïve \u{0} \n \u{1F600}")));
    let said = Append { entries: vec![Arc::new(LogEntry { seq: 2, at: at(-5), event: said })], ..pieces(&task, 2, 2) };
    let worked = pieces(&task, 3, 3);
    let ended = change(&task, 4, TaskState::Completed, at(9));
    let expected: Vec<_> = [&made, &said, &worked, &ended].into_iter().flat_map(|append| append.entries.clone()).collect();
    for append in [made, said, worked, ended] {
        store.append(append).await.unwrap();
    }
    assert_eq!(store.entries(&task.id, 0, 10).await.unwrap(), expected);

    let reply = crate::contract::sample::task("t2");
    let message = TaskEvent::Replied(Arc::new(Message::text(Role::Agent, "m2", "hello")));
    let entry = Arc::new(LogEntry { seq: 1, at: at(3), event: message });
    let progress = Progress { state: TaskState::Completed, status_at: at(3), seq: 1, bytes: 5, message_only: true };
    let replied = Append {
        task: Arc::clone(&reply),
        creation: Some(Creation::default()),
        progress,
        entries: vec![Arc::clone(&entry)],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    };
    store.append(replied).await.unwrap();
    assert_eq!(store.entries(&reply.id, 0, 10).await.unwrap(), [entry]);
    assert!(store.find(&ada(), "t2", Names::Server).await.unwrap().unwrap().progress.message_only);
}

async fn members_nobody_knows_are_read_back_in_their_spelling(Opened { store, .. }: Opened) {
    const SPELLED: &str = r#"{"n":[1.0e5, 0.10,12345678901234567890],"t":"\u0041\/"}"#;
    fn unknown<T: OpenObject>() -> Unknown<T> {
        let mut unknown = Unknown::none();
        assert!(unknown.insert("x \"é\"", Json::parse(SPELLED.to_owned()).unwrap()));
        unknown
    }
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    let part = Part { unknown: unknown(), ..Part::text("a") };
    let message = Message { unknown: unknown(), ..Message::of_parts(Role::User, "m1", vec![part]) };
    let said = Append {
        entries: vec![Arc::new(LogEntry { seq: 2, at: at(5), event: TaskEvent::Said(Arc::new(message)) })],
        ..pieces(&task, 2, 2)
    };
    let mut ended = change(&task, 3, TaskState::Completed, at(9));
    let mut entry = LogEntry::clone(&ended.entries[0]);
    let TaskEvent::Status(status) = &mut entry.event else { panic!("a status") };
    (status.unknown, status.status.unknown) = (unknown(), unknown());
    ended.entries = vec![Arc::new(entry)];
    for append in [said, ended] {
        store.append(append).await.unwrap();
    }
    let read = store.entries(&task.id, 1, 10).await.unwrap();
    let text = serde_json::to_string(&read.iter().map(|entry| &entry.event).collect::<Vec<_>>()).unwrap();
    assert_eq!(text.matches(&format!(r#""x \"é\"":{SPELLED}"#)).count(), 4, "{text}");
}

async fn another_owners_task_is_no_task(Opened { store, .. }: Opened) {
    let mut owned = record("t1", ada());
    owned.client_task_id = Some("mine".into());
    store.append(creation(&Arc::new(owned))).await.unwrap();
    for stranger in [bob(), chancery_protocol::Caller::new("other", "ada")] {
        for name in ["t1", "mine"] {
            assert_eq!(store.find(&stranger, name, Names::ServerOrClient).await.unwrap(), None);
        }
    }
}

async fn an_append_out_of_turn_is_refused_and_changes_nothing(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    store.append(pieces(&task, 2, 4)).await.unwrap();
    let before = store.find_any("t1").await.unwrap();
    for (first, last) in [(1, 1), (2, 4), (4, 4), (6, 6), (100, 101)] {
        let refusal = store.append(pieces(&task, first, last)).await.unwrap_err();
        assert!(refusal.to_string().contains("ends with entry 4"), "{refusal}");
    }
    assert_eq!(store.find_any("t1").await.unwrap(), before);
    assert_eq!(store.entries(&task.id, 0, 100).await.unwrap().len(), 4);
    store.append(pieces(&task, 5, 5)).await.unwrap();
}

async fn entries_that_do_not_count_are_refused(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    let gap = Append { entries: vec![piece(2), piece(4)], ..pieces(&task, 2, 4) };
    let twice = Append { entries: vec![piece(2), piece(2)], ..pieces(&task, 2, 3) };
    let short = Append { entries: vec![piece(2)], ..pieces(&task, 2, 3) };
    let zero = Append { entries: vec![piece(0)], ..pieces(&task, 0, 0) };
    let late = Append { creation: Some(Creation::default()), ..pieces(&crate::contract::sample::task("t2"), 2, 3) };
    for append in [gap, twice, short, zero, late] {
        assert!(store.append(append.clone()).await.is_err(), "{append:?}");
    }
    assert_eq!(store.entries(&task.id, 0, 100).await.unwrap().len(), 1);
    assert_eq!(store.find_any("t2").await.unwrap(), None);
}

async fn a_task_is_made_only_once(Opened { store, .. }: Opened) {
    store.append(creation(&task("t1"))).await.unwrap();
    let refusal = store.append(creation(&Arc::new(record("t1", bob())))).await.unwrap_err();
    assert!(refusal.to_string().contains("exists already"), "{refusal}");
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().task.owner, ada());
}

async fn nothing_is_appended_to_a_task_that_does_not_exist(Opened { store, .. }: Opened) {
    let refusal = store.append(pieces(&task("t1"), 1, 1)).await.unwrap_err();
    assert!(refusal.to_string().contains("no task t1"), "{refusal}");
    assert_eq!(store.find_any("t1").await.unwrap(), None);
}

async fn of_two_appends_from_the_same_view_one_is_refused(Opened { store, .. }: Opened) {
    let task = task("t1");
    store.append(creation(&task)).await.unwrap();
    for seq in 2..100 {
        let done = change(&task, seq, TaskState::Completed, at(1));
        let canceled = change(&task, seq, TaskState::Canceled, at(2));
        let (done, canceled) = tokio::join!(store.append(done), store.append(canceled));
        assert!(done.is_ok() != canceled.is_ok(), "entry {seq}");
    }
}

async fn parallel_appends_keep_the_order_of_each_task(Opened { store, .. }: Opened) {
    const TASKS: usize = 40;
    const ENTRIES: u64 = 25;
    let writers = (0..TASKS).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let task = task(&format!("t{number}"));
            store.append(creation(&task)).await.unwrap();
            for seq in 2..=ENTRIES {
                store.append(pieces(&task, seq, seq)).await.unwrap();
                // What was answered is there, at once.
                let last = store.entries(&task.id, seq - 1, 10).await.unwrap();
                assert_eq!(last, [piece(seq)]);
            }
        })
    });
    futures::future::try_join_all(writers).await.unwrap();
    for number in 0..TASKS {
        let entries = store.entries(&format!("t{number}").into(), 0, 1000).await.unwrap();
        assert!(entries.iter().map(|entry| entry.seq).eq(1..=ENTRIES));
    }
}

async fn submitted_and_working_tasks_are_unfinished(Opened { store, .. }: Opened) {
    for state in TaskState::ALL {
        let task = task(state.name());
        store.append(creation(&task)).await.unwrap();
        store.append(change(&task, 2, state, at(5))).await.unwrap();
    }
    let mut unfinished: Vec<_> = store.unfinished().await.unwrap().iter().map(|stored| stored.task.id.to_string()).collect();
    unfinished.sort();
    assert_eq!(unfinished, [TaskState::Submitted.name(), TaskState::Working.name()]);
}

async fn the_store_says_that_it_works(Opened { store, .. }: Opened) {
    store.check().await.unwrap();
}
