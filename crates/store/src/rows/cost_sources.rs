//! Where an estimate or a cost comes from, as a number.

use chancery_core::budget::{ActualSource, EstimateSource};

use super::UnreadableRow;

pub(crate) const fn number_of_estimate(source: EstimateSource) -> i64 {
    match source {
        EstimateSource::None => 0,
        EstimateSource::Hint => 1,
        EstimateSource::Config => 2,
        EstimateSource::Card => 3,
        EstimateSource::Observed => 4,
        EstimateSource::Policy => 5,
        EstimateSource::Remainder => 6,
        EstimateSource::ConfigHint => 7,
        EstimateSource::CardHint => 8,
        EstimateSource::ObservedHint => 9,
    }
}

pub(crate) fn estimate(number: i64) -> Result<EstimateSource, UnreadableRow> {
    use EstimateSource::{Card, CardHint, Config, ConfigHint, Hint, None, Observed, ObservedHint, Policy, Remainder};
    let known = [None, Hint, Config, Card, Observed, Policy, Remainder, ConfigHint, CardHint, ObservedHint];
    let source = known.into_iter().find(|source| number_of_estimate(*source) == number);
    source.ok_or_else(|| UnreadableRow::new(format!("source {number} of an estimate")))
}

pub(crate) const fn number_of_actual(source: ActualSource) -> i64 {
    match source {
        ActualSource::Reported => 1,
        ActualSource::Configured => 2,
        ActualSource::Measured => 3,
        ActualSource::Estimated => 4,
    }
}

pub(crate) fn actual(number: i64) -> Result<ActualSource, UnreadableRow> {
    use ActualSource::{Configured, Estimated, Measured, Reported};
    let known = [Reported, Configured, Measured, Estimated];
    let source = known.into_iter().find(|source| number_of_actual(*source) == number);
    source.ok_or_else(|| UnreadableRow::new(format!("source {number} of a cost")))
}
