//! Puts agents at their addresses: cards get the interfaces of this node and say how callers prove themselves here.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_core::{Agent, Agents, TaskRunner};
use chancery_identity::credentials::Authenticator;
use chancery_protocol::{AgentCard, SecurityRequirement, SecurityScheme};

use crate::agents::{authority, interfaces};
use crate::config::{PublicUrl, is_agent_name};
use crate::node::BuildError;

/// An agent as it was given to a node.
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) card: AgentCard,
    pub(crate) extended: Option<AgentCard>,
    pub(crate) runner: Arc<dyn TaskRunner>,
}

/// Where agents are mounted, and what is asked of their callers.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    public_url: PublicUrl,
    /// Nothing where everybody may call.
    declared: Option<(BTreeMap<String, SecurityScheme>, Vec<SecurityRequirement>)>,
}

impl Mount {
    pub(crate) fn new(public_url: PublicUrl, authenticator: &Authenticator) -> Self {
        let declared = (!authenticator.is_open()).then(|| authenticator.schemes());
        Self { public_url, declared }
    }

    pub(crate) fn all(&self, given: Vec<Given>) -> Result<Agents, BuildError> {
        let mut mounted: Option<Agents> = None;
        for agent in given {
            if !is_agent_name(&agent.name) || mounted.as_ref().is_some_and(|agents| agents.get(&agent.name).is_some()) {
                return Err(BuildError::AgentName(agent.name));
            }
            let agent = self.one(agent, mounted.is_none());
            mounted = Some(match mounted {
                None => Agents::new(agent),
                Some(agents) => agents.with(agent),
            });
        }
        mounted.ok_or(BuildError::NoAgent)
    }

    /// An agent that is mounted already, with another card.
    pub(crate) fn again(&self, agent: &Agent, card: AgentCard, at_root: bool) -> Agent {
        let (name, runner) = (agent.name.to_string(), Arc::clone(&agent.runner));
        let again = self.one(Given { name, card, extended: None, runner }, at_root);
        Agent { extended: agent.extended.clone(), ..again }
    }

    fn one(&self, Given { name, mut card, extended, runner }: Given, at_root: bool) -> Agent {
        if card.supported_interfaces.is_empty() {
            card.supported_interfaces = if at_root {
                interfaces(&self.public_url.to_string(), authority(self.public_url.url()).as_deref())
            } else {
                interfaces(&self.public_url.join(&format!("/agents/{name}")), None)
            };
        }
        self.declare(&mut card);
        let extended = extended.filter(|_| self.declared.is_some()).map(|mut extended| {
            if extended.supported_interfaces.is_empty() {
                extended.supported_interfaces.clone_from(&card.supported_interfaces);
            }
            self.declare(&mut extended);
            extended.capabilities.extended_agent_card = Some(true);
            Arc::new(extended)
        });
        if extended.is_some() {
            card.capabilities.extended_agent_card = Some(true);
        }
        Agent { name: name.into(), card: Arc::new(card), extended, runner }
    }

    /// Says on a card how callers prove themselves here. What its author declared is left where nobody has to.
    fn declare(&self, card: &mut AgentCard) {
        if let Some((schemes, requirements)) = &self.declared {
            card.security_schemes.clone_from(schemes);
            card.security_requirements.clone_from(requirements);
        }
    }
}
