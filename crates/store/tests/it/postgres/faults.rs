//! When PostgreSQL says no: who hears of it, who does not, and that work goes on.

use std::sync::Arc;

use chancery_core::{Append, Freeze, FreezeScope, LogEntry, Names, Store, StoreError, SweepPlan};
use chancery_protocol::{Message, Role, TaskEvent, TaskState};
use chancery_store::PostgresStore;

use crate::contract::sample::{ada, at, change, creation, decision, governed_creation, pieces, spend, task};
use crate::server::TestDatabase;

async fn opened() -> (PostgresStore, TestDatabase) {
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    (database.open().await, database)
}

/// Asks for all appends while somebody else holds the writer's row, so that each shares its batch with a neighbour.
async fn together(store: &PostgresStore, database: &TestDatabase, appends: Vec<Append>) -> Vec<Result<(), StoreError>> {
    let other = database.session().await;
    other.batch_execute("BEGIN; SELECT * FROM writers FOR UPDATE").await.unwrap();
    let appends = appends.into_iter().map(async |append| store.append(append).await.map(drop));
    let release = async { other.batch_execute("ROLLBACK").await.unwrap() };
    // Polled in this order: each append is queued at its first poll.
    let (answers, ()) = futures::join!(futures::future::join_all(appends), release);
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_cannot_be_written_does_not_fail_its_neighbours() {
    let (store, database) = opened().await;
    let tasks: Vec<_> = (0..20).map(|number| task(&format!("t{number:02}"))).collect();
    for task in &tasks {
        store.append(creation(task)).await.unwrap();
    }
    // Where the next row of one task's log belongs, there is one already.
    let session = database.session().await;
    session.batch_execute("INSERT INTO log SELECT num, 2, 2, '[]' FROM tasks WHERE id = 't07'").await.unwrap();
    let ends = tasks.iter().map(|task| change(task, 2, TaskState::Completed, at(2))).collect();
    let answers = together(&store, &database, ends).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 7, "{number}: {answer:?}");
    }
    let refusal = answers[7].as_ref().unwrap_err().to_string();
    assert!(refusal.starts_with("writing to the log failed"), "{refusal}");
    assert_eq!(store.find_any("t07").await.unwrap().unwrap().progress.seq, 1);
    assert_eq!(store.find_any("t08").await.unwrap().unwrap().progress.seq, 2);

    // The batch was taken back and done again; its tasks are counted once.
    let keep_all = SweepPlan { keep_at_most: Some(19), at_most: 100, ..SweepPlan::default() };
    assert_eq!(store.sweep(keep_all).await.unwrap(), 0);
    let keep_fewer = SweepPlan { keep_at_most: Some(18), ..keep_all };
    assert_eq!(store.sweep(keep_fewer).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_last_part_cannot_be_written_leaves_none_of_the_others() {
    let (store, database) = opened().await;
    let (old, new, other) = (task("old"), task("new"), task("other"));
    store.append(governed_creation(&old, "old", 1)).await.unwrap();
    let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                       IF new.id LIKE 'bad%' THEN RAISE check_violation USING MESSAGE = 'not this one'; END IF; RETURN new; END $$;
                   CREATE TRIGGER refusing BEFORE INSERT ON decisions FOR EACH ROW EXECUTE FUNCTION refuse()";
    database.session().await.batch_execute(trigger).await.unwrap();

    let bad = |append: Append| Append { spend: Some(spend(9, Some(9))), decision: Some(decision("bad", None)), ..append };
    let good = Append { decision: Some(decision("good", Some("other"))), ..governed_creation(&other, "other", 1) };
    let batch = vec![bad(change(&old, 2, TaskState::Completed, at(2))), good, bad(governed_creation(&new, "old", 1))];
    let answers = together(&store, &database, batch).await;
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);
    let refusal = answers[0].as_ref().unwrap_err().to_string();
    assert!(refusal.contains("not this one"), "{refusal}");

    let after = store.find_any("old").await.unwrap().unwrap().progress;
    assert_eq!((after.seq, after.state), (1, TaskState::Submitted));
    assert_eq!(store.entries(&old.id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.find_any("new").await.unwrap(), None);
    assert_eq!(store.decisions(10).await.unwrap().len(), 1);
    store.decide(decision("bad too", None)).await.unwrap_err();
    store.decide(decision("good too", None)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_inside_a_batch_are_each_callers_own() {
    let (store, database) = opened().await;
    let (one, two) = (task("t1"), task("t2"));
    let batch = vec![
        creation(&one),
        creation(&one),
        pieces(&one, 2, 3),
        pieces(&one, 2, 2),
        pieces(&two, 2, 2),
        creation(&two),
        pieces(&one, 4, 4),
    ];
    let answers = together(&store, &database, batch).await;
    let recorded: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(recorded, [true, false, true, false, false, true, true]);
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_somebody_holds_for_too_long_is_waited_for_again() {
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    let options = chancery_store::PostgresOptions { lock_timeout_ms: 50, ..chancery_store::PostgresOptions::at(database.url()) };
    let store = PostgresStore::open(options).await.unwrap();
    let other = database.session().await;
    other.batch_execute("BEGIN; LOCK TABLE log IN EXCLUSIVE MODE").await.unwrap();
    let task = task("t1");
    let append = store.append(creation(&task));
    let release = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (answer, ()) = futures::join!(append, release);
    answer.unwrap();
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 1);
}

/// PostgreSQL has no text with U+0000. Callers' words may have it, and names may be asked for by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_character_that_postgresql_refuses_is_kept_in_messages_and_matches_no_name() {
    let (store, _database) = opened().await;
    let task = task("t1");
    let message = Message::text(Role::User, "m", "before\0after");
    let said = Arc::new(LogEntry { seq: 1, at: at(1), event: TaskEvent::Said(Arc::new(message)) });
    store.append(Append { entries: vec![Arc::clone(&said)], ..creation(&task) }).await.unwrap();
    assert_eq!(store.entries(&task.id, 0, 10).await.unwrap(), [said]);
    let why = Some("because\0of this".into());
    store.freeze(Freeze { scope: FreezeScope::Everything, by: "op".into(), at: at(4), why }).await.unwrap();
    assert_eq!(store.freezes().await.unwrap()[0].why.as_deref(), Some("because\0of this"));
    assert_eq!(store.find(&ada(), "t\x001", Names::ServerOrClient).await.unwrap(), None);
    assert_eq!(store.find_any("t1\0").await.unwrap(), None);
    assert_eq!(store.keyed(&ada(), "\0", at(1)).await.unwrap(), None);
    assert!(!store.thaw(&FreezeScope::Agent("\0".into()), None).await.unwrap());
    assert!(!store.withdraw(&"\0".into(), None).await.unwrap());
}
