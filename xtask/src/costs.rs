//! What steps, test binaries and tests cost: wall time, processor time, and the tables of the dearest.

use std::fs;
use std::time::{Duration, Instant};

/// How many rows a table has.
const ROWS: usize = 10;

/// Linux counts processor time for `/proc` in hundredths of a second, whatever the kernel's own clock does.
const TICKS_PER_SECOND: u64 = 100;

/// What one step or one test binary cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepCost {
    pub name: String,
    pub wall: Duration,
    /// `None` where there is no `/proc` to read it from.
    pub processor: Option<Duration>,
}

/// How long one test ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestTime {
    pub name: String,
    pub wall: Duration,
}

/// Measures from its start to its stop.
#[derive(Debug)]
pub(crate) struct CostMeter {
    began: Instant,
    processor: Option<Duration>,
}

impl CostMeter {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), processor: processor_time() }
    }

    pub(crate) fn stop(&self, name: &str) -> StepCost {
        let processor = processor_time().zip(self.processor).map(|(now, before)| now.saturating_sub(before));
        StepCost { name: name.to_owned(), wall: self.began.elapsed(), processor }
    }
}

/// The processor time of this process and of every process that it started and that has ended, with theirs.
fn processor_time() -> Option<Duration> {
    read_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn read_stat(stat: &str) -> Option<Duration> {
    // The name of the program is in parentheses and may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    // utime, stime, cutime and cstime are fields 14 to 17; the first one behind the name is field 3.
    let times: Vec<u64> = fields.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| Duration::from_millis(times.iter().sum::<u64>() * 1_000 / TICKS_PER_SECOND))
}

/// The dearest steps, the slowest tests and the sum, as lines of text.
pub(crate) fn report(steps: &[StepCost], tests: &[TestTime], total: &StepCost) -> String {
    let mut out = format!("\nthe dearest of {} steps and test binaries (wall time, processor time):\n", steps.len());
    let mut steps: Vec<_> = steps.iter().collect();
    steps.sort_by_key(|step| std::cmp::Reverse(step.wall));
    for step in steps.into_iter().take(ROWS) {
        out += &format!("{:>12} {:>12}  {}\n", show(step.wall), show_processor(step), step.name);
    }
    if !tests.is_empty() {
        out += &format!("the slowest of {} tests:\n", tests.len());
        let mut tests: Vec<_> = tests.iter().collect();
        tests.sort_by_key(|test| std::cmp::Reverse(test.wall));
        for test in tests.into_iter().take(ROWS) {
            out += &format!("{:>12}  {}\n", show(test.wall), test.name);
        }
    }
    out + &format!("in all: {} of wall time, {} of processor time\n", show(total.wall), show_processor(total))
}

fn show_processor(cost: &StepCost) -> String {
    cost.processor.map_or_else(|| "unknown".to_owned(), show)
}

pub(crate) fn show(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 60.. => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str, wall: u64, processor: Option<u64>) -> StepCost {
        StepCost { name: name.to_owned(), wall: Duration::from_secs(wall), processor: processor.map(Duration::from_secs) }
    }

    #[test]
    fn times_are_shown_in_seconds_and_from_a_minute_on_in_minutes() {
        assert_eq!(show(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(show(Duration::from_secs(125)), "2 min 05 s");
    }

    #[test]
    fn processor_time_is_read_behind_any_name_of_a_program() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 200 100 20 0 9 0 1 2 3";
        assert_eq!(read_stat(stat), Some(Duration::from_secs(5)));
        assert_eq!(read_stat("7 (a) S 1 7"), None);
        assert_eq!(read_stat(""), None);
    }

    #[test]
    fn the_time_of_children_that_ended_counts() {
        let Some(before) = processor_time() else { return };
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let meter = CostMeter::start();
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let spent = meter.stop("busy").processor.unwrap();
        assert!(spent > Duration::ZERO && processor_time().unwrap() >= before + spent);
    }

    #[test]
    fn the_report_has_the_ten_dearest_the_slowest_tests_and_the_sum() {
        let steps: Vec<_> = (1..=12).map(|number| cost(&format!("step-{number:02}"), number, Some(2 * number))).collect();
        let tests = [TestTime { name: "rules it a::b".to_owned(), wall: Duration::from_secs(61) }];
        let text = report(&steps, &tests, &cost("", 78, None));
        let named: Vec<_> = text.lines().filter_map(|line| line.split_once("step-")).map(|(_, number)| number).collect();
        assert_eq!(named, ["12", "11", "10", "09", "08", "07", "06", "05", "04", "03"]);
        assert!(text.contains("      12.0 s       24.0 s  step-12\n"), "{text}");
        assert!(text.contains("1 min 01 s  rules it a::b\n"), "{text}");
        assert!(text.ends_with("in all: 1 min 18 s of wall time, unknown of processor time\n"), "{text}");
        assert!(!report(&steps, &[], &cost("", 1, None)).contains("slowest"));
    }
}
