//! After a restart: the ledger goes on counting where it stopped, and every open task is back in its place in its tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chancery_protocol::{Error, TaskId, Timestamp};
use chancery_rules::budget::{Account, Accounts, ActualSource, Amount, Estimate, EstimateSource, Estimated, SettledReservation};
use chancery_rules::policy::UNLIMITED;

use crate::find::internal;
use crate::govern::Rulebook;
use crate::govern::allot::{Allotment, span_of};
use crate::govern::held_budget::HeldBudget;
use crate::govern::node::TreeNode;
use crate::govern::report::CostReport;
use crate::service::ChanceryInner;
use crate::{LedgerRow, LedgerSnapshot, PastSpend, TaskRecord};

impl ChanceryInner {
    /// Answers what the turns had been given that were running when the last run ended.
    pub(crate) async fn restore(self: &Arc<Self>) -> Result<HashMap<TaskId, Box<Allotment>>, Error> {
        let now = self.clock.now();
        let rules = self.govern.rules.load_full();
        let ledger = self.restore_past_runs(&rules).await?;
        // Trees with an open task, and those that an agent may still call for although all has ended.
        let lingering = now.micros().saturating_sub(i64::try_from(rules.lineage.linger().as_micros()).unwrap_or(i64::MAX));
        let counts = |row: &&LedgerRow| !row.state.is_terminal() || row.status_at.micros() > lingering;
        let open: HashSet<&TaskId> = ledger.tasks.iter().filter(counts).map(|row| &row.governed.kinship.root).collect();
        let mut nodes: HashMap<TaskId, Arc<TreeNode>> = HashMap::new();
        let mut allotments = HashMap::new();
        let mut lenders = Vec::new();
        for row in &ledger.tasks {
            let node = open.contains(&row.governed.kinship.root).then(|| self.restore_node(&rules, row, &mut nodes));
            self.restore_settled(&rules, row, node.as_ref());
            match row.governed.spend.estimated_by {
                EstimateSource::Remainder => lenders.push((row, node)),
                _ => allotments.extend(self.restore_held(&rules, row, node.as_ref())),
            }
        }
        // The newest first: what a task borrowed is not the lender's any more.
        for (row, node) in lenders.into_iter().rev() {
            allotments.extend(self.restore_held(&rules, row, node.as_ref()));
        }
        // A turn that had ended, of which only the bill was missing.
        for row in ledger.tasks.iter().filter(|row| row.state.is_interrupted() || row.state.is_terminal()) {
            if let Some(allotment) = allotments.remove(&row.task) {
                let closed = allotment.close(&CostReport::default(), now);
                self.store.settle(&row.task, closed.spend).await.map_err(internal)?;
            }
        }
        Ok(allotments)
    }

    /// What a node reads that shares its store: what was spent counts here too, and the tasks are those of other nodes.
    pub(crate) async fn restore_counts(&self) -> Result<(), Error> {
        let rules = self.govern.rules.load_full();
        let ledger = self.restore_past_runs(&rules).await?;
        ledger.tasks.iter().for_each(|row| self.restore_settled(&rules, row, None));
        Ok(())
    }

    /// Keys, freezes, and what was spent by tasks that are no more.
    async fn restore_past_runs(&self, rules: &Rulebook) -> Result<LedgerSnapshot, Error> {
        self.key_quota.restore(&self.store.kept_keys().await.map_err(internal)?);
        let frozen = self.store.freezes().await.map_err(internal)?;
        let frozen = frozen.into_iter().map(|freeze| (freeze.scope.clone(), freeze));
        self.govern.freezes.change().await.apply(|list| list.extend(frozen)).await;
        let window = i64::try_from(self.govern.longest_window().as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(self.clock.now().micros().saturating_sub(window));
        let ledger = self.store.ledger(since).await.map_err(internal)?;
        for past in &ledger.past {
            self.restore_past(rules, past);
        }
        self.restore_overruns(&ledger);
        Ok(ledger)
    }

    fn restore_past(&self, rules: &Rulebook, past: &PastSpend) {
        let accounts: Accounts = self.govern.accounts(rules, &past.owner, &past.agent, past.skill.as_ref()).into_iter().collect();
        let was = SettledReservation { settled: past.settled, overrun: past.overrun };
        self.govern.ledger.restore_settled(&accounts, was, self.govern.of_stored(past.at), self.govern.now());
    }

    /// Agents that reported more than was reserved for them are not believed again because of a restart.
    fn restore_overruns(&self, ledger: &LedgerSnapshot) {
        let overran = |amount: Amount| amount.usd.0 > 0 || amount.tokens > 0;
        let past = ledger.past.iter().filter(|past| overran(past.overrun));
        let past = past.map(|past| (past.at, &past.agent, past.skill.as_ref(), past.overrun));
        let tasks = ledger.tasks.iter().filter_map(|row| {
            let (spend, skill) = (&row.governed.spend, row.governed.kinship.skill.as_ref());
            let overrun = spend.last_turn().overrun;
            let counts = overran(overrun) || matches!(spend.known_by, Some(ActualSource::Reported | ActualSource::Measured));
            spend.settled_at.filter(|_| counts).map(|at| (at, &row.agent, skill, overrun))
        });
        let mut settled: Vec<_> = past.chain(tasks).collect();
        settled.sort_by_key(|(at, ..)| *at);
        for (_, agent, skill, overrun) in settled {
            self.govern.observed.restore(agent, skill, overrun);
        }
    }

    fn restore_node(&self, rules: &Rulebook, row: &LedgerRow, nodes: &mut HashMap<TaskId, Arc<TreeNode>>) -> Arc<TreeNode> {
        let parent = row.governed.kinship.parent.as_ref().and_then(|parent| nodes.get(parent)).cloned();
        let node = self.restored_node(rules, row, parent);
        match row.state.is_terminal() {
            true => {
                node.end(row.state);
                if node.elsewhere {
                    self.govern.trees.remember(&node, self.govern.of_stored(row.status_at));
                }
            }
            false => drop(self.govern.trees.add(&node)),
        }
        if let Some(link) = &row.link {
            node.set_link(link);
        }
        nodes.insert(row.task.clone(), Arc::clone(&node));
        node
    }

    /// The place of a task below its parent, as the store has it. It is on no list yet.
    pub(crate) fn restored_node(&self, rules: &Rulebook, row: &LedgerRow, parent: Option<Arc<TreeNode>>) -> Arc<TreeNode> {
        let kinship = &row.governed.kinship;
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
        let elsewhere = self.agents.load().get(&row.agent).is_some_and(|agent| agent.runner.keeps_links());
        let node = TreeNode::new(&self.govern.trees, record, Arc::clone(kinship), parent, chain, own, elsewhere);
        node.add_cost(row.governed.spend.settled.saturating_add(row.governed.spend.overrun));
        if elsewhere {
            // Its agent may still call under the span id that it received before the restart.
            node.set_span(self.marks.span(&row.task));
        }
        node
    }

    fn restored_accounts(&self, rules: &Rulebook, row: &LedgerRow, node: Option<&Arc<TreeNode>>) -> Accounts {
        let chain = node.iter().flat_map(|node| node.accounts.iter().cloned());
        self.accounts_of(rules, row).into_iter().chain(chain).collect()
    }

    /// Those that are not its tree's.
    fn accounts_of(&self, rules: &Rulebook, row: &LedgerRow) -> Vec<Account> {
        self.govern.accounts(rules, &row.owner, &row.agent, row.governed.kinship.skill.as_ref())
    }

    /// What a task has cost is counted again: all of it in its tree, and its last turn wherever it matters when that was. Earlier ones
    /// are past.
    pub(crate) fn restore_settled(&self, rules: &Rulebook, row: &LedgerRow, node: Option<&Arc<TreeNode>>) {
        let spend = row.governed.spend;
        if let Some(at) = spend.settled_at {
            let (ledger, at, now) = (&self.govern.ledger, self.govern.of_stored(at), self.govern.now());
            ledger.restore_settled(&self.accounts_of(rules, row).into_iter().collect(), spend.last_turn(), at, now);
            if let Some(node) = node {
                ledger.restore_settled(
                    &node.accounts,
                    SettledReservation { settled: spend.settled, overrun: spend.overrun },
                    at,
                    now,
                );
            }
        }
    }

    /// What was held for a task is held again.
    pub(crate) fn restore_held(
        &self,
        rules: &Rulebook,
        row: &LedgerRow,
        node: Option<&Arc<TreeNode>>,
    ) -> Option<(TaskId, Box<Allotment>)> {
        let spend = row.governed.spend;
        let held = spend.reserved;
        if held == Amount::default() {
            return None;
        }
        let node = Arc::clone(node?);
        let skill = row.governed.kinship.skill.as_ref();
        let accounts = self.restored_accounts(rules, row, Some(&node));
        let agent = self.agents.load().get(&row.agent).cloned();
        let reservation = match spend.estimated_by {
            EstimateSource::Remainder => self.govern.ledger.restore_remainder(&accounts, held, self.govern.now()),
            _ => self.govern.ledger.restore_reservation(&accounts, held),
        };
        let allotment = Allotment {
            govern: Arc::clone(&self.govern),
            span: span_of(&node),
            node,
            estimated: Estimated {
                estimate: Estimate::known(reservation.amount()),
                usd: spend.estimated_by,
                tokens: spend.estimated_by,
            },
            held: HeldBudget::new(reservation),
            // It had one, and nobody else has it yet.
            _slot: self.govern.slots.take(&row.owner, skill, UNLIMITED - 1).ok(),
            policy: rules.policy.resolve(&row.owner.tenant, &row.owner.name, skill.map(|skill| &**skill)),
            prices: agent.map(|agent| rules.prices_of(&agent)).unwrap_or_default(),
            before: spend,
            heard: CostReport::default(),
            interrupted: true,
            announced: false,
        };
        Some((row.task.clone(), Box::new(allotment)))
    }
}
