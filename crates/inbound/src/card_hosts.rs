//! Cards for the node's own hosts beside the public one: rendered and signed when asked for, and the latest of them cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chancery_identity::KeyRing;
use chancery_identity::cards::CardFault;
use chancery_protocol::{AgentName, Timestamp};
use http::HeaderValue;

use crate::card_shapes::{AgentCards, CARD_CACHING, CardShapes, NOT_CACHED};
use crate::own_hosts::CardBase;
use crate::signing::{Declared, Signer};

/// Cards of own hosts that are cached. More are rendered again on demand: a client can spell the loopback and
/// its port in many ways, and its spelling must not grow the node.
const CACHED_CARDS: usize = 64;

/// Cards below addresses of agents that are cached: one for each agent and each requested address.
const CACHED_ADDRESS_CARDS: usize = 1_000;

/// The bindings that an address can be put into: the others have no path.
const WITH_PATHS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];

/// What cards are rendered from, and the ones that were rendered for own hosts.
#[derive(Debug)]
pub(crate) struct CardRenderer {
    public: CardBase,
    agents: HashMap<AgentName, AgentCards>,
    keys: KeyRing,
    declared: Option<Declared>,
    now: Timestamp,
    made: HeaderValue,
    at_hosts: Mutex<CardCache>,
    at_addresses: Mutex<CardCache>,
}

#[derive(Debug)]
struct CardCache {
    most: usize,
    cards: HashMap<(AgentName, CardBase), CachedCard>,
    uses: u64,
}

#[derive(Debug)]
struct CachedCard {
    shapes: Arc<CardShapes>,
    last_used: u64,
}

impl CardRenderer {
    pub(crate) fn new(
        public: CardBase,
        agents: HashMap<AgentName, AgentCards>,
        keys: KeyRing,
        declared: Option<Declared>,
        now: Timestamp,
        made: HeaderValue,
    ) -> Self {
        let cache = |most| Mutex::new(CardCache { most, cards: HashMap::new(), uses: 0 });
        let (at_hosts, at_addresses) = (cache(CACHED_CARDS), cache(CACHED_ADDRESS_CARDS));
        Self { public, agents, keys, declared, now, made, at_hosts, at_addresses }
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = (&AgentName, &AgentCards)> {
        self.agents.iter()
    }

    pub(crate) fn cards_of(&self, name: &AgentName) -> Option<&AgentCards> {
        self.agents.get(name)
    }

    /// Renders and signs cards whose keys are found at that URL.
    pub(crate) fn render(&self, agent: &AgentCards, jwks_url: &str) -> Result<CardShapes, CardFault> {
        let signer = Signer::of(&self.keys, &agent.name, jwks_url, self.declared.as_ref(), self.now)?;
        CardShapes::of(agent, &signer, &self.made, &CARD_CACHING)
    }

    /// The same below the address of an agent, which only that agent may read.
    fn render_secret(&self, agent: &AgentCards, jwks_url: &str) -> Result<CardShapes, CardFault> {
        let agent =
            agent.changed(|card| card.supported_interfaces.retain(|one| WITH_PATHS.contains(&one.protocol_binding.as_str())));
        let signer = Signer::of(&self.keys, &agent.name, jwks_url, self.declared.as_ref(), self.now)?;
        CardShapes::of(&agent, &signer, &self.made, &NOT_CACHED)
    }

    /// The cards of an agent below another base than the public one.
    pub(crate) fn at(&self, name: &AgentName, base: &CardBase) -> Option<Arc<CardShapes>> {
        let key = (name.clone(), base.clone());
        if let Some(shapes) = self.cache(base, |cache| cache.get(&key)) {
            return Some(shapes);
        }
        let agent = self.agents.get(name)?.moved(&self.public, base);
        // Outside of the lock: others find their cached cards while this one is signed.
        let rendered = match base.is_secret() {
            true => self.render_secret(&agent, &base.jwks_url()),
            false => self.render(&agent, &base.jwks_url()),
        };
        let shapes = match rendered {
            Ok(shapes) => Arc::new(shapes),
            Err(error) => {
                tracing::error!(agent = %name, base = base.shown(), %error, "cannot sign a card for another host of the node");
                return None;
            }
        };
        self.cache(base, |cache| cache.put(key, Arc::clone(&shapes)));
        Some(shapes)
    }

    fn cache<T>(&self, base: &CardBase, with: impl FnOnce(&mut CardCache) -> T) -> T {
        let cache = if base.is_secret() { &self.at_addresses } else { &self.at_hosts };
        with(&mut cache.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CardCache {
    fn get(&mut self, key: &(AgentName, CardBase)) -> Option<Arc<CardShapes>> {
        self.uses += 1;
        let card = self.cards.get_mut(key)?;
        card.last_used = self.uses;
        Some(Arc::clone(&card.shapes))
    }

    fn put(&mut self, key: (AgentName, CardBase), shapes: Arc<CardShapes>) {
        if self.cards.len() >= self.most
            && let Some(oldest) = self.cards.iter().min_by_key(|(_, card)| card.last_used).map(|(key, _)| key.clone())
        {
            self.cards.remove(&oldest);
        }
        self.uses += 1;
        self.cards.insert(key, CachedCard { shapes, last_used: self.uses });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{AgentCard, AgentInterface};

    fn renderer() -> CardRenderer {
        let interface = AgentInterface {
            url: "http://127.0.0.1:7420/agents/a".to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            tenant: None,
            protocol_version: "1.0".to_owned(),
        };
        let card = AgentCard { supported_interfaces: vec![interface], ..AgentCard::default() };
        let agents = HashMap::from([("a".into(), AgentCards::alone("a", card))]);
        let (now, made) = (Timestamp::from_micros(1), HeaderValue::from_static(""));
        CardRenderer::new(CardBase::new("http://127.0.0.1:7420"), agents, KeyRing::default(), None, now, made)
    }

    #[test]
    fn a_card_is_cached_by_its_base_and_the_oldest_makes_room() {
        let renderer = renderer();
        let at = |port: usize| renderer.at(&"a".into(), &CardBase::new(&format!("http://localhost:{port}"))).unwrap();
        let first = at(0);
        assert!(String::from_utf8_lossy(&first.v1_0.tagged().0).contains("http://localhost:0/agents/a"));
        for port in 1..CACHED_CARDS {
            at(port);
        }
        assert!(Arc::ptr_eq(&first, &at(0)), "all of them fit");
        at(CACHED_CARDS);
        assert_eq!(renderer.cache(&CardBase::new("http://localhost"), |cache| cache.cards.len()), CACHED_CARDS);
        assert!(Arc::ptr_eq(&first, &at(0)), "it was used later than the one that went");
        assert!(renderer.at(&"nobody".into(), &CardBase::new("http://localhost:1")).is_none());
    }

    #[test]
    fn cards_below_an_address_carry_it_on_and_a_thousand_are_cached() {
        let renderer = renderer();
        let base = |number: usize| CardBase::new("http://127.0.0.1:7420").via(&format!("secret{number}"));
        let at = |number: usize| renderer.at(&"a".into(), &base(number)).unwrap();
        let first = at(0);
        let text = String::from_utf8_lossy(&first.v1_0.tagged().0).into_owned();
        assert!(text.contains("http://127.0.0.1:7420/via/secret0/agents/a"), "{text}");
        assert!(!format!("{:?}", base(0)).contains("secret"), "{:?}", base(0));
        for number in 1..=CACHED_ADDRESS_CARDS {
            at(number);
        }
        assert_eq!(renderer.cache(&base(0), |cache| cache.cards.len()), CACHED_ADDRESS_CARDS);
        assert!(!Arc::ptr_eq(&first, &at(0)), "the oldest made room");
    }
}
