//! What the budget ledger can do in a second: a reservation and its settlement, beside two additions under a plain lock.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chancery::protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Accounts, Amount, BudgetLedger, BudgetScope, BudgetWindow, Caps, Estimate, Limit};

use super::{Match, Row};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};

/// Reservations that are timed together.
const BATCH: i64 = 200_000;
/// All dimensions have a cap, none of them is ever reached.
const CAPPED: Caps = Caps { usd: Some(MicroUsd(i64::MAX)), tokens: Some(u64::MAX - 1), tasks: Some(u64::MAX - 1) };

/// One kind of load.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerLoad {
    pub(super) caps: Caps,
    /// A minute that slides, or as long as the tree.
    pub(super) slides: bool,
    pub(super) threads: usize,
    /// What the window holds before anything is measured.
    pub(super) entries: i64,
    pub(super) least: Option<f64>,
}

pub(super) const UNCAPPED: LedgerLoad = LedgerLoad { caps: Caps::NONE, slides: true, threads: 1, entries: 0, least: None };
pub(super) const ONE_THREAD: LedgerLoad = LedgerLoad { caps: CAPPED, slides: true, threads: 1, entries: 0, least: Some(10e6) };
pub(super) const MANY_ENTRIES: LedgerLoad = LedgerLoad { entries: 100_000, ..ONE_THREAD };
pub(super) const FOUR_THREADS: LedgerLoad = LedgerLoad { caps: CAPPED, slides: false, threads: 4, entries: 0, least: Some(3e6) };

struct Books {
    ledger: BudgetLedger,
    accounts: Accounts,
    /// In sixteenths of a microsecond, so that time goes on about as fast as it would.
    now: i64,
}

impl Books {
    fn new(kind: LedgerLoad) -> Result<Self> {
        let ledger = BudgetLedger::new();
        let account = if kind.slides {
            ledger.account(&BudgetScope::Global, Limit { caps: kind.caps, window: BudgetWindow::MINUTE })
        } else {
            ledger.account(&BudgetScope::Tree("bench".into()), Limit::of_tree(kind.caps))
        };
        let accounts = account.into();
        let mut books = Self { ledger, accounts, now: 0 };
        for entry in 0..kind.entries {
            books.now = entry * 16 * 60_000_000 / kind.entries;
            books.pass(1, books.now)?;
        }
        let held = books.ledger.standing(&books.accounts[0], Timestamp::from_micros(books.now / 16)).settled.tasks;
        ensure!(held == u64::try_from(kind.entries)?, "the window holds {held} entries");
        Ok(books)
    }

    fn pass(&self, count: i64, from: i64) -> Result<()> {
        let amount = Amount::of_task(MicroUsd(7), 11);
        for at in from..from + count {
            let now = Timestamp::from_micros(at / 16);
            let held = self.ledger.reserve(&self.accounts, black_box(Estimate::known(amount)), now)?;
            black_box(self.ledger.settle(held, black_box(amount), now));
        }
        Ok(())
    }

    /// How many in a second.
    fn round(&mut self, threads: usize) -> Result<f64> {
        let start = Instant::now();
        on_each(threads, || self.pass(BATCH, self.now))?;
        let elapsed = start.elapsed();
        self.now += BATCH;
        Ok(rate(threads, elapsed))
    }
}

fn on_each(threads: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    if threads == 1 {
        return work();
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread panicked")))
    })
}

fn rate(threads: usize, elapsed: Duration) -> f64 {
    BATCH as f64 * threads as f64 / elapsed.as_secs_f64()
}

/// What a lock and an addition cost, each twice.
fn bare(threads: usize) -> Result<f64> {
    let count = Mutex::new(0_u64);
    let add = |more: u64| *count.lock().unwrap_or_else(PoisonError::into_inner) += black_box(more);
    let start = Instant::now();
    on_each(threads, || {
        for _ in 0..BATCH {
            add(7);
            add(11);
        }
        Ok(())
    })?;
    Ok(rate(threads, start.elapsed()))
}

pub(super) fn measure(row: &Row, kind: LedgerLoad, this: &Match<'_>) -> Result<MeasuredRow> {
    let mut books = Books::new(kind)?;
    let mut beside = if kind.entries > 0 { Some(Books::new(LedgerLoad { entries: 100, ..kind })?) } else { None };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let until = Instant::now() + Duration::try_from_secs_f64(this.effort.seconds)?;
    while ours.len() < this.effort.rounds.max(3) || Instant::now() < until {
        theirs.push(match &mut beside {
            Some(few) => few.round(kind.threads)?,
            None => bare(kind.threads)?,
        });
        ours.push(books.round(kind.threads)?);
    }
    let rounds = ours.len();
    let value = Pair { yardstick: median(theirs.into_iter()), chancery: median(ours.into_iter()) };
    let beside = if beside.is_some() { "the ledger with 100 entries in its window" } else { "two additions under a std mutex" };
    Ok(MeasuredRow {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        unit: Unit::PerSecond,
        value,
        ratio: value.chancery / value.yardstick,
        spread: (f64::NAN, f64::NAN),
        target: kind.least.map(RowTarget::AtLeast),
        p50_us: None,
        p99_us: None,
        p99_ratio: None,
        p99_target: None,
        processor_target: None,
        processor_us: None,
        note: Some(format!("reserve and settle, {} thread(s), median of {rounds} batches; beside {beside}", kind.threads)),
    })
}
