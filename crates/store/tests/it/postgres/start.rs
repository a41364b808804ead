//! What a database lacks is said at the start: what, why, and what to do.

use chancery_core::Store;
use chancery_protocol::TaskState;
use chancery_store::{PostgresOptions, PostgresStore};
use tokio_postgres::types::ToSql;

use crate::contract::sample::{at, change, creation, task};
use crate::server::{TestDatabase, session};

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

async fn refusal(url: String) -> String {
    PostgresStore::open(PostgresOptions::at(url)).await.unwrap_err().to_string()
}

/// An empty database beside that of a test, made by these words.
async fn beside(database: &TestDatabase, name: &str, words: &str) -> String {
    let admin = session(&database.url()).await;
    let name = format!("{name}_{}", uuid::Uuid::now_v7().simple());
    admin.batch_execute(&format!("CREATE DATABASE {name} {words}")).await.unwrap();
    crate::server::url(database.port(), &name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_in_another_encoding_is_refused() {
    let database = database().await;
    let url = beside(&database, "ascii", "ENCODING 'SQL_ASCII' TEMPLATE template0").await;
    let refusal = refusal(url).await;
    assert!(refusal.contains("has encoding SQL_ASCII") && refusal.contains("ENCODING 'UTF8'"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_another_isolation_level_is_refused() {
    let database = database().await;
    let session = database.session().await;
    let name: String = session.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
    let set = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'");
    session.batch_execute(&set).await.unwrap();
    let refusal = refusal(database.url()).await;
    assert!(refusal.contains("default_transaction_isolation is 'repeatable read'"), "{refusal}");
    assert!(refusal.contains("ALTER DATABASE"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tables_of_another_program_are_left_as_they_are() {
    let database = database().await;
    let url = beside(&database, "foreign_tables", "").await;
    session(&url).await.batch_execute("CREATE TABLE tasks (name text)").await.unwrap();
    let refusal = refusal(url.clone()).await;
    assert!(refusal.contains("of some other program"), "{refusal}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(session(&url).await.query_one(tables, &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_the_future_is_refused_unless_it_says_that_this_program_can_use_it() {
    let database = database().await;
    let session = database.session().await;
    session.batch_execute("INSERT INTO schema_steps (version, compatible_from) VALUES (99, 98)").await.unwrap();
    let refusal = refusal(database.url()).await;
    assert!(refusal.contains("version 99") && refusal.contains("newer program"), "{refusal}");
    session.batch_execute("UPDATE schema_steps SET compatible_from = 1 WHERE version = 99").await.unwrap();
    database.open().await.append(creation(&task("t1"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_without_rights_is_told_which_it_needs() {
    let database = database().await;
    let session = database.session().await;
    let role = format!("role_{}", uuid::Uuid::now_v7().simple());
    session.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let as_role = |url: &str| url.replace("postgres://postgres@", &format!("postgres://{role}@"));
    let with_tables = refusal(as_role(&database.url())).await;
    assert!(with_tables.contains("permission denied") || with_tables.contains("may not"), "{with_tables}");
    let empty = beside(&database, "empty", "").await;
    crate::server::session(&empty).await.batch_execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await.unwrap();
    let without = refusal(as_role(&empty)).await;
    assert!(without.contains("may not create tables") && without.contains("GRANT CREATE ON SCHEMA"), "{without}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_named_without_the_password() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refusal = refusal(format!("postgres://ada:secret@{nobody}/db")).await;
    assert!(refusal.contains(&nobody.to_string()) && refusal.contains("cannot be reached"), "{refusal}");
    assert!(!refusal.contains("secret"), "{refusal}");
}

/// As a node of version 1 left it, which had the database for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_version_1_is_brought_up_and_its_tasks_go_on() {
    let database = database().await;
    let url = beside(&database, "version_1", "").await;
    let session = session(&url).await;
    session.batch_execute(include_str!("../../../src/postgres/schema/v1.sql")).await.unwrap();
    let left = "CREATE TABLE schema_steps (version bigint PRIMARY KEY, compatible_from bigint NOT NULL, at timestamptz NOT NULL DEFAULT now());
                INSERT INTO schema_steps (version, compatible_from) VALUES (1, 1);
                INSERT INTO nodes (node, life, version) VALUES (nextval('node_numbers'), gen_random_uuid(), '0');
                INSERT INTO writers (node, life, writer, batch, closed) SELECT node, life, 0, 5, false FROM nodes";
    session.batch_execute(left).await.unwrap();
    let running = task("running");
    let made = "INSERT INTO tasks (num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes,
                                   message_only, stage, lanes)
                VALUES (1, $1, $2, 'echo', 'acme', 'ada', $3, 1000, $4, 1000, 1, 100, false, 1, 0)";
    let state = i64::from(TaskState::Submitted.number());
    let values: [&(dyn ToSql + Sync); 4] =
        [&running.id.as_str(), &running.context_id.as_str(), &running.dialect.as_str(), &state];
    session.execute(made, &values).await.unwrap();
    let member = PostgresStore::join(PostgresOptions::at(url)).await.unwrap();
    let cluster = member.cluster().unwrap();
    let taken = cluster.take_released(10).await.unwrap();
    assert_eq!(taken.iter().map(|stored| stored.task.id.as_str()).collect::<Vec<_>>(), ["running"]);
    member.append(change(&running, 2, TaskState::Completed, at(2))).await.unwrap();
    let steps = "SELECT max(version) FROM schema_steps";
    assert_eq!(session.query_one(steps, &[]).await.unwrap().get::<_, i64>(0), 2);
}

/// Of several hosts the one that accepts writes is used, also when others do not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_hosts_the_one_that_answers_is_used() {
    let database = database().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hosts = format!("postgres://postgres@{nobody},127.0.0.1:{}", database.port());
    let url = database.url().replace(&format!("postgres://postgres@127.0.0.1:{}", database.port()), &hosts);
    let store = PostgresStore::open(PostgresOptions::at(format!("{url}?target_session_attrs=read-write"))).await.unwrap();
    store.append(creation(&task("t1"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_starts_at_once_make_the_tables_once() {
    let database = database().await;
    let url = beside(&database, "fresh", "").await;
    let open = || PostgresStore::open(PostgresOptions::at(url.clone()));
    let (one, other) = futures::join!(open(), open());
    let (one, other) = (one.unwrap(), other.unwrap());
    let written = [one.append(creation(&task("a"))).await.is_ok(), other.append(creation(&task("b"))).await.is_ok()];
    assert_eq!(written.iter().filter(|ok| **ok).count(), 1, "the one that took over last writes");
}
