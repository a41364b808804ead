//! A payload read by the profile of its envelope.

use bytes::Bytes;

use crate::{Envelope, Limits, Profile, Reason, Reject, a2a, agdisc, obs};

/// What a frame says, as far as this crate reads its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    A2a(a2a::Message),
    Agdisc(agdisc::Message),
    Obs(obs::Message),
    /// A registered profile whose payloads are not looked into.
    Opaque(Profile, Bytes),
}

impl Payload {
    /// Reads the payload of an envelope that passed [`validate`](Envelope::validate).
    pub fn read(envelope: &Envelope, limits: &Limits) -> Result<Self, Reject> {
        let (msg_type, payload) = (envelope.msg_type, envelope.payload.clone());
        match Profile::from_id(envelope.profile_id).ok_or(Reason::UnknownProfile)? {
            Profile::A2a => a2a::Message::read(msg_type, payload, limits).map(Self::A2a),
            Profile::Agdisc => agdisc::Message::read(msg_type, payload).map(Self::Agdisc),
            Profile::Obs => obs::Message::read(msg_type, payload).map(Self::Obs),
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
            envelope.validate(&Limits::default(), crate::Timestamps::Ignored).expect("is registered");
            let read = Payload::read(&envelope, &Limits::default());
            match profile {
                Profile::A2a | Profile::Agdisc | Profile::Obs => {
                    assert_eq!(read.expect_err("is not P1").reason(), Reason::MalformedPayload);
                }
                other => assert_eq!(read, Ok(Payload::Opaque(other, envelope.payload))),
            }
        }
    }
}
