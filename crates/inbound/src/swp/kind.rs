//! Which agent and which of its skills the kind of a task names.

use std::sync::Arc;

use chancery_core::{Agent, Chancery};
use chancery_protocol::{AgentName, AgentSkill, CallContext, Error, ErrorKind, IdentityProof};
use chancery_wire::swp::Convention;

/// What a kind names.
#[derive(Debug)]
pub(super) struct Named {
    /// `None` for the root address, where the service routes by skill.
    pub(super) agent: Option<AgentName>,
    pub(super) skill: Option<String>,
    /// How the skill's input is read unless a task says otherwise: by the first media type that it, or its agent, takes.
    pub(super) declared: Convention,
}

/// `SKILL` of the first agent, `AGENT/SKILL`, `AGENT` for its own choice, or `SKILL` of any agent that a call
/// at the root address can be routed to. Only skills on a card count; skills of an extended card are for
/// authenticated callers.
pub(super) fn named(chancery: &Chancery, context: &CallContext, kind: &str) -> Result<Named, Error> {
    let agents = chancery.agents();
    let proven = context.standing.proof != IdentityProof::None;
    let at_root = |agent: &Agent, skill: &AgentSkill| {
        Ok(Named { declared: declared(agent, Some(skill)), skill: Some(kind.to_owned()), agent: None })
    };
    let first = agents.first();
    if let Some(skill) = skill_of(first, kind, proven) {
        return at_root(first, skill);
    }
    let unsupported = |what: &str| Error::new(ErrorKind::UnsupportedOperation, format!("{what} is served here by that name"));
    let (name, rest) = kind.split_once('/').map_or((kind, None), |(name, rest)| (name, Some(rest)));
    let agent = agents.get(name).filter(|agent| agent.exposed);
    match (agent, rest) {
        (Some(agent), None) => {
            return Ok(Named { declared: declared(agent, None), skill: None, agent: Some(agent.name.clone()) });
        }
        (Some(agent), Some(id)) => {
            if let Some(skill) = skill_of(agent, id, proven) {
                let declared = declared(agent, Some(skill));
                return Ok(Named { declared, skill: Some(skill.id.clone()), agent: Some(agent.name.clone()) });
            }
        }
        (None, _) => {}
    }
    // Where several agents list the skill, the first by name says how input is read that does not say it itself.
    let offering: Vec<Arc<Agent>> = chancery.agents_for_skill(context, kind);
    match offering.first().and_then(|agent| skill_of(agent, kind, proven).map(|skill| at_root(agent, skill))) {
        Some(named) => named,
        None if agent.is_some() => Err(unsupported("no such skill of that agent")),
        None => Err(unsupported("no skill or agent")),
    }
}

fn skill_of<'a>(agent: &'a Agent, id: &str, proven: bool) -> Option<&'a AgentSkill> {
    let extended = agent.extended.as_ref().filter(|_| proven);
    agent.card.skills.iter().chain(extended.into_iter().flat_map(|card| &card.skills)).find(|skill| skill.id == id)
}

fn declared(agent: &Agent, skill: Option<&AgentSkill>) -> Convention {
    let of_skill = skill.and_then(|skill| skill.input_modes.first());
    let mode = of_skill.or(agent.card.default_input_modes.first());
    mode.map_or(Convention::Text, |mode| Convention::of_media_type(mode))
}
