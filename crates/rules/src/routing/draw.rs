//! Numbers that look random and follow from a seed (the SplitMix64 generator).

use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
pub(super) struct Draw(AtomicU64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&self, bound: usize) -> usize {
        let random = mixed(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP));
        // The high half of the product is below the bound.
        ((u128::from(random) * bound as u128) >> 64) as usize
    }
}

/// Spreads the bits of a number over all of it.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A number for a text, another one for each seed. The same on every machine.
pub(crate) fn number_of(text: &str, seed: u64) -> u64 {
    text.bytes().fold(mixed(seed.wrapping_add(STEP)), |number, byte| mixed(number ^ u64::from(byte)).wrapping_add(STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let draw = Draw::new(1_234_567);
        let next = || mixed(draw.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP));
        assert_eq!([next(), next(), next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_number_below_the_bound_comes_up_about_as_often() {
        let draw = Draw::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..50_000 {
            seen[draw.below(5)] += 1;
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        assert_eq!(draw.below(1), 0);
    }
}
