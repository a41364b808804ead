//! What one connection may do over time: so many frames a window, and no message id twice within a while.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::{FrameReason, Reject, SwpLimits};

/// The memory of one connection. Times are milliseconds of any clock that does not go back.
#[derive(Debug)]
pub struct Traffic {
    max_frames: u32,
    rate_window_ms: u64,
    duplicate_window_ms: u64,
    window_began_ms: Option<u64>,
    frames: u32,
    /// Ids in the order they came. Copies, because a slice of a frame would keep all of it in memory.
    recent: VecDeque<(u64, Arc<[u8]>)>,
    taken: HashSet<Arc<[u8]>>,
}

impl Traffic {
    pub fn new(limits: &SwpLimits) -> Self {
        Self {
            max_frames: limits.max_frames_per_window,
            rate_window_ms: limits.rate_window_ms,
            duplicate_window_ms: limits.duplicate_window_ms,
            window_began_ms: None,
            frames: 0,
            recent: VecDeque::new(),
            taken: HashSet::new(),
        }
    }

    /// Counts one frame, and refuses one too many or one whose id is still taken.
    pub fn admit(&mut self, msg_id: &[u8], now_ms: u64) -> Result<(), Reject> {
        if self.window_began_ms.is_none_or(|began| now_ms.saturating_sub(began) >= self.rate_window_ms) {
            self.window_began_ms = Some(now_ms);
            self.frames = 0;
        }
        if self.frames >= self.max_frames {
            return Err(Reject::beyond(FrameReason::RateLimitExceeded, u64::from(self.frames) + 1, self.max_frames.into()));
        }
        self.frames += 1;
        self.forget(now_ms);
        if self.taken.contains(msg_id) {
            return Err(FrameReason::DuplicateMsgId.into());
        }
        if self.duplicate_window_ms > 0 {
            let id: Arc<[u8]> = msg_id.into();
            self.taken.insert(Arc::clone(&id));
            self.recent.push_back((now_ms, id));
        }
        Ok(())
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some((seen_ms, id)) = self.recent.front() {
            if now_ms.saturating_sub(*seen_ms) < self.duplicate_window_ms {
                return;
            }
            self.taken.remove(id);
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(traffic: &mut Traffic, msg_id: &str, now_ms: u64) -> Option<FrameReason> {
        traffic.admit(msg_id.as_bytes(), now_ms).err().map(|reject| reject.reason())
    }

    #[test]
    fn a_window_takes_so_many_frames_and_the_next_one_as_many_again() {
        let mut traffic = Traffic::new(&SwpLimits { max_frames_per_window: 2, ..SwpLimits::default() });
        assert_eq!([refused(&mut traffic, "a", 7), refused(&mut traffic, "b", 1006)], [None, None]);
        assert_eq!(refused(&mut traffic, "c", 1006), Some(FrameReason::RateLimitExceeded));
        assert_eq!([refused(&mut traffic, "c", 1007), refused(&mut traffic, "d", 1007)], [None, None]);
        assert_eq!(refused(&mut traffic, "e", 1007), Some(FrameReason::RateLimitExceeded));
    }

    #[test]
    fn by_default_the_129th_frame_of_a_second_is_one_too_many() {
        let mut traffic = Traffic::new(&SwpLimits::default());
        for n in 0..128 {
            assert_eq!(refused(&mut traffic, &n.to_string(), 0), None);
        }
        assert_eq!(refused(&mut traffic, "128", 999), Some(FrameReason::RateLimitExceeded));
        assert_eq!(refused(&mut traffic, "128", 1000), None);
    }

    #[test]
    fn a_message_id_is_free_again_once_its_window_has_passed() {
        let mut traffic = Traffic::new(&SwpLimits::default());
        assert_eq!(refused(&mut traffic, "a", 0), None);
        assert_eq!(refused(&mut traffic, "a", 4999), Some(FrameReason::DuplicateMsgId));
        assert_eq!(refused(&mut traffic, "b", 4999), None);
        assert_eq!(refused(&mut traffic, "a", 5000), None);
    }

    #[test]
    fn the_rate_is_looked_at_before_the_id() {
        let mut traffic = Traffic::new(&SwpLimits { max_frames_per_window: 1, ..SwpLimits::default() });
        assert_eq!(refused(&mut traffic, "a", 0), None);
        assert_eq!(refused(&mut traffic, "a", 0), Some(FrameReason::RateLimitExceeded));
    }

    #[test]
    fn ids_may_repeat_where_no_window_is_set_and_none_is_remembered() {
        let mut traffic = Traffic::new(&SwpLimits { duplicate_window_ms: 0, ..SwpLimits::default() });
        assert_eq!([refused(&mut traffic, "a", 0), refused(&mut traffic, "a", 0)], [None, None]);
        assert!(traffic.recent.is_empty());
    }

    #[test]
    fn only_the_ids_of_the_window_are_remembered() {
        let mut traffic = Traffic::new(&SwpLimits::default());
        for n in 0..10_000u64 {
            assert_eq!(refused(&mut traffic, &n.to_string(), n * 10), None);
        }
        assert_eq!((traffic.recent.len(), traffic.taken.len()), (500, 500));
    }
}
