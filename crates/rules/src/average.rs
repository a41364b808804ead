//! A moving average in whole numbers: the newest value counts for an eighth of it.

/// Of how many parts the newest value is one.
const PARTS: u128 = 8;
/// Fraction bits that are kept, so that small changes are not rounded away.
const FRACTION: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Average(Option<u128>);

impl Average {
    /// The first value is the average.
    pub(crate) fn add(&mut self, value: u64) {
        let value = u128::from(value) << FRACTION;
        self.0 = Some(match self.0 {
            None => value,
            Some(average) => (average * (PARTS - 1) + value + PARTS / 2) / PARTS,
        });
    }

    /// To the nearest whole number.
    pub(crate) fn get(self) -> Option<u64> {
        self.0.map(|average| u64::try_from((average + (1 << (FRACTION - 1))) >> FRACTION).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_an_eighth_of_the_way_and_arrives() {
        let mut average = Average::default();
        assert_eq!(average.get(), None);
        average.add(800);
        assert_eq!(average.get(), Some(800));
        average.add(0);
        assert_eq!(average.get(), Some(700));
        for _ in 0..200 {
            average.add(3);
        }
        assert_eq!(average.get(), Some(3));
        for _ in 0..200 {
            average.add(0);
        }
        assert_eq!(average.get(), Some(0));
    }

    #[test]
    fn huge_values_stay_within_bounds() {
        let mut average = Average::default();
        for value in [u64::MAX, 0, u64::MAX, u64::MAX] {
            average.add(value);
        }
        assert!(average.get().unwrap() > u64::MAX / 2);
    }
}
