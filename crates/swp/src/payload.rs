//! A payload read by the profile of its envelope.

use bytes::Bytes;

use crate::{Envelope, FrameReason, Profile, Reject, SwpLimits, a2a, agdisc, obs};

/// What a frame says, as far as this crate reads its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FramePayload {
    A2a(a2a::A2aMessage),
    Agdisc(agdisc::AgdiscMessage),
    Obs(obs::ObsMessage),
    /// A registered profile whose payloads are not looked into.
    Opaque(Profile, Bytes),
}

impl FramePayload {
    /// Reads the payload of an envelope that passed [`validate`](Envelope::validate).
    pub fn read(envelope: &Envelope, limits: &SwpLimits) -> Result<Self, Reject> {
        let (msg_type, payload) = (envelope.msg_type, envelope.payload.clone());
        match Profile::from_id(envelope.profile_id).ok_or(FrameReason::UnknownProfile)? {
            Profile::A2a => a2a::A2aMessage::read(msg_type, payload, limits).map(Self::A2a),
            Profile::Agdisc => agdisc::AgdiscMessage::read(msg_type, payload).map(Self::Agdisc),
            Profile::Obs => obs::ObsMessage::read(msg_type, payload).map(Self::Obs),
            profile => Ok(Self::Opaque(profile, payload)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_profile_is_taken_and_only_those_we_know_are_looked_into() {
        for profile in Profile::ALL {
            let envelope = Envelope::new(profile, 1, Bytes::from_static(b"exchange"), 0, Bytes::from_static(&[0xff]));
            envelope.validate(&SwpLimits::default(), crate::Timestamps::Ignored).expect("is registered");
            let read = FramePayload::read(&envelope, &SwpLimits::default());
            match profile {
                Profile::A2a | Profile::Agdisc | Profile::Obs => {
                    assert_eq!(read.expect_err("is not P1").reason(), FrameReason::MalformedPayload);
                }
                other => assert_eq!(read, Ok(FramePayload::Opaque(other, envelope.payload))),
            }
        }
    }
}
