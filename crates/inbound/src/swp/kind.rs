//! Which agent and which of its skills the kind of a task names.

use std::sync::Arc;

use chancery_core::{Agent, Agents};
use chancery_protocol::{AgentSkill, Error, ErrorKind};
use chancery_wire::swp::Convention;

/// What a kind names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) agent: Arc<Agent>,
    pub(super) skill: Option<String>,
    /// How the skill's input is read unless a task says otherwise: by the first media type that it, or its agent, takes.
    pub(super) declared: Convention,
}

/// `SKILL` of the first agent, `AGENT/SKILL`, or `AGENT` for whatever it makes of it. Only what a card lists is there; skills of an
/// extended card are for those who proved who they are.
pub(super) fn named(agents: &Agents, kind: &str, proven: bool) -> Result<Named, Error> {
    let first = agents.first();
    if let Some(skill) = skill_of(first, kind, proven) {
        return Ok(Named { declared: declared(first, Some(skill)), skill: Some(kind.to_owned()), agent: Arc::clone(first) });
    }
    let unsupported = |what: &str| Error::new(ErrorKind::UnsupportedOperation, format!("{what} is served here by that name"));
    let (name, rest) = kind.split_once('/').map_or((kind, None), |(name, rest)| (name, Some(rest)));
    let agent = agents.get(name).filter(|agent| agent.exposed).ok_or_else(|| unsupported("no skill or agent"))?;
    let skill = match rest {
        None => None,
        Some(id) => Some(skill_of(agent, id, proven).ok_or_else(|| unsupported("no such skill of that agent"))?),
    };
    Ok(Named { declared: declared(agent, skill), skill: skill.map(|skill| skill.id.clone()), agent: Arc::clone(agent) })
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
