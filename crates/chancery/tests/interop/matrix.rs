//! What clients print about one agent, bare and through the gateway, as one table, and what is worse through than bare.

use std::fmt::Write;

use serde::Deserialize;

/// The operations in the order of the columns.
pub(crate) const OPERATIONS: [&str; 7] = ["card", "send", "stream", "get", "multi-turn", "ask-back", "cancel"];

/// How much longer than bare a call may take before the table mentions it.
const SLOWER_SECONDS: f64 = 2.0;

/// One operation of one client, as its line of JSON gives it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) client: String,
    pub(crate) operation: String,
    pub(crate) ok: bool,
    /// The answer as a caller reads it, white space and ids normalised.
    pub(crate) content: String,
    /// How many text parts a unary answer has; 0 where that does not matter.
    pub(crate) parts: usize,
    pub(crate) detail: String,
    pub(crate) seconds: f64,
}

/// All attempts against one agent.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The framework and the variant of its server.
    pub(crate) agent: String,
    pub(crate) bare: Vec<Attempt>,
    /// One list per spelling of the agent's address.
    pub(crate) through: Vec<(String, Vec<Attempt>)>,
}

impl Comparison {
    /// Pairs that work bare and not through the gateway, or give another answer there.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for bare in self.bare.iter().filter(|bare| bare.ok) {
            for (spelling, attempts) in &self.through {
                if let Some(reason) = worse(bare, find(attempts, bare)) {
                    faults.push(format!("{}, {}, {}, {spelling}: {reason}", self.agent, bare.client, bare.operation));
                }
            }
        }
        faults
    }

    /// Pairs that fail bare, which is not asked for but good to know.
    pub(crate) fn bare_failures(&self) -> Vec<String> {
        let failed = self.bare.iter().filter(|bare| !bare.ok);
        failed.map(|bare| format!("{}, {}, {}: {}", self.agent, bare.client, bare.operation, bare.detail)).collect()
    }

    /// Pairs that take noticeably longer through the gateway. No fault: the machine may be busy.
    pub(crate) fn slower(&self) -> Vec<String> {
        let mut slower = Vec::new();
        for bare in self.bare.iter().filter(|bare| bare.ok) {
            for (spelling, attempts) in &self.through {
                let Some(through) = find(attempts, bare) else { continue };
                if through.ok && through.seconds > bare.seconds + SLOWER_SECONDS {
                    let pair = format!("{}, {}, {}, {spelling}", self.agent, bare.client, bare.operation);
                    slower.push(format!("{pair}: {:.1} s bare, {:.1} s through", bare.seconds, through.seconds));
                }
            }
        }
        slower
    }

    /// Clients down, operations across, `bare -> through` in each cell with one letter for every spelling of the address.
    pub(crate) fn render(&self) -> String {
        let mut out = format!("\n{:<34}", self.agent);
        out.extend(OPERATIONS.map(|operation| format!(" {operation:<11}")));
        out.push('\n');
        let mut clients: Vec<&str> = self.bare.iter().map(|bare| bare.client.as_str()).collect();
        clients.dedup();
        for client in clients {
            let _ = write!(out, "  {client:<32}");
            out.extend(OPERATIONS.map(|operation| format!(" {:<11}", self.cell(client, operation))));
            out.push('\n');
        }
        out
    }

    fn cell(&self, client: &str, operation: &str) -> String {
        let Some(bare) = self.bare.iter().find(|bare| bare.client == client && bare.operation == operation) else {
            return "-".into();
        };
        let mark = |ok| if ok { "ok" } else { "no" };
        let good = |attempts: &[Attempt]| {
            let through = find(attempts, bare);
            if bare.ok { worse(bare, through).is_none() } else { through.is_some_and(|through| through.ok) }
        };
        let through: Vec<_> = self.through.iter().map(|(_, attempts)| mark(good(attempts))).collect();
        format!("{} -> {}", mark(bare.ok), through.join(","))
    }

    /// How many pairs work bare, how many of those through, and how many work only through.
    pub(crate) fn count(&self) -> Tally {
        let pairs = self.bare.len() * self.through.len();
        let required = self.bare.iter().filter(|bare| bare.ok).count() * self.through.len();
        let gained = |bare: &&Attempt| !bare.ok;
        let gained = self.bare.iter().filter(gained).map(|bare| {
            self.through.iter().filter(|(_, attempts)| find(attempts, bare).is_some_and(|through| through.ok)).count()
        });
        Tally { pairs, required, carried: required - self.faults().len(), gained: gained.sum() }
    }
}

/// Sums over pairs of (client, operation, spelling of the address).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) pairs: usize,
    pub(crate) required: usize,
    pub(crate) carried: usize,
    pub(crate) gained: usize,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            pairs: sum.pairs + next.pairs,
            required: sum.required + next.required,
            carried: sum.carried + next.carried,
            gained: sum.gained + next.gained,
        })
    }
}

fn find<'a>(attempts: &'a [Attempt], like: &Attempt) -> Option<&'a Attempt> {
    attempts.iter().find(|attempt| attempt.client == like.client && attempt.operation == like.operation)
}

/// Why an attempt through the gateway is worse than the bare one that worked.
fn worse(bare: &Attempt, through: Option<&Attempt>) -> Option<String> {
    let Some(through) = through else { return Some("the client printed nothing".into()) };
    if !through.ok {
        return Some(format!("fails after {:.1} s: {}", through.seconds, through.detail));
    }
    if through.content != bare.content {
        return Some(format!("bare {:?}, through {:?}", bare.content, through.content));
    }
    (through.parts != bare.parts).then(|| format!("{} text parts bare, {} through", bare.parts, through.parts))
}
