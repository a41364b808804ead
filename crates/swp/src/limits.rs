//! Every limit of the protocol and of our memory of it, with its default.

use serde::{Deserialize, Serialize};

/// What is taken from a peer. Lengths are in octets, times in milliseconds; a value equal to its limit is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwpLimits {
    /// The body of a frame, without its prefix.
    pub max_frame_bytes: u32,
    /// The largest payload of a frame.
    pub max_payload_bytes: u32,
    /// The shortest id of a message.
    pub min_msg_id_bytes: u32,
    /// The longest id of a message.
    pub max_msg_id_bytes: u32,
    /// The whole block of extensions.
    pub max_ext_bytes: u32,
    /// How far a timestamp may be from now, either way, where timestamps are checked.
    pub max_clock_skew_ms: u64,
    /// Frames that one connection may send within `rate_window_ms`.
    pub max_frames_per_window: u32,
    /// The time in which frames are counted for their rate.
    pub rate_window_ms: u64,
    /// How long a message id stays taken on its connection. 0: ids may repeat.
    pub duplicate_window_ms: u64,
    /// The A2A handshake. Its list of short names costs a multiple of its length in memory, so it has a limit of its own.
    pub max_handshake_bytes: u32,
    /// The longest id of a task.
    pub max_task_id_bytes: u32,
    /// Tasks without a result that one scope may have.
    pub max_open_tasks: u32,
    /// Finished tasks that are remembered for duplicates; the one that ended first is forgotten first.
    pub max_closed_tasks: u32,
}

impl Default for SwpLimits {
    fn default() -> Self {
        Self {
            max_frame_bytes: 8_388_608,
            max_payload_bytes: 8_388_608,
            min_msg_id_bytes: 8,
            max_msg_id_bytes: 64,
            max_ext_bytes: 4_096,
            max_clock_skew_ms: 300_000,
            max_frames_per_window: 128,
            rate_window_ms: 1_000,
            duplicate_window_ms: 5_000,
            max_handshake_bytes: 65_536,
            max_task_id_bytes: 1_024,
            max_open_tasks: 1_024,
            max_closed_tasks: 4_096,
        }
    }
}

impl SwpLimits {
    /// Values under which no frame at all could pass, each with the name of its field. Empty if all values
    /// are possible.
    pub fn faults(&self) -> Vec<(&'static str, &'static str)> {
        let mut faults = Vec::new();
        if self.min_msg_id_bytes > self.max_msg_id_bytes {
            faults.push(("min_msg_id_bytes", "is above max_msg_id_bytes"));
        }
        // Seven fields of one octet are the least that stands beside the message id.
        if u64::from(self.max_frame_bytes) < 7 + u64::from(self.min_msg_id_bytes) + 1 {
            faults.push(("max_frame_bytes", "leaves no room for the shortest envelope"));
        }
        for (name, value) in [
            ("max_msg_id_bytes", u64::from(self.max_msg_id_bytes)),
            ("max_frames_per_window", u64::from(self.max_frames_per_window)),
            ("rate_window_ms", self.rate_window_ms),
            ("max_task_id_bytes", u64::from(self.max_task_id_bytes)),
            ("max_open_tasks", u64::from(self.max_open_tasks)),
        ] {
            if value == 0 {
                faults.push((name, "is 0, which lets nothing through"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_protocol_and_have_no_fault() {
        let limits = SwpLimits::default();
        assert_eq!(limits.faults(), []);
        assert_eq!((limits.max_frame_bytes, limits.max_payload_bytes), (8 << 20, 8 << 20));
        assert_eq!((limits.min_msg_id_bytes, limits.max_msg_id_bytes, limits.max_ext_bytes), (8, 64, 4096));
        assert_eq!((limits.max_clock_skew_ms, limits.max_frames_per_window, limits.rate_window_ms), (300_000, 128, 1000));
    }

    #[test]
    fn limits_that_let_nothing_through_are_all_named() {
        let limits = SwpLimits { min_msg_id_bytes: 65, max_frame_bytes: 72, rate_window_ms: 0, ..SwpLimits::default() };
        let names: Vec<_> = limits.faults().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["min_msg_id_bytes", "max_frame_bytes", "rate_window_ms"]);
        let just_enough = SwpLimits { max_frame_bytes: 16, ..SwpLimits::default() };
        assert_eq!(just_enough.faults(), []);
    }

    #[test]
    fn limits_are_read_by_their_names_and_unknown_names_are_refused() {
        let limits: SwpLimits = toml::from_str("max_ext_bytes = 10").expect("reads");
        assert_eq!(limits, SwpLimits { max_ext_bytes: 10, ..SwpLimits::default() });
        assert!(toml::from_str::<SwpLimits>("max_extensions = 10").is_err());
    }
}
