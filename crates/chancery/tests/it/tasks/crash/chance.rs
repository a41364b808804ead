//! Chance with a seed that is printed, so that what was found once can be looked for again.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::RangeInclusive;

#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The seed in `CHANCERY_SEED`, or else a new one. Either is printed.
    #[expect(clippy::print_stdout, reason = "a failure is repeated with the seed")]
    pub(crate) fn new(test: &str) -> Self {
        let given = std::env::var("CHANCERY_SEED").ok().map(|seed| seed.parse().expect("CHANCERY_SEED is a number"));
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(test));
        println!("{test}: CHANCERY_SEED={seed}");
        Self(seed)
    }

    /// A chance of one's own, for somebody who draws at moments nobody can repeat.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }
}
