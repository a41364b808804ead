//! After a restart: the ledger goes on counting where it stopped, and every open task is back in its place in its tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chancery_protocol::{Error, TaskId, Timestamp};
use chancery_rules::budget::{Accounts, Amount, Estimate, Estimated, Settled};

use crate::find::internal;
use crate::govern::Rulebook;
use crate::govern::allot::Allotment;
use crate::govern::report::Report;
use crate::govern::trees::Node;
use crate::service::Inner;
use crate::{LedgerRow, PastSpend, TaskRecord};

impl Inner {
    /// Answers what the turns had been given that were running when the last run ended.
    pub(crate) async fn restore(self: &Arc<Self>) -> Result<HashMap<TaskId, Box<Allotment>>, Error> {
        let now = self.clock.now();
        let frozen = self.store.freezes().await.map_err(internal)?;
        self.govern.freezes.change().await.extend(frozen.into_iter().map(|freeze| (freeze.scope.clone(), freeze)));
        let since = now.micros().saturating_sub(i64::try_from(self.govern.longest_window().as_micros()).unwrap_or(i64::MAX));
        let ledger = self.store.ledger(Timestamp::from_micros(since)).await.map_err(internal)?;
        let rules = self.govern.rules.load_full();
        for past in &ledger.past {
            self.restore_past(&rules, past, now);
        }
        let open: HashSet<&TaskId> =
            ledger.tasks.iter().filter(|row| !row.state.is_terminal()).map(|row| &row.governed.kinship.root).collect();
        let mut nodes: HashMap<TaskId, Arc<Node>> = HashMap::new();
        let mut allotments = HashMap::new();
        for row in &ledger.tasks {
            let node = open.contains(&row.governed.kinship.root).then(|| self.restore_node(&rules, row, &mut nodes));
            if let Some(allotment) = self.restore_spend(&rules, row, node.as_ref(), now) {
                allotments.insert(row.task.clone(), Box::new(allotment));
            }
        }
        // A turn that had ended, of which only the bill was missing.
        for row in ledger.tasks.iter().filter(|row| row.state.is_interrupted() || row.state.is_terminal()) {
            if let Some(allotment) = allotments.remove(&row.task) {
                let closed = allotment.close(&Report::default(), now);
                self.store.settle(&row.task, closed.spend).await.map_err(internal)?;
            }
        }
        Ok(allotments)
    }

    fn restore_past(&self, rules: &Rulebook, past: &PastSpend, now: Timestamp) {
        let accounts: Accounts = self.govern.accounts(rules, &past.owner, &past.agent, past.skill.as_ref()).into_iter().collect();
        let was = Settled { settled: past.settled, overrun: past.overrun };
        self.govern.ledger.restore_settled(&accounts, was, past.at, now);
    }

    fn restore_node(&self, rules: &Rulebook, row: &LedgerRow, nodes: &mut HashMap<TaskId, Arc<Node>>) -> Arc<Node> {
        let kinship = &row.governed.kinship;
        let parent = kinship.parent.as_ref().and_then(|parent| nodes.get(parent)).cloned();
        let allowance = kinship.allowance.unwrap_or_default();
        let own = match &parent {
            None => self.govern.open_tree(rules, &kinship.root, allowance),
            Some(_) => kinship.allowance.map(|allowance| self.govern.open_branch(&row.task, allowance)),
        };
        let above = parent.iter().flat_map(|parent| parent.accounts.iter().cloned());
        let chain: Accounts = above.chain(own.iter().map(|own| own.account.clone())).collect();
        let record = Arc::new(TaskRecord {
            id: row.task.clone(),
            context_id: row.context_id.clone(),
            agent: row.agent.clone(),
            owner: row.owner.clone(),
            dialect: row.dialect,
            client_task_id: None,
            created_at: row.created_at,
        });
        let node = Node::new(&self.govern.trees, record, Arc::clone(kinship), parent, chain, own);
        node.add_cost(row.governed.spend.settled.saturating_add(row.governed.spend.overrun));
        match row.state.is_terminal() {
            true => node.end(),
            false => self.govern.trees.add(&node),
        }
        if let Some(link) = &row.link {
            node.set_link(link);
        }
        nodes.insert(row.task.clone(), Arc::clone(&node));
        node
    }

    /// What a task has cost is counted again, and what was held for it is held again.
    fn restore_spend(&self, rules: &Rulebook, row: &LedgerRow, node: Option<&Arc<Node>>, now: Timestamp) -> Option<Allotment> {
        let spend = row.governed.spend;
        let skill = row.governed.kinship.skill.as_ref();
        let own = self.govern.accounts(rules, &row.owner, &row.agent, skill);
        let chain = node.iter().flat_map(|node| node.accounts.iter().cloned());
        let accounts: Accounts = own.into_iter().chain(chain).collect();
        if let Some(at) = spend.settled_at {
            let was = Settled { settled: spend.settled, overrun: spend.overrun };
            self.govern.ledger.restore_settled(&accounts, was, at, now);
        }
        if spend.reserved == Amount::default() {
            return None;
        }
        let agent = self.agents.load().get(&row.agent).cloned();
        let held = spend.reserved;
        Some(Allotment {
            govern: Arc::clone(&self.govern),
            node: Arc::clone(node?),
            reservation: self.govern.ledger.restore_reservation(&accounts, held),
            // It had one, and nobody else has it yet.
            _slot: self.govern.slots.take(&row.owner, skill, u32::MAX).ok(),
            policy: rules.policy.resolve(&row.owner.name, skill.map(|skill| &**skill)),
            estimated: Estimated { estimate: Estimate::known(held), usd: spend.estimated_by, tokens: spend.estimated_by },
            prices: agent.map(|agent| rules.prices_of(&agent)).unwrap_or_default(),
            before: spend,
            interrupted: true,
            announced: false,
        })
    }
}
