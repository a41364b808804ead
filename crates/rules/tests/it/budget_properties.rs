//! Random runs of the ledger beside a plain list of all that happened: same verdicts, same sums, no cap ever passed.

use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::MicroUsd;
use chancery_rules::budget::*;
use proptest::prelude::*;

type Three = [u64; 3];

#[derive(Clone, Debug)]
enum Step {
    /// In the scopes of the mask; what is left out is not known.
    Reserve {
        scopes: u8,
        usd: Option<u64>,
        tokens: Option<u64>,
    },
    Raise {
        which: usize,
        usd: u64,
        tokens: u64,
    },
    Settle {
        which: usize,
        usd: u64,
        tokens: u64,
    },
    Expire {
        which: usize,
        usd: u64,
        tokens: u64,
    },
    Release {
        which: usize,
    },
    Dispatch {
        which: usize,
    },
    Lose {
        which: usize,
    },
    Wait {
        micros: i64,
    },
}

#[derive(Clone, Debug)]
struct ScopePlan {
    caps: [Option<u64>; 3],
    /// None is as long as the tree.
    window_micros: Option<u64>,
}

fn scope_plan() -> impl Strategy<Value = ScopePlan> {
    let window = prop_oneof![Just(None), prop_oneof![Just(61), Just(6_000), Just(60_000), Just(100_007)].prop_map(Some)];
    (prop::array::uniform3(prop::option::weighted(0.7, 0..40_u64)), window)
        .prop_map(|(caps, window_micros)| ScopePlan { caps, window_micros })
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..100_usize;
    let report = || prop_oneof![4 => 0..20_u64, 1 => Just(5_000), 1 => Just(u64::MAX)];
    let known = || prop::option::weighted(0.85, 0..15_u64);
    prop_oneof![
        6 => (any::<u8>(), known(), known()).prop_map(|(scopes, usd, tokens)| Step::Reserve { scopes, usd, tokens }),
        2 => (which.clone(), 0..15_u64, 0..15_u64).prop_map(|(which, usd, tokens)| Step::Raise { which, usd, tokens }),
        3 => (which.clone(), report(), report()).prop_map(|(which, usd, tokens)| Step::Settle { which, usd, tokens }),
        1 => (which.clone(), report(), report()).prop_map(|(which, usd, tokens)| Step::Expire { which, usd, tokens }),
        2 => which.clone().prop_map(|which| Step::Release { which }),
        1 => which.clone().prop_map(|which| Step::Dispatch { which }),
        1 => which.prop_map(|which| Step::Lose { which }),
        3 => prop_oneof![-20..2_000_i64, 0..130_000_i64].prop_map(|micros| Step::Wait { micros }),
    ]
}

/// One scope, as a list of all that was ever settled in it.
#[derive(Clone, Debug)]
struct Plain {
    caps: Three,
    part: Option<i64>,
    entries: Vec<(i64, Three, Three)>,
    reserved: Three,
}

impl Plain {
    fn new(plan: &ScopePlan) -> Self {
        let part = plan.window_micros.map(|window| window.div_ceil(60) as i64);
        Self { caps: plan.caps.map(|cap| cap.unwrap_or(u64::MAX)), part, entries: Vec::new(), reserved: [0; 3] }
    }

    /// Settled and overrun of entries no older than `age`.
    fn within(&self, now: i64, age: i64) -> (Three, Three) {
        self.sum(|at| now - at < age)
    }

    fn sum(&self, counts: impl Fn(i64) -> bool) -> (Three, Three) {
        let add = |one: Three, two: Three| std::array::from_fn(|at| one[at].saturating_add(two[at]));
        let counted = self.entries.iter().filter(|(at, ..)| counts(*at));
        counted.fold(([0; 3], [0; 3]), |(settled, overrun), entry| (add(settled, entry.1), add(overrun, entry.2)))
    }

    /// By parts of the window, as it is promised.
    fn counted(&self, now: i64) -> (Three, Three) {
        match self.part {
            None => self.sum(|_| true),
            Some(part) => self.sum(|at| now.div_euclid(part) - at.div_euclid(part) <= 60),
        }
    }

    fn taken(&self, now: i64) -> Three {
        let (settled, overrun) = self.counted(now);
        std::array::from_fn(|at| settled[at].saturating_add(overrun[at]).saturating_add(self.reserved[at]))
    }

    fn free(&self, now: i64) -> Three {
        let taken = self.taken(now);
        std::array::from_fn(|at| if self.caps[at] == u64::MAX { u64::MAX } else { self.caps[at].saturating_sub(taken[at]) })
    }

    fn fits(&self, wanted: Three, now: i64) -> bool {
        let taken = self.taken(now);
        (0..3).all(|at| taken[at].saturating_add(wanted[at]) <= self.caps[at])
    }
}

struct Run {
    ledger: BudgetLedger,
    accounts: Vec<Account>,
    plain: Vec<Plain>,
    open: Vec<(Reservation, Vec<usize>, Three)>,
    now: i64,
    /// The latest time that was; a clock that is put back a little stands still.
    latest: i64,
}

fn three(amount: Amount) -> Three {
    [amount.usd.0 as u64, amount.tokens, amount.tasks]
}

fn money(micros: u64) -> MicroUsd {
    MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX))
}

impl Run {
    fn new(plans: &[ScopePlan]) -> Self {
        let ledger = BudgetLedger::new();
        let account = |(at, plan): (usize, &ScopePlan)| {
            let [usd, tokens, tasks] = plan.caps;
            let window =
                plan.window_micros.map_or(BudgetWindow::Tree, |micros| BudgetWindow::Sliding(Duration::from_micros(micros)));
            let limit = Limit { caps: Caps { usd: usd.map(money), tokens, tasks }, window };
            ledger.account(&BudgetScope::Agent(at.to_string().into()), limit)
        };
        let accounts = plans.iter().enumerate().map(account).collect();
        let plain = plans.iter().map(Plain::new).collect();
        Self { ledger, accounts, plain, open: Vec::new(), now: 1_000_000, latest: 1_000_000 }
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    fn standings(&self) -> Vec<BudgetStanding> {
        self.accounts.iter().map(|account| self.ledger.standing(account, self.time())).collect()
    }

    fn take(&mut self, which: usize) -> Option<(Reservation, Vec<usize>, Three)> {
        if self.open.is_empty() { None } else { Some(self.open.swap_remove(which % self.open.len())) }
    }

    fn let_go(&mut self, scopes: &[usize], held: Three) {
        for scope in scopes {
            let reserved = &mut self.plain[*scope].reserved;
            *reserved = std::array::from_fn(|at| reserved[at] - held[at]);
        }
    }

    fn settle(&mut self, scopes: &[usize], held: Three, actual: Three) -> (Three, Three) {
        self.let_go(scopes, held);
        let is_capped = |at: usize| scopes.iter().any(|scope| self.plain[*scope].caps[at] != u64::MAX);
        let settled: Three = std::array::from_fn(|at| if is_capped(at) { actual[at].min(held[at]) } else { actual[at] });
        let overrun = std::array::from_fn(|at| actual[at] - settled[at]);
        scopes.iter().for_each(|scope| self.plain[*scope].entries.push((self.latest, settled, overrun)));
        (settled, overrun)
    }

    fn reserve(&mut self, scopes: u8, estimate: Estimate) -> Result<(), TestCaseError> {
        let chosen: Vec<usize> = (0..self.accounts.len()).filter(|at| scopes & (1 << at) != 0).collect();
        let accounts: Accounts = chosen.iter().map(|at| self.accounts[*at].clone()).collect();
        let least: Three = [estimate.usd.map_or(1, |usd| usd.0 as u64), estimate.tokens.unwrap_or(1), 1];
        let refusing = chosen.iter().copied().find(|at| !self.plain[*at].fits(least, self.latest));
        let before = self.standings();
        match (self.ledger.reserve(&accounts, estimate, self.time()), refusing) {
            (Ok(reservation), None) => {
                let free = chosen.iter().fold([u64::MAX; 3], |free: Three, scope| {
                    let here = self.plain[*scope].free(self.latest);
                    std::array::from_fn(|at| free[at].min(here[at]))
                });
                let remainder = |at: usize| if free[at] == u64::MAX { 0 } else { free[at] };
                let wanted = [estimate.usd.map_or(remainder(0), |usd| usd.0 as u64), estimate.tokens.unwrap_or(remainder(1)), 1];
                prop_assert_eq!(three(reservation.amount()), wanted);
                for scope in &chosen {
                    let reserved = &mut self.plain[*scope].reserved;
                    *reserved = std::array::from_fn(|at| reserved[at] + wanted[at]);
                }
                self.open.push((reservation, chosen, wanted));
            }
            (Err(refused), Some(first)) => {
                prop_assert_eq!(refused.scope(), self.accounts[first].scope());
                prop_assert_eq!(self.standings(), before, "a refusal changes nothing");
                let fits = |now: i64| chosen.iter().all(|at| self.plain[*at].fits(least, now));
                match refused.retry_after() {
                    Some(wait) => {
                        let then = self.now + wait.as_micros() as i64;
                        prop_assert!(fits(then), "it fits when it was told it would");
                        prop_assert!(!fits(then - 1), "and not before");
                    }
                    None => prop_assert!(!fits(i64::MAX / 4), "it never fits"),
                }
            }
            (Ok(_), Some(at)) => prop_assert!(false, "scope {at} has not enough left"),
            (Err(refused), None) => prop_assert!(false, "nothing stands in the way: {refused}"),
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Wait { micros } => {
                self.now = (self.now + micros).max(self.latest - 20);
                self.latest = self.latest.max(self.now);
            }
            Step::Reserve { scopes, usd, tokens } => {
                self.reserve(scopes, Estimate { usd: usd.map(money), tokens, ..Estimate::REMAINDER })?;
            }
            Step::Raise { which, usd, tokens } if !self.open.is_empty() => {
                let which = which % self.open.len();
                let time = self.time();
                let (reservation, scopes, held) = &mut self.open[which];
                let granted = three(self.ledger.raise(reservation, Amount { usd: money(usd), tokens, tasks: 0 }, time));
                let free = scopes.iter().map(|scope| self.plain[*scope].free(self.latest));
                let wanted =
                    free.fold([usd, tokens, 0], |wanted: Three, free| std::array::from_fn(|at| wanted[at].min(free[at])));
                prop_assert_eq!(granted, wanted);
                *held = std::array::from_fn(|at| held[at] + granted[at]);
                for scope in scopes {
                    let reserved = &mut self.plain[*scope].reserved;
                    *reserved = std::array::from_fn(|at| reserved[at] + granted[at]);
                }
            }
            Step::Settle { which, usd, tokens } | Step::Expire { which, usd, tokens } => {
                let Some((reservation, scopes, held)) = self.take(which) else { return Ok(()) };
                let said = Amount { usd: money(usd), tokens, tasks: 77 };
                let (ended, mut actual) = if matches!(step, Step::Settle { .. }) {
                    (self.ledger.settle(reservation, said, self.time()), three(said))
                } else {
                    let most = std::array::from_fn(|at| three(said)[at].max(held[at]));
                    (self.ledger.expire(reservation, said, self.time()), most)
                };
                actual[2] = held[2];
                let wanted = self.settle(&scopes, held, actual);
                prop_assert_eq!((three(ended.settled), three(ended.overrun)), wanted);
                let both: Three = std::array::from_fn(|at| wanted.0[at] + wanted.1[at]);
                prop_assert_eq!(both, actual, "nothing is lost and nothing is made up");
            }
            Step::Release { which } => {
                let Some((reservation, scopes, held)) = self.take(which) else { return Ok(()) };
                self.ledger.release(reservation);
                self.let_go(&scopes, held);
            }
            Step::Dispatch { which } if !self.open.is_empty() => {
                let which = which % self.open.len();
                self.open[which].0.dispatched();
            }
            Step::Lose { which } => {
                let Some((reservation, scopes, held)) = self.take(which) else { return Ok(()) };
                let spent = reservation.is_dispatched();
                // What is lost is lost now; the ledger goes by the time of its last entry.
                drop(self.ledger.reserve(&reservation.accounts().clone(), Amount::default().into(), self.time()));
                drop(reservation);
                if spent {
                    let _ = self.settle(&scopes, held, held);
                } else {
                    self.let_go(&scopes, held);
                }
            }
            Step::Raise { .. } | Step::Dispatch { .. } => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (account, plain) in self.accounts.iter().zip(&self.plain) {
            let seen = self.ledger.standing(account, self.time());
            let (settled, reserved, overrun) = (three(seen.settled), three(seen.reserved), three(seen.overrun));
            for at in 0..3 {
                prop_assert!(
                    settled[at].saturating_add(reserved[at]) <= plain.caps[at],
                    "settled and reserved are within the cap"
                );
            }
            prop_assert_eq!(reserved, plain.reserved);
            // Money stops at its own end, which is half as far.
            let end = |[usd, tokens, tasks]: Three| [usd.min(i64::MAX as u64), tokens, tasks];
            prop_assert_eq!((settled, overrun), (end(plain.counted(self.latest).0), end(plain.counted(self.latest).1)));
            if let Some(part) = plain.part {
                let (least, most) = (plain.within(self.latest, 60 * part).0, plain.within(self.latest, 61 * part).0);
                let is_between = (0..3).all(|at| end(least)[at] <= settled[at] && settled[at] <= end(most)[at]);
                prop_assert!(is_between, "within a sixtieth of the window");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_passes_a_cap_or_differs_from_a_plain_list(
        plans in prop::collection::vec(scope_plan(), 1..6),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut run = Run::new(&plans);
        // The ledger sees the start time before the clock can go back.
        run.check()?;
        for step in steps {
            run.step(step)?;
            run.check()?;
        }
        while let Some((reservation, scopes, held)) = run.take(0) {
            run.ledger.release(reservation);
            run.let_go(&scopes, held);
            run.check()?;
        }
        prop_assert!(run.standings().iter().all(|standing| standing.reserved == Amount::default()), "nothing stays held");
    }
}
