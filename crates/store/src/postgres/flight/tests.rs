//! Statements of a flight that never run, and a transaction that never began: nothing of the flight is written.

use std::error::Error;
use std::time::Duration;

use bytes::BytesMut;
use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::super::batch_sql::BatchSql;
use super::super::columns;
use super::super::connection::DatabaseConnector;
use super::super::fault::FaultScope;
use super::super::fence::{FenceRow, WriterIdentity, take_over};
use super::super::options::PostgresOptions;
use super::super::server::TestDatabase;
use super::*;

/// A value that the driver cannot encode, as one that is too long.
#[derive(Debug)]
struct Unencodable;

impl ToSql for Unencodable {
    fn to_sql(&self, _: &Type, _: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Err("too long".into())
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

struct Owned {
    session: ClientWrapper,
    identity: WriterIdentity,
    sql: BatchSql,
    _database: TestDatabase,
}

async fn owned() -> Owned {
    let database = tokio::task::spawn_blocking(TestDatabase::make).await.unwrap();
    let session = DatabaseConnector::new(PostgresOptions::at(database.url())).unwrap().open().await.unwrap();
    let identity = take_over(&session, Duration::from_secs(10)).await.unwrap();
    Owned { session, identity, sql: BatchSql::new(false), _database: database }
}

impl Owned {
    /// Sends a row of the log for each of these values of its last column.
    async fn send(&self, number: i64, opening: FlightOpening, entries: &[&(dyn ToSql + Sync)]) -> FlightEnd {
        let numbers: Vec<Vec<i64>> = (0..entries.len() as i64).map(|place| vec![place]).collect();
        let mut rows = Vec::new();
        for (entries, number) in entries.iter().zip(&numbers) {
            let values: Vec<&(dyn ToSql + Sync)> = vec![number, number, number, *entries];
            rows.push(FlightStatement { sql: self.sql.log.as_str(), rows: 1, values });
        }
        send(&self.session, &self.identity, &self.sql.fence, number, opening, &rows, Duration::from_secs(20)).await
    }

    async fn rows(&self) -> i64 {
        columns::number(&self.session, "SELECT count(*) FROM log", &[]).await.unwrap()
    }
}

#[tokio::test]
async fn a_statement_that_cannot_be_encoded_keeps_the_whole_flight_out() {
    let owned = owned().await;
    let good: Vec<Vec<u8>> = vec![b"[]".to_vec()];
    for place in 0..3 {
        let mut entries: Vec<&(dyn ToSql + Sync)> = vec![&good, &good, &good];
        entries[place] = &Unencodable;
        let FlightEnd::Out(fault) = owned.send(1, FlightOpening::Begin, &entries).await else { panic!("place {place}") };
        assert_eq!(fault.scope(), FaultScope::OneWrite, "{fault}");
        let verdict = take_back(&owned.session, &owned.identity, 1).await.unwrap();
        assert!(matches!(verdict, FenceVerdict::Out), "{verdict:?}");
        assert_eq!(owned.rows().await, 0, "place {place}");
    }
    // The session is as good as before.
    assert!(matches!(owned.send(1, FlightOpening::Begin, &[&good, &good]).await, FlightEnd::In(_)));
    assert_eq!(owned.rows().await, 2);
    assert_eq!(owned.identity.row(&owned.session).await.unwrap(), Some(FenceRow { batch: 1, closed: false }));
}

/// A call of another node is answered with the rest of the batch, or not at all, whichever statement never runs.
#[tokio::test]
async fn a_forwarded_call_is_answered_with_the_whole_flight_or_not_at_all() {
    let owned = owned().await;
    let made = "INSERT INTO forwarded_calls (num, from_node, to_node, task, state, body) VALUES (7, 99, $1, 't', 1, '')";
    owned.session.execute(made, &[&owned.identity.node]).await.unwrap();
    let good: Vec<Vec<u8>> = vec![b"[]".to_vec()];
    let numbers: Vec<i64> = vec![7];
    let send = async |number: i64, answer: &(dyn ToSql + Sync), entries: &(dyn ToSql + Sync)| {
        let answers = vec![&numbers as &(dyn ToSql + Sync), answer, &owned.identity.node];
        let log = vec![&numbers as &(dyn ToSql + Sync), &numbers, &numbers, entries];
        let statements = [
            FlightStatement { sql: &owned.sql.answers, rows: 1, values: answers },
            FlightStatement { sql: &owned.sql.log, rows: 1, values: log },
        ];
        let opening = FlightOpening::Begin;
        let (identity, fence) = (&owned.identity, &owned.sql.fence);
        send(&owned.session, identity, fence, number, opening, &statements, Duration::from_secs(20)).await
    };
    for (answer, entries) in [(&Unencodable as &(dyn ToSql + Sync), &good as &(dyn ToSql + Sync)), (&good, &Unencodable)] {
        let FlightEnd::Out(fault) = send(1, answer, entries).await else { panic!("a statement never ran") };
        assert_eq!(fault.scope(), FaultScope::OneWrite, "{fault}");
        owned.session.batch_execute("ROLLBACK").await.unwrap();
        let waits = "SELECT count(*) FROM forwarded_calls WHERE state = 1 AND answer IS NULL";
        assert_eq!(columns::number(&owned.session, waits, &[]).await.unwrap(), 1);
    }
    let FlightEnd::In(answers) = send(1, &good, &good).await else { panic!("it is whole") };
    let row = answers.of(0).unwrap();
    assert_eq!((row.get::<_, Vec<i64>>(2), row.get::<_, Vec<i64>>(3)), (vec![7], vec![99]));
    // A call that waits no more keeps the flight out.
    let FlightEnd::Out(fault) = send(2, &good, &good).await else { panic!("it was answered before") };
    assert_eq!(fault.scope(), FaultScope::OneWrite, "{fault}");
}

#[tokio::test]
async fn a_flight_whose_transaction_never_began_writes_nothing() {
    let owned = owned().await;
    let good: Vec<Vec<u8>> = vec![b"[]".to_vec()];
    let end = owned.send(1, FlightOpening::Held, &[&good, &good]).await;
    assert!(matches!(end, FlightEnd::Out(_)), "{end:?}");
    assert_eq!(owned.rows().await, 0);
    assert_eq!(owned.identity.row(&owned.session).await.unwrap(), Some(FenceRow { batch: 0, closed: false }));
}

#[tokio::test]
async fn a_number_that_is_not_the_next_keeps_a_flight_out() {
    let owned = owned().await;
    let good: Vec<Vec<u8>> = vec![b"[]".to_vec()];
    for number in [0, 2, 7] {
        let end = owned.send(number, FlightOpening::Begin, &[&good]).await;
        assert!(matches!(end, FlightEnd::Out(_)), "{number}: {end:?}");
        owned.session.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(owned.rows().await, 0);
}
