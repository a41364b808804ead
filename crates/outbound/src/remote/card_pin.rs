//! Decides which card of a replica is in use, and which one waits for approval.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::Timestamp;

use crate::discovery::{Discovered, DiscoveryError, Fit, PeerLocation, Pin, PinKeeper};

/// What is known of a replica's card.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The card that is shown and called by.
    pub counts: Option<Arc<Discovered>>,
    /// The card that the replica shows now and that promises something else.
    pub pending: Option<Arc<Discovered>>,
    /// The card that was fetched last since the node was started, whether it counts, waits or was refused.
    pub shown: Option<Arc<Discovered>>,
    /// Why the last look found no card that can be used.
    pub fault: Option<DiscoveryError>,
    /// Whether cards are held to the one that was approved.
    pub pinned: bool,
    pub approved_at: Option<Timestamp>,
}

impl Seen {
    /// Why its card is not believed, if that is what keeps it from being called.
    pub fn refusal(&self) -> Option<&DiscoveryError> {
        self.fault.as_ref().filter(|fault| matches!(fault, DiscoveryError::CardSignatureInvalid { .. }))
    }
}

#[derive(Debug, Default)]
pub(super) struct CardPin {
    keeper: Option<Arc<dyn PinKeeper>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: Option<Arc<Discovered>>,
    pending: Option<Arc<Discovered>>,
    shown: Option<Arc<Discovered>>,
    fault: Option<DiscoveryError>,
    /// The card that was warned of last, so that each is warned of once.
    warned: Option<String>,
}

impl CardPin {
    pub(super) fn pinned(keeper: Arc<dyn PinKeeper>) -> Self {
        Self { keeper: Some(keeper), state: Mutex::default() }
    }

    /// Judges what a look brought, and answers the card that counts.
    pub(super) fn look(
        &self,
        peer: &PeerLocation,
        found: Result<Arc<Discovered>, DiscoveryError>,
        now: Timestamp,
    ) -> Result<Arc<Discovered>, DiscoveryError> {
        let mut state = self.lock();
        if let Ok(found) = &found {
            state.shown = Some(Arc::clone(found));
        }
        if let (Ok(found), Some(counts)) = (&found, &state.counts)
            && state.pending.is_none()
            && Arc::ptr_eq(found, counts)
        {
            return Ok(Arc::clone(found));
        }
        let judged = found.and_then(|found| match &self.keeper {
            None => Ok(found),
            Some(keeper) => hold(keeper.as_ref(), peer, found, &mut state, now),
        });
        match &judged {
            Ok(counts) => {
                state.counts = Some(Arc::clone(counts));
                state.fault = None;
            }
            Err(error) => state.fault = Some(error.clone()),
        }
        judged
    }

    pub(super) fn seen(&self, replica: &str) -> Seen {
        let state = self.lock();
        let pin = self.keeper.as_ref().and_then(|keeper| keeper.pin(replica));
        Seen {
            counts: state.counts.clone().or_else(|| pin.as_ref().and_then(|pin| pin.recall())),
            pending: state.pending.clone(),
            shown: state.shown.clone(),
            fault: state.fault.clone(),
            pinned: self.keeper.is_some(),
            approved_at: pin.map(|pin| pin.approved_at),
        }
    }

    /// Approves the card that waits, if it is still the reviewed one.
    pub(super) fn approve(
        &self,
        peer: &PeerLocation,
        structure: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<Discovered>>, String> {
        let mut state = self.lock();
        let pending = state.pending.clone().filter(|pending| pending.structure == structure);
        let (Some(keeper), Some(pending)) = (&self.keeper, pending) else { return Ok(None) };
        keeper.keep(&peer.name, Pin::of(&pending, now))?;
        state.counts = Some(Arc::clone(&pending));
        state.pending = None;
        Ok(Some(pending))
    }

    pub(super) fn unpin(&self, peer: &PeerLocation) -> Result<(), String> {
        let mut state = self.lock();
        if let Some(keeper) = &self.keeper {
            keeper.forget(&peer.name)?;
        }
        *state = State::default();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first card seen is approved by being the first; every later one has to promise the same.
fn hold(
    keeper: &dyn PinKeeper,
    peer: &PeerLocation,
    found: Arc<Discovered>,
    state: &mut State,
    now: Timestamp,
) -> Result<Arc<Discovered>, DiscoveryError> {
    let Some(pin) = keeper.pin(&peer.name) else {
        if let Err(error) = keeper.keep(&peer.name, Pin::of(&found, now)) {
            tracing::error!(peer = %peer.name, url = found.url, error, "cannot store the pin of a card; the node pins the card again at the next start");
        }
        return Ok(found);
    };
    let is_news = state.warned.as_deref() != Some(&found.digest);
    match pin.fit(&found) {
        Fit::Same => {
            state.pending = None;
            Ok(found)
        }
        Fit::OtherSigner(reason) => {
            state.pending = None;
            if is_news {
                state.warned = Some(found.digest.clone());
                tracing::warn!(peer = %peer.name, url = found.url, reason, "rejected the card of an agent; the node does not call the agent");
            }
            Err(DiscoveryError::refused(peer, reason))
        }
        Fit::Changed => {
            let told = state.pending.as_ref().is_some_and(|pending| pending.structure == found.structure);
            if !told {
                tracing::warn!(
                    peer = %peer.name, url = found.url, approved = pin.structure, structure = found.structure,
                    "a card promises something else than the approved one, which stays in use; see `chancery agents ls` and approve it there"
                );
            }
            state.pending = Some(found);
            let approved = state.counts.clone().filter(|counts| counts.structure == pin.structure).or_else(|| pin.recall());
            approved.ok_or_else(|| DiscoveryError::refused(peer, "the approved card can no longer be read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::{CardSettings, CardVerification, Verification, structure};
    use chancery_protocol::AgentId;
    use std::collections::BTreeMap;

    const NOW: Timestamp = Timestamp::from_micros(1);

    #[derive(Debug, Default)]
    struct InMemory(Mutex<BTreeMap<String, Arc<Pin>>>);

    impl PinKeeper for InMemory {
        fn pin(&self, replica: &str) -> Option<Arc<Pin>> {
            self.0.lock().unwrap().get(replica).cloned()
        }

        fn keep(&self, replica: &str, pin: Pin) -> Result<(), String> {
            self.0.lock().unwrap().insert(replica.to_owned(), Arc::new(pin));
            Ok(())
        }

        fn forget(&self, replica: &str) -> Result<(), String> {
            self.0.lock().unwrap().remove(replica);
            Ok(())
        }
    }

    fn peer() -> PeerLocation {
        let (name, url) = ("a#1".into(), "https://a".to_owned());
        PeerLocation { name, url, verify: CardVerification::Off, agent_id: None, keys: Vec::new(), card: CardSettings::default() }
    }

    /// A card with an address and some words, signed by an agent or unsigned.
    fn card(path: &str, words: &str, signer: Option<u8>) -> Arc<Discovered> {
        let text = format!(
            r#"{{"name":"A","description":"{words}","version":"1","capabilities":{{}},"defaultInputModes":[],"defaultOutputModes":[],
            "skills":[],"supportedInterfaces":[{{"url":"https://a/{path}","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
        );
        let verification = signer.map_or(Verification::Unsigned, |byte| Verification::Verified {
            agent_ids: vec![AgentId::from_digest(&[byte; 32])],
            kids: vec!["k".to_owned()],
        });
        let pin = Pin { url: "https://a/card".into(), text, structure: String::new(), verification, approved_at: NOW };
        let mut found = Discovered::clone(&pin.recall().expect("a card"));
        found.structure = structure(&found.card);
        Arc::new(found)
    }

    fn address(found: &Discovered) -> &str {
        &found.card.supported_interfaces[0].url
    }

    #[test]
    fn a_card_that_promises_something_else_waits_while_the_approved_one_is_used_also_after_a_restart() {
        let keeper = Arc::new(InMemory::default());
        let card_pin = CardPin::pinned(keeper.clone());
        let look = |card_pin: &CardPin, found| card_pin.look(&peer(), Ok(found), NOW).map(|counts| address(&counts).to_owned());
        assert_eq!(look(&card_pin, card("old", "x", None)).unwrap(), "https://a/old", "the first one counts");
        assert_eq!(look(&card_pin, card("old", "other words", None)).unwrap(), "https://a/old");
        assert_eq!(card_pin.seen("a#1").counts.unwrap().card.description, "other words");
        assert_eq!(look(&card_pin, card("new", "x", None)).unwrap(), "https://a/old");
        let again = CardPin::pinned(keeper);
        assert_eq!(look(&again, card("new", "x", None)).unwrap(), "https://a/old");
        assert_eq!(address(&again.seen("a#1").pending.unwrap()), "https://a/new");
        let waits = again.seen("a#1").pending.unwrap().structure.clone();
        assert!(again.approve(&peer(), "another", NOW).unwrap().is_none(), "only what was looked at");
        assert_eq!(address(&again.approve(&peer(), &waits, NOW).unwrap().unwrap()), "https://a/new");
        assert_eq!(look(&again, card("new", "x", None)).unwrap(), "https://a/new");
        assert!(again.seen("a#1").pending.is_none());
        assert!(again.approve(&peer(), &waits, NOW).unwrap().is_none(), "nothing waits any more");
    }

    #[test]
    fn a_card_of_another_signer_is_refused_whatever_it_promises() {
        let card_pin = CardPin::pinned(Arc::new(InMemory::default()));
        assert!(card_pin.look(&peer(), Ok(card("old", "x", Some(1))), NOW).is_ok());
        for (path, signer) in [("old", Some(2)), ("new", Some(2)), ("old", None)] {
            let refused = card_pin.look(&peer(), Ok(card(path, "x", signer)), NOW).unwrap_err();
            assert!(matches!(refused, DiscoveryError::CardSignatureInvalid { .. }), "{refused}");
            assert!(card_pin.seen("a#1").pending.is_none(), "there is nothing to approve");
        }
        assert!(card_pin.look(&peer(), Ok(card("old", "x", Some(1))), NOW).is_ok());
        card_pin.unpin(&peer()).unwrap();
        assert!(card_pin.look(&peer(), Ok(card("old", "x", Some(2))), NOW).is_ok(), "the next one seen is approved");
    }

    #[test]
    fn only_a_card_that_was_fetched_was_shown_whatever_was_judged_of_it() {
        let keeper = Arc::new(InMemory::default());
        let card_pin = CardPin::pinned(keeper.clone());
        let away = || {
            Err(DiscoveryError::Transport {
                peer: "a#1".to_owned(),
                reason: "nobody answers",
                cause: "nobody answers".to_owned(),
            })
        };
        let shown = |card_pin: &CardPin| card_pin.seen("a#1").shown.map(|shown| address(&shown).to_owned());
        assert!(card_pin.look(&peer(), Ok(card("old", "x", Some(1))), NOW).is_ok());
        assert_eq!(shown(&card_pin).unwrap(), "https://a/old");
        // After a restart the approved card counts before anybody has asked for one, and also if nobody answers.
        let again = CardPin::pinned(keeper);
        assert!(again.seen("a#1").counts.is_some() && shown(&again).is_none());
        assert!(again.look(&peer(), away(), NOW).is_err());
        assert!(again.seen("a#1").counts.is_some() && shown(&again).is_none());
        // One that is refused was shown, and so was one that waits.
        assert!(again.look(&peer(), Ok(card("other", "x", Some(2))), NOW).is_err());
        assert_eq!(shown(&again).unwrap(), "https://a/other");
        assert_eq!(address(&again.look(&peer(), Ok(card("new", "x", Some(1))), NOW).unwrap()), "https://a/old");
        assert_eq!(shown(&again).unwrap(), "https://a/new");
        assert!(again.look(&peer(), away(), NOW).is_err());
        assert_eq!(shown(&again).unwrap(), "https://a/new", "what was seen stays seen");
    }
}
