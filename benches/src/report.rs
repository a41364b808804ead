//! The table a person reads, and the same lines for a program.

use std::fmt::Write as _;

use serde::Serialize;

/// One figure of both sides.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Pair {
    pub(crate) yardstick: f64,
    pub(crate) chancery: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    Bytes,
    Microseconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowTarget {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    /// In the unit of the line.
    AtMost(f64),
    AtLeast(f64),
    /// More than the other side, in the unit of the line.
    AddedAtMost(f64),
}

/// One measured row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MeasuredRow {
    pub(crate) row: String,
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) value: Pair,
    pub(crate) ratio: f64,
    /// The lowest and the highest ratio of all rounds.
    pub(crate) spread: (f64, f64),
    pub(crate) target: Option<RowTarget>,
    pub(crate) p50_us: Option<Pair>,
    pub(crate) p99_us: Option<Pair>,
    pub(crate) p99_ratio: Option<f64>,
    pub(crate) p99_target: Option<f64>,
    /// Processor time of the server for one request.
    pub(crate) processor_us: Option<Pair>,
    /// How many times the yardstick's it may be.
    pub(crate) processor_target: Option<f64>,
    pub(crate) note: Option<String>,
}

/// A row as it came out: measured, or not measurable and why.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowOutcome {
    Measured { line: Box<MeasuredRow>, missed: Vec<String> },
    Failed { row: String, reason: String },
}

impl MeasuredRow {
    /// What was to be reached and was not, in words.
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let reached = match self.target {
            None => true,
            Some(RowTarget::RatioAtLeast(least)) => self.ratio >= least,
            Some(RowTarget::RatioAtMost(most)) => self.ratio <= most,
            Some(RowTarget::AtMost(most)) => self.value.chancery <= most,
            Some(RowTarget::AtLeast(least)) => self.value.chancery >= least,
            Some(RowTarget::AddedAtMost(most)) => self.value.chancery - self.value.yardstick <= most,
        };
        if !reached {
            let value = match self.target {
                Some(RowTarget::AtMost(_) | RowTarget::AtLeast(_)) => amount(self.unit, self.value.chancery),
                Some(RowTarget::AddedAtMost(_)) => format!("+{}", amount(self.unit, self.value.chancery - self.value.yardstick)),
                _ => format!("{:.2}", self.ratio),
            };
            missed.push(format!("{value}, wanted {}", self.wanted()));
        }
        if let (Some(ratio), Some(most)) = (self.p99_ratio, self.p99_target)
            && ratio > most
        {
            missed.push(format!("p99 {ratio:.2} times, wanted ≤ {most:.2}"));
        }
        if let (Some(ratio), Some(most)) = (self.processor_ratio(), self.processor_target)
            && ratio > most
        {
            missed.push(format!("processor time {ratio:.2} times, wanted ≤ {most:.2}"));
        }
        missed
    }

    /// The processor time of a request beside the yardstick's.
    fn processor_ratio(&self) -> Option<f64> {
        self.processor_us.map(|Pair { yardstick, chancery }| chancery / yardstick).filter(|ratio| ratio.is_finite())
    }

    fn wanted(&self) -> String {
        match self.target {
            None => "–".to_owned(),
            Some(RowTarget::RatioAtLeast(least)) => format!("≥ {least:.2}"),
            Some(RowTarget::RatioAtMost(most)) => format!("≤ {most:.2}"),
            Some(RowTarget::AtMost(most)) => format!("≤ {}", amount(self.unit, most)),
            Some(RowTarget::AtLeast(least)) => format!("≥ {}", amount(self.unit, least)),
            Some(RowTarget::AddedAtMost(most)) => format!("≤ +{}", amount(self.unit, most)),
        }
    }
}

impl RowOutcome {
    pub(crate) fn of(row: &str, measured: anyhow::Result<MeasuredRow>) -> Self {
        match measured {
            Ok(line) => Self::Measured { missed: line.missed(), line: Box::new(line) },
            Err(error) => Self::Failed { row: row.to_owned(), reason: format!("{error:#}") },
        }
    }

    /// Failed to be measured counts as missed.
    pub(crate) fn is_missed(&self) -> bool {
        match self {
            Self::Measured { missed, .. } => !missed.is_empty(),
            Self::Failed { .. } => true,
        }
    }
}

const COLUMNS: usize = 12;
const HEADINGS: [&str; COLUMNS] =
    ["row", "yardstick", "chancery", "ratio", "(of rounds)", "wanted", "p50 µs", "p99 µs", "p99 ×", "cpu µs", "cpu ×", "reached"];

/// The whole table, with what was missed below it.
pub(crate) fn table(outcomes: &[RowOutcome]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let mut below = String::new();
    for outcome in outcomes {
        match outcome {
            RowOutcome::Measured { line, missed } => {
                rows.push(cells(line, missed.is_empty()));
                for miss in missed {
                    let _ = writeln!(below, "MISSED  {}: {miss}", line.title);
                }
                if let Some(note) = &line.note {
                    let _ = writeln!(below, "note    {}: {note}", line.title);
                }
            }
            RowOutcome::Failed { row, reason } => {
                let _ = writeln!(below, "FAILED  {row}: {reason}");
            }
        }
    }
    let widths: [usize; COLUMNS] = std::array::from_fn(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[at] - cell.chars().count());
            // Words to the left, figures to the right.
            let _ = if at == 0 { write!(text, "{cell}{gap}") } else { write!(text, "  {gap}{cell}") };
        }
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&below);
    text
}

fn cells(line: &MeasuredRow, reached: bool) -> [String; COLUMNS] {
    let of_both = |pair: Option<Pair>| match pair {
        Some(pair) => format!("{} / {}", micros(pair.yardstick), micros(pair.chancery)),
        None => String::new(),
    };
    let plain = |value: f64| if value.is_nan() { String::new() } else { format!("{value:.2}") };
    let has_target = line.target.is_some() || line.p99_target.is_some() || line.processor_target.is_some();
    [
        line.title.clone(),
        amount(line.unit, line.value.yardstick),
        amount(line.unit, line.value.chancery),
        plain(line.ratio),
        if line.spread.0 < line.spread.1 { format!("{:.2}–{:.2}", line.spread.0, line.spread.1) } else { String::new() },
        line.wanted(),
        of_both(line.p50_us),
        of_both(line.p99_us),
        line.p99_ratio.map(plain).unwrap_or_default(),
        of_both(line.processor_us),
        line.processor_ratio().map(plain).unwrap_or_default(),
        match (has_target, reached) {
            (false, _) => "–",
            (true, true) => "yes",
            (true, false) => "NO",
        }
        .to_owned(),
    ]
}

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        // Not measured; the note says why.
        _ if value.is_nan() => "–".to_owned(),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::Microseconds => format!("{value:.1} µs"),
    }
}

fn micros(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ratio: f64, p99_ratio: f64) -> MeasuredRow {
        let pair = Pair { yardstick: 100.0, chancery: 100.0 * ratio };
        MeasuredRow {
            row: "send".to_owned(),
            title: "blocking send".to_owned(),
            unit: Unit::PerSecond,
            value: pair,
            ratio,
            spread: (ratio, ratio),
            target: Some(RowTarget::RatioAtLeast(0.7)),
            p50_us: Some(pair),
            p99_us: Some(pair),
            p99_ratio: Some(p99_ratio),
            p99_target: Some(2.0),
            processor_us: None,
            processor_target: None,
            note: None,
        }
    }

    #[test]
    fn a_row_is_reached_only_when_rate_and_p99_both_are() {
        assert!(line(0.70, 2.0).missed().is_empty());
        assert_eq!(line(0.69, 2.0).missed().len(), 1);
        assert_eq!(line(0.70, 2.1).missed().len(), 1);
        assert_eq!(line(0.10, 9.0).missed().len(), 2);
    }

    #[test]
    fn processor_time_counts_beside_the_rate() {
        let durable = |chancery| MeasuredRow {
            processor_us: Some(Pair { yardstick: 10.0, chancery }),
            processor_target: Some(3.3),
            ..line(0.7, 1.0)
        };
        assert!(durable(33.0).missed().is_empty());
        assert_eq!(durable(34.0).missed(), ["processor time 3.40 times, wanted ≤ 3.30"]);
        assert!(table(&[RowOutcome::of("send", Ok(durable(34.0)))]).contains("3.40"));
    }

    #[test]
    fn what_is_added_counts_and_not_what_was_there() {
        let added = |yardstick, chancery| MeasuredRow {
            unit: Unit::Microseconds,
            value: Pair { yardstick, chancery },
            target: Some(RowTarget::AddedAtMost(2_000.0)),
            ..line(1.0, 1.0)
        };
        assert!(added(5_000.0, 7_000.0).missed().is_empty());
        assert_eq!(added(100.0, 2_101.0).missed(), ["+2001.0 µs, wanted ≤ +2000.0 µs"]);
    }

    #[test]
    fn the_table_names_every_miss_and_every_failure() {
        let outcomes = [
            RowOutcome::of("send", Ok(line(0.5, 1.0))),
            RowOutcome::of("card", Err(anyhow::anyhow!("no answer"))),
            RowOutcome::of("fine", Ok(line(0.9, 1.0))),
        ];
        let text = table(&outcomes);
        assert!(text.contains("MISSED  blocking send: 0.50, wanted ≥ 0.70"));
        assert!(text.contains("FAILED  card: no answer"));
        assert_eq!(outcomes.iter().map(RowOutcome::is_missed).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
