//! Refreshes the cards of many agents periodically. An agent that hangs does not delay the others.

use std::collections::BTreeMap;

use chancery_core::watched;
use chancery_protocol::AgentName;
use tokio::task::{AbortHandle, JoinSet};

/// How many agents are looked at at once.
const LOOKS_AT_ONCE: usize = 16;

/// What is under way ends with this.
#[derive(Debug, Default)]
pub(super) struct CardRefreshes {
    under_way: JoinSet<()>,
    begun: BTreeMap<AgentName, AbortHandle>,
}

impl CardRefreshes {
    /// Begins a look at an agent, unless the last one is still under way. Waits while there are as many as there may be.
    pub(super) async fn begin(&mut self, agent: &AgentName, look: impl Future<Output = ()> + Send + 'static) {
        while self.under_way.try_join_next().is_some() {}
        self.begun.retain(|_, look| !look.is_finished());
        if self.begun.contains_key(agent) {
            return;
        }
        if self.under_way.len() >= LOOKS_AT_ONCE {
            self.under_way.join_next().await;
        }
        self.begun.insert(agent.clone(), self.under_way.spawn(watched("look at an agent's card", look)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    /// Looks that are counted when they begin and end when they are let.
    #[derive(Clone, Default)]
    struct Counted(Arc<AtomicUsize>);

    impl Counted {
        fn look(&self, cue: &Arc<Semaphore>) -> impl Future<Output = ()> + Send + use<> {
            let (begun, cue) = (Arc::clone(&self.0), Arc::clone(cue));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                cue.acquire().await.unwrap().forget();
            }
        }

        async fn reach(&self, count: usize) {
            while self.0.load(Ordering::SeqCst) < count {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn an_agent_that_hangs_is_looked_at_once_and_the_others_again_and_again() {
        let (mut looks, hung, others) = (CardRefreshes::default(), Counted::default(), Counted::default());
        let (never, at_once) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(100)));
        for round in 1..=3 {
            looks.begin(&"hangs".into(), hung.look(&never)).await;
            looks.begin(&"other".into(), others.look(&at_once)).await;
            others.reach(round).await;
            tokio::task::yield_now().await;
        }
        hung.reach(1).await;
        assert_eq!(hung.0.load(Ordering::SeqCst), 1);
        never.add_permits(1);
        while looks.under_way.join_next().await.is_some() {}
        looks.begin(&"hangs".into(), hung.look(&never)).await;
        hung.reach(2).await;
    }

    #[tokio::test]
    async fn no_more_are_under_way_than_may_be() {
        let (mut looks, begun, cue) = (CardRefreshes::default(), Counted::default(), Arc::new(Semaphore::new(0)));
        let name = |at: usize| AgentName::from(format!("agent-{at}").as_str());
        for at in 0..LOOKS_AT_ONCE {
            looks.begin(&name(at), begun.look(&cue)).await;
        }
        begun.reach(LOOKS_AT_ONCE).await;
        let (one_more, again) = (name(LOOKS_AT_ONCE), begun.clone());
        let mut next = Box::pin(looks.begin(&one_more, again.look(&cue)));
        assert!(futures::poll!(&mut next).is_pending());
        cue.add_permits(1);
        next.await;
        begun.reach(LOOKS_AT_ONCE + 1).await;
    }
}
