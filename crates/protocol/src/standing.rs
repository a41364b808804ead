//! What is known of a caller beside its name: how it proved itself, which agent it is, and what it may call.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::AgentName;

/// An agent by its key: SHAKE-256 of its Ed25519 public key, 32 bytes in lower-case hex.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentId(Arc<str>);

impl AgentId {
    const DIGITS: usize = 64;

    /// Returns the 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes the id of a digest.
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        use fmt::Write as _;
        let text = digest.iter().fold(String::with_capacity(Self::DIGITS), |mut text, byte| {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self(text.into())
    }
}

impl FromStr for AgentId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == Self::DIGITS && text.bytes().all(digit) {
            Ok(Self(text.into()))
        } else {
            Err("an agent id is 64 lower-case hex digits")
        }
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a caller showed who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdentityProof {
    /// Not at all: this node requires no authentication.
    #[default]
    None,
    /// An API key.
    ApiKey,
    /// A token of an issuer this node trusts.
    Token,
    /// A client certificate.
    Certificate,
    /// A signature by the key of the agent that calls.
    Signature,
}

/// One thing a caller may do: call an agent, or only one skill of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallGrant {
    /// The name of the agent.
    pub agent: AgentName,
    /// The only skill that the grant is for. `None` stands for every skill.
    pub skill: Option<Arc<str>>,
}

impl FromStr for CallGrant {
    type Err = &'static str;

    /// `AGENT`, or `AGENT/SKILL`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (agent, skill) = text.split_once('/').map_or((text, None), |(agent, skill)| (agent, Some(skill)));
        if agent.is_empty() || skill.is_some_and(str::is_empty) {
            return Err("must be AGENT or AGENT/SKILL");
        }
        Ok(Self { agent: agent.into(), skill: skill.map(Into::into) })
    }
}

impl fmt::Display for CallGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.skill {
            Some(skill) => write!(f, "{}/{skill}", self.agent),
            None => f.write_str(&self.agent),
        }
    }
}

/// The agents and skills that a caller may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MayCall {
    /// Every agent and skill.
    #[default]
    Everything,
    /// Only what the grants name.
    Only(Vec<CallGrant>),
}

/// What a caller may do at one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// No skill.
    Nothing,
    /// Every skill.
    Whole,
    /// Only these skills, by name.
    Skills(Vec<&'a str>),
}

impl MayCall {
    /// Returns the skills of an agent that the caller may call.
    pub fn reach(&self, agent: &str) -> Reach<'_> {
        let Self::Only(grants) = self else { return Reach::Whole };
        let mut skills = Vec::new();
        for grant in grants.iter().filter(|grant| &*grant.agent == agent) {
            match &grant.skill {
                None => return Reach::Whole,
                Some(skill) => skills.push(&**skill),
            }
        }
        if skills.is_empty() { Reach::Nothing } else { Reach::Skills(skills) }
    }
}

/// Set when a caller is identified, and shared by all its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerStanding {
    /// How the caller proved who it is.
    pub proof: IdentityProof,
    /// The agent this caller is, proven by its key.
    pub agent_id: Option<AgentId>,
    /// The agent of this node that this caller is, by configuration.
    pub agent: Option<AgentName>,
    /// The agents and skills that the caller may call.
    pub may_call: MayCall,
    /// No list has this caller: an issuer may make as many of its kind as it likes.
    pub unlisted: bool,
}

impl CallerStanding {
    /// Whether one client can be as many such callers as it likes.
    pub fn is_unlisted(&self) -> bool {
        self.unlisted || self.proof == IdentityProof::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_id_is_sixty_four_lower_case_hex_digits() {
        let id = AgentId::from_digest(&[0xab; 32]);
        assert_eq!(id.to_string(), "ab".repeat(32));
        assert_eq!("ab".repeat(32).parse(), Ok(id));
        for bad in ["", "ab", &"AB".repeat(32), &"g0".repeat(32), &"ab".repeat(33)] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_grant_covers_an_agent_or_one_skill_of_it() {
        let only = |grants: &[&str]| MayCall::Only(grants.iter().map(|grant| grant.parse().unwrap()).collect());
        assert_eq!(MayCall::Everything.reach("a"), Reach::Whole);
        assert_eq!(only(&[]).reach("a"), Reach::Nothing);
        assert_eq!(only(&["b"]).reach("a"), Reach::Nothing);
        assert_eq!(only(&["a/x", "a/y", "b"]).reach("a"), Reach::Skills(vec!["x", "y"]));
        assert_eq!(only(&["a/x", "a"]).reach("a"), Reach::Whole);
        for bad in ["", "/", "a/", "/x"] {
            assert!(bad.parse::<CallGrant>().is_err(), "{bad}");
        }
    }
}
