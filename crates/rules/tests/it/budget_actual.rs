//! What peers report, sensible or not, and what counts in the end.

use chancery_rules::MicroUsd;
use chancery_rules::MoneyFault::{self, Negative, NotANumber, TooMuch};
use chancery_rules::budget::*;

fn price(usd: i64) -> Price {
    Price { usd: Some(MicroUsd(usd)), tokens: None }
}

fn estimated(usd: Option<i64>) -> Estimated {
    let source = if usd.is_some() { EstimateSource::Observed } else { EstimateSource::Remainder };
    let expected = Price { usd: usd.map(MicroUsd), tokens: Some(11) };
    let estimate = Estimate { usd: usd.map(MicroUsd), tokens: Some(11), tasks: 1, expected };
    Estimated { estimate, usd: source, tokens: EstimateSource::Observed }
}

fn facts(configured: Option<i64>, measured: Option<i64>, guess: Option<i64>) -> ActualFacts {
    let known = |usd: Option<i64>| usd.map(price).unwrap_or_default();
    ActualFacts { configured: known(configured), measured: known(measured), estimated: estimated(guess) }
}

fn report(json: &str) -> ReportedCost {
    serde_json::from_str(json).unwrap()
}

fn nonsense(fault: MoneyFault) -> Vec<Ignored> {
    vec![Ignored { dimension: Dimension::Usd, why: IgnoredBecause::Nonsense(fault) }]
}

#[test]
fn a_report_that_makes_sense_counts_and_any_other_changes_nothing() {
    use ActualSource::{Estimated, Reported};
    for (json, usd, source, ignored) in [
        (r#"{}"#, 40, Estimated, vec![]),
        (r#"{"usd":null}"#, 40, Estimated, vec![]),
        (r#"{"usd":"0.05"}"#, 50_000, Reported, vec![]),
        (r#"{"usd":0.05}"#, 50_000, Reported, vec![]),
        (r#"{"usd":5}"#, 5_000_000, Reported, vec![]),
        (r#"{"usd":0}"#, 0, Reported, vec![]),
        (r#"{"usd":0.00001234567}"#, 13, Reported, vec![]),
        (r#"{"usd":9000000000}"#, 9_000_000_000_000_000, Reported, vec![]),
        (r#"{"usd":9000000001}"#, 40, Estimated, nonsense(TooMuch)),
        (r#"{"usd":1e308}"#, 40, Estimated, nonsense(TooMuch)),
        (r#"{"usd":-0.01}"#, 40, Estimated, nonsense(Negative)),
        (r#"{"usd":-9223372036854775808}"#, 40, Estimated, nonsense(Negative)),
        (r#"{"usd":"-1"}"#, 40, Estimated, nonsense(Negative)),
        (r#"{"usd":"NaN"}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":"Infinity"}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":"five dollars"}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":""}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":true}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":[1,{"a":2}]}"#, 40, Estimated, nonsense(NotANumber)),
        (r#"{"usd":{"amount":1,"of":[2]}}"#, 40, Estimated, nonsense(NotANumber)),
    ] {
        let seen = actual(&report(json), &facts(None, None, Some(40)));
        assert_eq!((seen.usd.0, seen.usd_source, seen.ignored), (usd, source, ignored), "{json}");
        assert_eq!((seen.tokens, seen.tokens_source), (11, Estimated), "{json}");
    }
}

#[test]
fn tokens_are_judged_by_the_same_rules() {
    for (json, tokens, is_ignored) in [
        ("120", 120, false),
        ("\"120\"", 120, false),
        ("12.2", 13, false),
        ("0", 0, false),
        ("9000000000000000", 9_000_000_000_000_000, false),
        ("9000000000000001", 11, true),
        ("18446744073709551615", 11, true),
        ("1e308", 11, true),
        ("-1", 11, true),
        ("-0.5", 11, true),
        ("\"-1\"", 11, true),
        ("\"many\"", 11, true),
    ] {
        let seen = actual(&report(&format!("{{\"tokens\":{json}}}")), &facts(None, None, None));
        assert_eq!((seen.tokens, !seen.ignored.is_empty()), (tokens, is_ignored), "{json}");
    }
    let nan: Reported<MicroUsd> = MicroUsd::from_f64_rounding_up(f64::NAN).into();
    assert_eq!(nan, Reported::Nonsense(NotANumber));
    let (said, most) = (Reported::Said(2_u64), Reported::Said(MOST_TOKENS));
    assert_eq!(said.plus(Reported::Said(3)), Reported::Said(5));
    assert_eq!(said.plus(Reported::Nothing), said);
    assert_eq!(Reported::Nothing.plus(said), said);
    assert_eq!(said.plus(most), Reported::Nonsense(TooMuch));
    assert_eq!(said.plus(Reported::Nonsense(Negative)), Reported::Nonsense(Negative));
}

#[test]
fn without_a_report_the_price_counts_then_what_was_measured_then_the_estimate() {
    use ActualSource::{Configured, Estimated, Measured};
    let nothing = ReportedCost::default();
    for (facts, usd, source) in [
        (facts(Some(1), Some(2), Some(3)), 1, Configured),
        (facts(None, Some(2), Some(3)), 2, Measured),
        (facts(None, None, Some(3)), 3, Estimated),
        (facts(None, None, None), 0, Estimated),
    ] {
        let seen = actual(&nothing, &facts);
        assert_eq!((seen.usd.0, seen.usd_source), (usd, source));
    }
}

#[test]
fn a_zero_does_not_undo_a_price_of_the_operators() {
    let zero = report(r#"{"usd":0}"#);
    let seen = actual(&zero, &facts(Some(70), None, Some(40)));
    assert_eq!((seen.usd, seen.usd_source), (MicroUsd(70), ActualSource::Configured));
    assert_eq!(seen.ignored, [Ignored { dimension: Dimension::Usd, why: IgnoredBecause::ZeroUnderAPrice }]);
    let free = actual(&zero, &facts(Some(0), None, Some(40)));
    assert_eq!((free.usd, free.usd_source, free.ignored), (MicroUsd(0), ActualSource::Reported, vec![]));
}
