//! Whom a lane calls, and how many calls at once it bears.

use std::sync::Arc;

use super::outcome::Pressure;

/// A destination as one tenant sees it: nobody's trouble is another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookOrigin {
    /// The tenant of the webhooks.
    pub tenant: Arc<str>,
    /// `scheme://host:port`.
    pub origin: Arc<str>,
}

/// Calls at once to an origin that has not answered yet, and to each while many slots are held.
pub(super) const FEW: u32 = 2;

/// How many calls at once: few until there was an answer, then one more for each full round that went well, half as many as soon as it is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    calls: u32,
    most: u32,
    well: u32,
    heard: bool,
}

impl Width {
    pub fn new(start: u32, most: u32) -> Self {
        let most = most.max(1);
        Self { calls: start.clamp(1, most), most, well: 0, heard: false }
    }

    /// A receiver that never answers must not be able to take what others need.
    pub fn calls(self) -> u32 {
        if self.heard { self.calls } else { self.calls.min(FEW) }
    }

    /// Calls that go well while there is room left say nothing about more of them: `full` tells whether there was none.
    pub fn report(&mut self, pressure: Pressure, full: bool) {
        self.heard |= pressure != Pressure::Neither;
        match pressure {
            Pressure::Fine if full => {
                self.well += 1;
                if self.well >= self.calls {
                    self.well = 0;
                    self.calls = (self.calls + 1).min(self.most);
                }
            }
            Pressure::Fine | Pressure::Neither => {}
            Pressure::TooMuch => {
                self.well = 0;
                self.calls = (self.calls / 2).max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_one_a_round_halves_at_once_and_stays_between_one_and_the_most() {
        let mut width = Width::new(8, 32);
        assert_eq!(width.calls(), FEW, "nothing was heard of it");
        (0..7).for_each(|_| width.report(Pressure::Fine, true));
        assert_eq!(width.calls(), 8);
        width.report(Pressure::Fine, true);
        assert_eq!(width.calls(), 9);
        (0..5_000).for_each(|_| width.report(Pressure::Fine, true));
        assert_eq!(width.calls(), 32);
        let halves = [16, 8, 4, 2, 1, 1];
        assert_eq!(
            halves.map(|_| {
                width.report(Pressure::TooMuch, true);
                width.calls()
            }),
            halves
        );
        (0..5_000).for_each(|_| width.report(Pressure::Fine, false));
        (0..5_000).for_each(|_| width.report(Pressure::Neither, true));
        assert_eq!(width.calls(), 1, "only calls that fill it show that it bears more");
        assert_eq!(Width::new(0, 0).calls(), 1);
    }
}
