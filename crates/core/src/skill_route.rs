//! Routes a call at the root address: to the agent of the task it names, or by the skill it names.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{CallContext, ContextId, Error, Reach, Request, SendMessage, TaskId};
use chancery_rules::routing::{PeerSelector, PeerSnapshot, RoutingConfig, RoutingPlan, TaskSpec};

use crate::agents::{Agent, Agents};
use crate::check;
use crate::find::{internal, names};
use crate::govern::freezes::Belongs;
use crate::govern::terms::CallTerms;
use crate::local_turns::MeasuredTurn;
use crate::route::missing_extension;
use crate::runner::SelectorQuery;
use crate::service::{Chancery, ChanceryInner};
use crate::{Fact, ListFilter, Names, Rule, TaskRecord, Verdict};

/// How many tasks of a conversation are read to find the agent it went on with last.
const CONVERSATION_TASKS: usize = 16;

/// The fact by which a task that was routed by skill is known.
const ROUTED_BY: &str = "routed_by";

/// Whether and how calls at the root address are routed by skill.
#[derive(Clone)]
pub struct SkillRouting {
    enabled: bool,
    selector: Arc<dyn PeerSelector>,
    forget_after: Duration,
}

impl SkillRouting {
    /// `own_seed` is for a config that names no seed.
    pub fn new(config: &RoutingConfig, own_seed: u64) -> Self {
        let RoutingPlan { selector, forget_after, .. } = config.plan(own_seed);
        Self { enabled: config.by_skill, selector: Arc::new(selector), forget_after }
    }

    /// The same with another selector.
    #[must_use]
    pub fn choosing_by(self, selector: Arc<dyn PeerSelector>) -> Self {
        Self { selector, ..self }
    }
}

impl Default for SkillRouting {
    fn default() -> Self {
        Self::new(&RoutingConfig::default(), 0)
    }
}

impl fmt::Debug for SkillRouting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillRouting").field("enabled", &self.enabled).field("selector", &self.selector.name()).finish()
    }
}

impl Chancery {
    /// Calls from now on are routed by this.
    pub fn set_skill_routing(&self, routing: SkillRouting) {
        self.0.skill_routing.store(Arc::new(routing));
    }

    /// The agents that a call of this caller at the root address can be routed to for a skill: the root's own agent alone if it
    /// is one of them, else all in the order of their names.
    pub fn agents_for_skill(&self, context: &CallContext, skill: &str) -> Vec<Arc<Agent>> {
        self.0.agents_for_skill(&self.0.agents.load(), context, skill)
    }
}

impl ChanceryInner {
    /// Whether a call may be for another agent than the root's own, though it came to the root address.
    pub(crate) fn is_routed(&self, context: &CallContext, agents: &Agents) -> bool {
        context.agent.is_none() && agents.several() && self.skill_routing.load().enabled
    }

    /// The agent of a call at the root address. What names neither a task nor a skill that is offered is for the root's own.
    pub(crate) async fn route_at_root(
        &self,
        context: &CallContext,
        agents: &Agents,
        request: &Request,
    ) -> Result<Arc<Agent>, Error> {
        let first = agents.first();
        if let Some(task) = named_task(request) {
            return Ok(self.agent_of_task(context, agents, task).await?.unwrap_or_else(|| Arc::clone(first)));
        }
        let (Request::SendMessage(send) | Request::StreamMessage(send)) = request else { return Ok(Arc::clone(first)) };
        if let Some(agent) = self.agent_of_repeated(context, agents, send).await? {
            return Ok(agent);
        }
        // What makes no sense is refused where every call is checked.
        let Some(skill) = CallTerms::of(send).ok().and_then(|terms| terms.skill) else { return Ok(Arc::clone(first)) };
        let mut offering = self.agents_for_skill(agents, context, &skill);
        let agent = match offering.len() {
            0 => return Ok(Arc::clone(first)),
            1 => offering.remove(0),
            _ => match self.agent_of_conversation(context, &offering, send.message.context_id.as_ref()).await? {
                Some(agent) => agent,
                None => self.select_agent(context, request, send, &skill, offering),
            },
        };
        tracing::debug!(skill, agent = &*agent.name, "routed a call at the root address by its skill");
        Ok(agent)
    }

    pub(crate) fn agents_for_skill(&self, agents: &Agents, context: &CallContext, skill: &str) -> Vec<Arc<Agent>> {
        let offers = |agent: &Arc<Agent>| agent.shows(skill, context.standing.proof) && may_ask(context, agent, skill);
        let first = agents.first();
        if offers(first) || !self.is_routed(context, agents) {
            return vec![Arc::clone(first)].into_iter().filter(offers).collect();
        }
        agents.iter().filter(|agent| agent.exposed && offers(agent)).cloned().collect()
    }

    /// Who works on the caller's task, if it was made at the root address and the caller may call its agent.
    async fn agent_of_task(&self, context: &CallContext, agents: &Agents, id: &TaskId) -> Result<Option<Arc<Agent>>, Error> {
        if check::id_text("id", id.as_str(), &self.limits.load()).is_err() {
            return Ok(None);
        }
        let open = self.open.get(id).filter(|live| live.record.owner == context.caller).map(|live| Arc::clone(&live.record));
        let record = match open {
            Some(record) => Some(record),
            None => self.record_of(context, id, names(context)).await?,
        };
        let Some(record) = record.filter(|record| record.agent != agents.first().name) else { return Ok(None) };
        // Tasks that were made at the address of another agent are not found here.
        let governed = self.store.governed(&record.id).await.map_err(internal)?;
        let is_routed = governed.is_some_and(|governed| governed.verdicts.iter().any(is_route));
        Ok(agents.get(&record.agent).filter(|agent| is_routed && reaches(context, agent)).cloned())
    }

    async fn record_of(&self, context: &CallContext, id: &TaskId, names: Names) -> Result<Option<Arc<TaskRecord>>, Error> {
        let stored = self.store.find(&context.caller, id.as_str(), names).await.map_err(internal)?;
        Ok(stored.map(|stored| stored.task))
    }

    /// What the decision on a call says if its skill led it away from the root's own agent.
    pub(crate) fn route_fact(&self, context: &CallContext, agent: &Agent) -> Option<(Cow<'static, str>, Fact)> {
        let is_elsewhere = context.agent.is_none() && self.agents.load().first().name != agent.name;
        is_elsewhere.then(|| (ROUTED_BY.into(), Fact::text("skill")))
    }

    /// Who works on the task that the same call made before, or that the client gave a name to: no second agent gets the work.
    async fn agent_of_repeated(
        &self,
        context: &CallContext,
        agents: &Agents,
        send: &SendMessage,
    ) -> Result<Option<Arc<Agent>>, Error> {
        if let Some(key) = self.idempotency_key(context, &agents.first().name, send)
            && let Some(known) = self.store.keyed(&context.caller, &key, self.clock.now()).await.map_err(internal)?
        {
            let record = self.record_of(context, &known.task, Names::Server).await?;
            return Ok(record.and_then(|record| agents.get(&record.agent)).filter(|agent| reaches(context, agent)).cloned());
        }
        match &send.client_task_id {
            Some(name) => self.agent_of_task(context, agents, &TaskId::new(Arc::clone(name))).await,
            None => Ok(None),
        }
    }

    /// The one of several agents that the caller's conversation went on with last.
    async fn agent_of_conversation(
        &self,
        context: &CallContext,
        offering: &[Arc<Agent>],
        conversation: Option<&ContextId>,
    ) -> Result<Option<Arc<Agent>>, Error> {
        let Some(conversation) = conversation else { return Ok(None) };
        let filter = ListFilter {
            owner: Some(context.caller.clone()),
            agents: Some(offering.iter().map(|agent| agent.name.clone()).collect()),
            context_id: Some(conversation.clone()),
            ..ListFilter::default()
        };
        let listed = self.store.list_page(&filter, None, CONVERSATION_TASKS).await.map_err(internal)?;
        let latest = listed.iter().max_by_key(|stored| stored.task.created_at);
        Ok(latest.and_then(|latest| offering.iter().find(|agent| agent.name == latest.task.agent)).cloned())
    }

    /// Lets the node's selectors choose among all replicas of several agents. Which replica gets the task is for its agent to say.
    fn select_agent(
        &self,
        context: &CallContext,
        request: &Request,
        send: &SendMessage,
        skill: &str,
        mut offering: Vec<Arc<Agent>>,
    ) -> Arc<Agent> {
        let modes: Vec<&str> = send.message.parts.iter().filter_map(|part| part.media_type.as_deref()).collect();
        let spec = TaskSpec { skill_id: skill, input_modes: &modes, ..TaskSpec::default() };
        // An agent that would refuse the call gets it only where all would: then its refusal says why.
        let unfrozen = self.govern.freezes.look();
        prefer(&mut offering, |agent| {
            unfrozen.against(Belongs { caller: &context.caller, agent: &agent.name, roots: &[] }).is_none()
        });
        drop(unfrozen);
        prefer(&mut offering, |agent| missing_extension(agent, context).is_none());
        prefer(&mut offering, |agent| !request.operation().streams() || agent.card.capabilities.streaming != Some(false));
        prefer(&mut offering, |agent| spec.is_offered_by(&agent.card));
        let asked = SelectorQuery { message: &send.message, skill: Some(skill), estimated_tokens: None };
        let (rules, routing) = (self.govern.rules.load(), self.skill_routing.load());
        let mut peers = Vec::new();
        let mut owners = Vec::new();
        for agent in &offering {
            let found = agent.runner.peers(&asked).unwrap_or_else(|| vec![self.local_turns.snapshot(agent, self.clock.now())]);
            let prices = rules.prices_of(agent);
            let price = prices.config.usd.or(prices.card.usd);
            owners.extend(found.iter().map(|_| agent));
            peers.extend(found.into_iter().map(|peer| PeerSnapshot { ewma_cost: peer.ewma_cost.or(price), ..peer }));
        }
        let selected = routing.selector.select(&spec, &peers);
        let place = selected.and_then(|id| peers.iter().position(|peer| peer.id == id));
        // Where nobody can be called just now, the first one says so.
        Arc::clone(place.and_then(|place| owners.get(place).copied()).unwrap_or(&offering[0]))
    }

    /// Measures a turn of an agent that a selector could choose. The client of a remote agent measures it.
    pub(crate) fn measured(&self, agent: &Agent) -> Option<MeasuredTurn> {
        let routing = self.skill_routing.load();
        let is_compared = routing.enabled && !agent.runner.keeps_links() && self.agents.load().several();
        is_compared.then(|| self.local_turns.begin(agent, &self.clock, routing.forget_after))
    }
}

/// Whether a verdict says that a skill led the call away from the root's own agent.
fn is_route(verdict: &Verdict) -> bool {
    verdict.rule == Rule::Selector && verdict.facts.iter().any(|(name, _)| name == ROUTED_BY)
}

/// Keeps those that `suits`, unless none does.
fn prefer(agents: &mut Vec<Arc<Agent>>, suits: impl Fn(&Agent) -> bool) {
    if agents.iter().any(|agent| suits(agent)) {
        agents.retain(|agent| suits(agent));
    }
}

/// The task a request is about.
fn named_task(request: &Request) -> Option<&TaskId> {
    match request {
        Request::SendMessage(send) | Request::StreamMessage(send) => send.message.task_id.as_ref(),
        Request::GetTask(get) => Some(&get.id),
        Request::CancelTask(cancel) => Some(&cancel.id),
        Request::SubscribeToTask(subscribe) => Some(&subscribe.id),
        Request::CreatePushConfig(config) => config.task_id.as_ref(),
        Request::GetPushConfig(which) | Request::DeletePushConfig(which) => Some(&which.task_id),
        Request::ListPushConfigs(list) => Some(&list.task_id),
        Request::ListTasks(_) | Request::GetExtendedCard(_) => None,
    }
}

/// Whether the caller may ask an agent for a skill.
fn may_ask(context: &CallContext, agent: &Agent, skill: &str) -> bool {
    match context.standing.may_call.reach(&agent.name) {
        Reach::Whole => true,
        Reach::Skills(skills) => skills.contains(&skill),
        Reach::Nothing => false,
    }
}

/// Whether the caller may call an agent for anything.
fn reaches(context: &CallContext, agent: &Agent) -> bool {
    agent.exposed && !matches!(context.standing.may_call.reach(&agent.name), Reach::Nothing)
}
