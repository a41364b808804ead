//! What a decoded envelope has to say to be taken, in the order that decides which fault is reported.

use crate::envelope::{VERSION, within};
use crate::{Envelope, FrameReason, Profile, Reject, SwpLimits};

/// Whether timestamps are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timestamps {
    #[default]
    Ignored,
    /// They have to be within the allowed skew of `now_ms`, either way.
    Checked {
        now_ms: u64,
        /// Whether a sender may say that it has no clock.
        allow_zero: bool,
    },
}

impl Envelope {
    /// Judges what [`decode`](Self::decode) read: version, profile, message type, message id, payload, timestamp.
    pub fn validate(&self, limits: &SwpLimits, timestamps: Timestamps) -> Result<(), Reject> {
        if self.version != VERSION {
            return Err(Reject::beyond(FrameReason::UnsupportedVersion, self.version, VERSION));
        }
        if Profile::from_id(self.profile_id).is_none() {
            return Err(FrameReason::UnknownProfile.into());
        }
        if self.msg_type == 0 {
            return Err(FrameReason::MissingMsgType.into());
        }
        let shortest = u64::from(limits.min_msg_id_bytes);
        // An empty id is none, whatever the limits say.
        if (self.msg_id.len() as u64) < shortest.max(1) {
            return Err(Reject::beyond(FrameReason::MsgIdTooShort, self.msg_id.len() as u64, shortest.max(1)));
        }
        within(FrameReason::MsgIdTooLong, self.msg_id.len(), limits.max_msg_id_bytes)?;
        within(FrameReason::PayloadTooLarge, self.payload.len(), limits.max_payload_bytes)?;
        timestamps.judge(self.ts_unix_ms, limits.max_clock_skew_ms)
    }
}

impl Timestamps {
    fn judge(self, ts_unix_ms: u64, max_skew_ms: u64) -> Result<(), Reject> {
        let Self::Checked { now_ms, allow_zero } = self else { return Ok(()) };
        if ts_unix_ms == 0 {
            return if allow_zero { Ok(()) } else { Err(FrameReason::TimestampMissing.into()) };
        }
        let skew = now_ms.abs_diff(ts_unix_ms);
        if skew <= max_skew_ms {
            return Ok(());
        }
        let reason = if ts_unix_ms < now_ms { FrameReason::TimestampStale } else { FrameReason::TimestampFuture };
        Err(Reject::beyond(reason, skew, max_skew_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn envelope() -> Envelope {
        Envelope::new(Profile::A2a, 2, Bytes::from_static(b"exchange"), 1_000_000, Bytes::new())
    }

    fn refused(envelope: &Envelope, limits: &SwpLimits, timestamps: Timestamps) -> Option<FrameReason> {
        envelope.validate(limits, timestamps).err().map(|reject| reject.reason())
    }

    #[test]
    fn of_several_faults_the_first_in_order_is_reported() {
        let strict = SwpLimits { max_payload_bytes: 1, ..SwpLimits::default() };
        let checked = Timestamps::Checked { now_ms: 1, allow_zero: false };
        let mut worst = Envelope { version: 0, profile_id: 0, msg_type: 0, msg_id: Bytes::new(), ts_unix_ms: 0, ..envelope() };
        worst.payload = Bytes::from_static(b"long");
        let mut seen = Vec::new();
        for mend in [
            (|e: &mut Envelope| e.version = 1) as fn(&mut Envelope),
            |e| e.profile_id = 2,
            |e| e.msg_type = 1,
            |e| e.msg_id = Bytes::from_static(b"exchange"),
            |e| e.payload = Bytes::new(),
            |e| e.ts_unix_ms = 1,
        ] {
            seen.extend(refused(&worst, &strict, checked));
            mend(&mut worst);
        }
        assert_eq!(
            seen,
            [
                FrameReason::UnsupportedVersion,
                FrameReason::UnknownProfile,
                FrameReason::MissingMsgType,
                FrameReason::MsgIdTooShort,
                FrameReason::PayloadTooLarge,
                FrameReason::TimestampMissing
            ]
        );
        assert_eq!(refused(&worst, &strict, checked), None);
    }

    #[test]
    fn message_ids_have_a_shortest_and_a_longest_length() {
        for (length, reason) in [
            (0, Some(FrameReason::MsgIdTooShort)),
            (7, Some(FrameReason::MsgIdTooShort)),
            (8, None),
            (64, None),
            (65, Some(FrameReason::MsgIdTooLong)),
        ] {
            let envelope = Envelope { msg_id: vec![b'i'; length].into(), ..envelope() };
            assert_eq!(refused(&envelope, &SwpLimits::default(), Timestamps::Ignored), reason, "{length}");
        }
        let lax = SwpLimits { min_msg_id_bytes: 0, ..SwpLimits::default() };
        let empty = Envelope { msg_id: Bytes::new(), ..envelope() };
        assert_eq!(refused(&empty, &lax, Timestamps::Ignored), Some(FrameReason::MsgIdTooShort));
    }

    #[test]
    fn a_timestamp_may_be_as_far_off_as_the_skew_and_not_a_millisecond_more() {
        let limits = SwpLimits { max_clock_skew_ms: 300, ..SwpLimits::default() };
        let at = |now_ms| refused(&envelope(), &limits, Timestamps::Checked { now_ms, allow_zero: false });
        assert_eq!([at(1_000_300), at(999_700)], [None, None]);
        assert_eq!([at(1_000_301), at(999_699)], [Some(FrameReason::TimestampStale), Some(FrameReason::TimestampFuture)]);
        assert_eq!(refused(&envelope(), &limits, Timestamps::Ignored), None);
    }

    #[test]
    fn a_sender_without_a_clock_is_taken_only_where_that_is_allowed() {
        let timeless = Envelope { ts_unix_ms: 0, ..envelope() };
        let checked = |allow_zero| Timestamps::Checked { now_ms: 1_000_000, allow_zero };
        assert_eq!(refused(&timeless, &SwpLimits::default(), checked(false)), Some(FrameReason::TimestampMissing));
        assert_eq!(refused(&timeless, &SwpLimits::default(), checked(true)), None);
    }
}
