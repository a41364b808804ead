//! The profiles that are registered, by number and by name.

/// What a payload is about. Which of them a door serves is the door's affair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// JSON-RPC text as it is; every other profile has P1 payloads.
    Mcp,
    A2a,
    Agdisc,
    Tooldisc,
    Rpc,
    Events,
    Artifact,
    Cred,
    PolicyHint,
    State,
    Obs,
    Relay,
}

impl Profile {
    pub const ALL: [Self; 12] = [
        Self::Mcp,
        Self::A2a,
        Self::Agdisc,
        Self::Tooldisc,
        Self::Rpc,
        Self::Events,
        Self::Artifact,
        Self::Cred,
        Self::PolicyHint,
        Self::State,
        Self::Obs,
        Self::Relay,
    ];

    pub fn id(self) -> u64 {
        match self {
            Self::Mcp => 1,
            Self::A2a => 2,
            Self::Agdisc => 10,
            Self::Tooldisc => 11,
            Self::Rpc => 12,
            Self::Events => 13,
            Self::Artifact => 14,
            Self::Cred => 15,
            Self::PolicyHint => 16,
            Self::State => 17,
            Self::Obs => 18,
            Self::Relay => 19,
        }
    }

    /// None for the reserved 0 and 3 to 9, and for unregistered numbers.
    pub fn from_id(id: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.id() == id)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "MCP",
            Self::A2a => "A2A",
            Self::Agdisc => "AGDISC",
            Self::Tooldisc => "TOOLDISC",
            Self::Rpc => "RPC",
            Self::Events => "EVENTS",
            Self::Artifact => "ARTIFACT",
            Self::Cred => "CRED",
            Self::PolicyHint => "POLICYHINT",
            Self::State => "STATE",
            Self::Obs => "OBS",
            Self::Relay => "RELAY",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registered_numbers_are_1_2_and_10_to_19() {
        let known: Vec<u64> = (0..5000).filter(|id| Profile::from_id(*id).is_some()).collect();
        assert_eq!(known, [1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
        assert_eq!(Profile::from_id(u64::MAX), None);
    }
}
