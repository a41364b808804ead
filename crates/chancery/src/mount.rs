//! Puts agents at their addresses: cards get the interfaces of this node.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_core::{Agent, Agents, GOVERNANCE_EXTENSION, MEMORY_EXTENSION, REFERENCES_EXTENSION, TaskRunner};
use chancery_identity::credentials::Authenticator;
use chancery_inbound::Signposts;
use chancery_memory::MemoryConfig;
use chancery_protocol::{AgentCard, AgentExtension, Metadata};

use crate::agent_routes::AgentRoutes;
use crate::agents::interfaces;
use crate::build_error::BuildError;
use crate::config::{CardBinding, Config, PublicUrl, SwpUrl, is_agent_name};
use crate::gateway::ShownCards;
use crate::webhooks::PushPromise;

/// An agent as it was given to a node.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) card: AgentCard,
    pub(crate) extended: Option<AgentCard>,
    pub(crate) runner: Arc<dyn TaskRunner>,
    pub(crate) exposed: bool,
}

/// Where agents are mounted.
#[derive(Clone, Debug)]
pub(crate) struct MountedAgent {
    public_url: PublicUrl,
    swp_url: Option<SwpUrl>,
    /// Callers authenticate. Only then is an extended card shown.
    knows_callers: bool,
    agent_routes: Arc<AgentRoutes>,
    /// What every card says of the node's memory.
    memory: Option<AgentExtension>,
    /// What they say of large parts.
    references: Option<AgentExtension>,
    push: Option<PushPromise>,
    /// The bindings that cards list.
    bindings: Vec<CardBinding>,
    /// The remote agents whose input modes are enforced here.
    enforced: BTreeSet<String>,
}

impl MountedAgent {
    /// What cards say is all from the config, so that a start and a reload say the same.
    pub(crate) fn new(
        public_url: PublicUrl,
        authenticator: &Authenticator,
        agent_routes: Arc<AgentRoutes>,
        config: &Config,
    ) -> Self {
        let enforced = config.agents.iter().filter(|(_, agent)| agent.enforce_input_modes).map(|(name, _)| name.clone());
        Self {
            push: PushPromise::of(&config.push, &public_url),
            public_url,
            swp_url: None,
            knows_callers: !authenticator.is_open(),
            agent_routes,
            memory: memory_extension(&config.memory),
            references: references_extension(config.artifacts.offload),
            bindings: config.card.bindings.clone(),
            enforced: enforced.collect(),
        }
    }

    /// The same where agents also answer over SWP.
    pub(crate) fn also_at(self, swp_url: Option<SwpUrl>) -> Self {
        Self { swp_url, ..self }
    }

    pub(crate) fn all(&self, mut given: Vec<Given>) -> Result<Agents, BuildError> {
        // The root is for callers, so that its agent is the first one that they can see.
        given.sort_by_key(|agent| !agent.exposed);
        let mut mounted: Option<Agents> = None;
        for agent in given {
            if !is_agent_name(&agent.name) || mounted.as_ref().is_some_and(|agents| agents.get(&agent.name).is_some()) {
                return Err(BuildError::AgentName(agent.name));
            }
            if mounted.is_none() && !agent.exposed {
                return Err(BuildError::Hidden(agent.name));
            }
            self.check_capabilities(&agent)?;
            let agent = self.one(agent, mounted.is_none());
            mounted = Some(match mounted {
                None => Agents::new(agent),
                Some(agents) => agents.with(agent),
            });
        }
        let mounted = mounted.ok_or(BuildError::NoAgent)?;
        self.agent_routes.check(&mounted, &self.public_url)?;
        Ok(mounted)
    }

    /// Rejects promises of the cards that the node does not keep.
    fn check_capabilities(&self, agent: &Given) -> Result<(), BuildError> {
        let (name, capabilities) = (|| agent.name.clone(), &agent.card.capabilities);
        let extended = agent.extended.as_ref().map(|card| &card.capabilities);
        let mut cards = [Some(capabilities), extended].into_iter().flatten();
        if self.push.is_none() && cards.any(|capabilities| capabilities.push_notifications == Some(true)) {
            return Err(BuildError::NoPush(name()));
        }
        let Some(extended) = extended else {
            let promised = capabilities.extended_agent_card == Some(true);
            return if promised { Err(BuildError::NoExtendedCard(name())) } else { Ok(()) };
        };
        let has_push = |said: Option<bool>| said.unwrap_or(self.push.is_some());
        let differs = |capability| Err(BuildError::CardsDiffer { name: name(), capability });
        // A card that says nothing of a capability has what the node has; an extended card then has what the card has.
        if extended.streaming.is_some_and(|said| said != capabilities.streaming.unwrap_or(true)) {
            return differs("streaming");
        }
        if extended.push_notifications.is_some_and(|said| said != has_push(capabilities.push_notifications)) {
            return differs("pushNotifications");
        }
        Ok(())
    }

    /// An agent at the root or beside it.
    pub(crate) fn at(&self, given: Given, at_root: bool) -> Agent {
        self.one(given, at_root)
    }

    /// One more agent beside those that are mounted.
    pub(crate) fn beside(&self, given: Given) -> Agent {
        self.one(given, false)
    }

    /// An agent that is mounted already, with other cards.
    pub(crate) fn again(&self, agent: &Agent, ShownCards { card, extended }: ShownCards, at_root: bool) -> Agent {
        let (name, runner) = (agent.name.to_string(), Arc::clone(&agent.runner));
        self.one(Given { name, card, extended, runner, exposed: agent.exposed }, at_root)
    }

    /// Hosts and tenants that lead to agents, for the doors.
    pub(crate) fn signposts(&self) -> Result<Signposts, BuildError> {
        self.agent_routes.signposts(&self.public_url, &self.bindings)
    }

    /// Whether callers authenticate, so that extended cards can be shown.
    pub(crate) fn knows_callers(&self) -> bool {
        self.knows_callers
    }

    fn one(&self, Given { name, mut card, extended, runner, exposed }: Given, at_root: bool) -> Agent {
        // Every runner here can be streamed from, so a card that says nothing of it means yes.
        card.capabilities.streaming.get_or_insert(true);
        if card.supported_interfaces.is_empty() {
            card.supported_interfaces = if at_root {
                interfaces(&self.public_url.to_string(), true, &self.bindings)
            } else {
                interfaces(&self.public_url.join(&format!("/agents/{name}")), false, &self.bindings)
            };
            card.supported_interfaces.extend(self.agent_routes.by_tenant(&name, &self.public_url, &self.bindings));
            // Last, because it says the least: whoever can speak something else does.
            card.supported_interfaces.extend(self.swp_url.as_ref().map(|url| url.interface(&name)));
        }
        // A card that says no to webhooks keeps its word; one that says nothing has those of the node.
        let push = self.push.as_ref().filter(|_| card.capabilities.push_notifications != Some(false));
        let extended = extended.filter(|_| self.knows_callers).map(|mut extended| {
            if extended.supported_interfaces.is_empty() {
                extended.supported_interfaces.clone_from(&card.supported_interfaces);
            }
            extended.capabilities.streaming = card.capabilities.streaming;
            extended.capabilities.extended_agent_card = Some(true);
            declare_governance(&mut extended);
            PushPromise::declare(push, &mut extended);
            Arc::new(extended)
        });
        if extended.is_some() {
            card.capabilities.extended_agent_card = Some(true);
        }
        declare_governance(&mut card);
        card.capabilities.extensions.extend(self.memory.clone());
        card.capabilities.extensions.extend(self.references.clone());
        PushPromise::declare(push, &mut card);
        // Agents elsewhere are the ones with links.
        let enforces_input_modes = !runner.keeps_links() || self.enforced.contains(&name);
        Agent { name: name.into(), card: Arc::new(card), extended, runner, exposed, enforces_input_modes }
    }
}

/// What kind of memory this node has.
fn memory_extension(config: &MemoryConfig) -> Option<AgentExtension> {
    config.advertised().map(|facts| AgentExtension {
        uri: MEMORY_EXTENSION.to_owned(),
        description: "Takes memory by its ruLake witness, with a grant".to_owned(),
        required: false,
        params: Some(Metadata::from_object(facts)),
    })
}

/// That large parts can be had as links.
fn references_extension(offloads: bool) -> Option<AgentExtension> {
    offloads.then(|| AgentExtension {
        uri: REFERENCES_EXTENSION.to_owned(),
        description: "Returns large parts as links with digest and size, to clients that request this extension".to_owned(),
        required: false,
        params: None,
    })
}

/// Callers may ask for an account of what their tasks cost, whichever agent they call here.
fn declare_governance(card: &mut AgentCard) {
    let extensions = &mut card.capabilities.extensions;
    if extensions.iter().all(|extension| extension.uri != GOVERNANCE_EXTENSION) {
        extensions.push(AgentExtension {
            uri: GOVERNANCE_EXTENSION.to_owned(),
            description:
                "Reports the cost of a task and of the tasks below it, the rest of its budget, and its place in its tree"
                    .to_owned(),
            required: false,
            params: None,
        });
    }
}
