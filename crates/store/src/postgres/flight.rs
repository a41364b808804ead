//! Sends the statements of a batch in one flight, and reads from the answers whether it is in.

#[cfg(test)]
mod tests;

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use futures::future::{BoxFuture, join_all};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, SimpleQueryMessage, Statement};

use super::batch_sql::last_check;
use super::columns::SqlValues;
use super::fault::PostgresFault;
use super::fence::{FenceVerdict, WriterIdentity};

/// How a flight finds its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlightOpening {
    /// The flight begins it.
    Begin,
    /// It is open, and holds the writer's row.
    Held,
    /// It is open, and the fence is passed.
    Fenced,
}

/// One statement of a flight, with how many rows it has to write.
pub(super) struct FlightStatement<'v> {
    pub(super) sql: &'v str,
    pub(super) rows: i64,
    pub(super) values: Vec<&'v (dyn ToSql + Sync)>,
}

/// The first row that each statement of a flight answered.
#[derive(Debug)]
pub(super) struct FlightAnswers(Vec<Option<Row>>);

impl FlightAnswers {
    pub(super) fn of(&self, place: usize) -> Option<&Row> {
        self.0.get(place)?.as_ref()
    }
}

/// What is known after a flight.
#[derive(Debug)]
pub(super) enum FlightEnd {
    In(FlightAnswers),
    /// Nothing of it is.
    Out(PostgresFault),
    /// The answer is lost.
    Doubt(PostgresFault),
}

/// How a transaction begins, regardless of the settings of the database.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Begins the transaction of a batch and passes the fence, for a batch that has to read before it writes.
pub(super) async fn open(
    session: &ClientWrapper,
    identity: &WriterIdentity,
    fence: &str,
    number: i64,
    opening: FlightOpening,
) -> Result<(), PostgresFault> {
    session.batch_execute(&opening_text(number, opening)).await?;
    let statement = session.prepare_cached(fence).await?;
    let (before, own) = (step(number, 0), step(number, 1));
    let follows = number - 1;
    let values: [&(dyn ToSql + Sync); 7] = [&before, &own, &1_i64, &identity.node, &identity.life, &identity.writer, &follows];
    session.query(&statement, &values).await?;
    Ok(())
}

/// Sends the statements with all that is before and behind them. Nothing waits for an answer in between: each statement checks
/// that the one before it was done, because the driver leaves out a statement whose values it cannot encode.
pub(super) async fn send(
    session: &ClientWrapper,
    identity: &WriterIdentity,
    fence: &str,
    number: i64,
    opening: FlightOpening,
    statements: &[FlightStatement<'_>],
    answer_timeout: Duration,
) -> FlightEnd {
    let follows = number - 1;
    let fence_values: Vec<&(dyn ToSql + Sync)> = vec![&identity.node, &identity.life, &identity.writer, &follows];
    let fence = FlightStatement { sql: fence, rows: 1, values: fence_values };
    let fence = (opening != FlightOpening::Fenced).then_some(&fence);
    let all: Vec<&FlightStatement<'_>> = fence.into_iter().chain(statements).collect();
    let prepared: Result<Vec<Statement>, _> =
        futures::future::try_join_all(all.iter().map(|statement| session.prepare_cached(statement.sql))).await;
    let prepared = match prepared {
        Ok(prepared) => prepared,
        // Nothing was sent yet.
        Err(error) => return FlightEnd::Out(error.into()),
    };
    let first = i64::from(opening == FlightOpening::Fenced);
    let steps: Vec<String> = (first..=first + all.len() as i64).map(|place| step(number, place)).collect();
    let values: Vec<Vec<&(dyn ToSql + Sync)>> = all
        .iter()
        .zip(steps.windows(2))
        .map(|(statement, step)| {
            let own: [&(dyn ToSql + Sync); 3] = [&step[0], &step[1], &statement.rows];
            own.into_iter().chain(statement.values.iter().copied()).collect()
        })
        .collect();
    let opening_text = opening_text(number, opening);
    let last_step = steps.last().map(String::as_str).unwrap_or_default();
    let closing_text = format!(
        "{}; COMMIT; SELECT batch FROM writers WHERE node = {} AND writer = {}",
        last_check(last_step),
        identity.node,
        identity.writer
    );
    let flight = async {
        let mut answers: Vec<BoxFuture<'_, Result<Option<Row>, PostgresFault>>> = Vec::with_capacity(all.len() + 1);
        if opening != FlightOpening::Fenced {
            answers.push(Box::pin(async { Ok(session.batch_execute(&opening_text).await.map(|()| None)?) }));
        }
        for (statement, values) in prepared.iter().zip(&values) {
            answers.push(Box::pin(async { answered(session, statement, values).await }));
        }
        // Polled in their order, so they are sent in their order.
        futures::join!(join_all(answers), session.simple_query(&closing_text))
    };
    let Ok((answers, closing)) = tokio::time::timeout(answer_timeout, flight).await else {
        return FlightEnd::Doubt(PostgresFault::away("the answer to a batch did not come in time"));
    };
    let first_fault = || answers.iter().find_map(|answer| answer.as_ref().err().cloned());
    match closing {
        Ok(messages) if confirmed(&messages) == Some(number) => {
            let before = answers.len() - statements.len();
            FlightEnd::In(FlightAnswers(answers.into_iter().skip(before).map(|answer| answer.ok().flatten()).collect()))
        }
        Ok(_) => FlightEnd::Out(first_fault().unwrap_or_else(|| PostgresFault::away("the database did not count a batch"))),
        Err(error) if error.as_db_error().is_some() => FlightEnd::Out(first_fault().unwrap_or_else(|| error.into())),
        Err(error) => FlightEnd::Doubt(error.into()),
    }
}

async fn answered(session: &ClientWrapper, statement: &Statement, values: &SqlValues<'_>) -> Result<Option<Row>, PostgresFault> {
    Ok(session.query(statement, values).await?.into_iter().next())
}

/// Takes back what the transaction did, and asks the writer's row what that means.
pub(super) async fn take_back(
    session: &ClientWrapper,
    identity: &WriterIdentity,
    number: i64,
) -> Result<FenceVerdict, PostgresFault> {
    session.batch_execute("ROLLBACK").await?;
    Ok(identity.verdict(identity.row(session).await?, number))
}

/// The number of the last batch, from the answer to the last statement.
fn confirmed(messages: &[SimpleQueryMessage]) -> Option<i64> {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.last()?.get(0)?.parse().ok()
}

fn opening_text(number: i64, opening: FlightOpening) -> String {
    let set = format!("SELECT set_config('chancery.step', '{}', true)", step(number, 0));
    if opening == FlightOpening::Begin { format!("{BEGIN}; {set}") } else { set }
}

fn step(number: i64, place: i64) -> String {
    format!("{number}:{place}")
}
