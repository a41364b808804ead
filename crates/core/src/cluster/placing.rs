//! Gives a task that comes from another node its place in its tree, with the budgets that count for it here.

use std::sync::Arc;

use chancery_protocol::{Error, TaskId, TaskState};
use chancery_rules::budget::{Amount, SettledReservation};

use crate::find::internal;
use crate::govern::allot::Allotment;
use crate::govern::node::TreeNode;
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::{LedgerRow, Spend, Stored};

impl ChanceryInner {
    /// Puts a task that this node begins to work on into its tree. Answers what its turn had been given, where another node began
    /// that turn and is gone.
    pub(super) async fn find_place(&self, live: &LiveTask, stored: &Stored) -> Result<Option<Box<Allotment>>, Error> {
        let id = &stored.task.id;
        let Some(row) = self.ledger_row(stored).await? else { return Ok(None) };
        let rules = self.govern.rules.load_full();
        // Of a task that waits for its caller, the node that had it counts what it cost.
        let is_inherited = matches!(stored.progress.state, TaskState::Submitted | TaskState::Working);
        let node = match (self.govern.trees.get(id), live.node()) {
            (Some(node), _) => node,
            (None, Some(node)) => {
                // It was here before. What it cost elsewhere since is added to what it cost here.
                let cost = cost_of(&row.governed.spend);
                node.add_cost(cost.saturating_sub(live.spent().as_ref().map_or(cost, cost_of)));
                self.govern.trees.reopen(node);
                Arc::clone(node)
            }
            (None, None) => {
                let parent = self.place_above(&row).await?;
                let node = self.restored_node(&rules, &row, parent);
                self.govern.trees.add(&node);
                let of_tree = SettledReservation { settled: row.governed.spend.settled, overrun: row.governed.spend.overrun };
                match row.governed.spend.settled_at {
                    Some(_) if is_inherited => self.restore_settled(&rules, &row, Some(&node)),
                    Some(at) => {
                        let at = self.govern.of_stored(at);
                        self.govern.ledger.restore_settled(&node.accounts, of_tree, at, self.govern.now());
                    }
                    None => {}
                }
                node
            }
        };
        if let Some(link) = &row.link {
            node.set_link(link);
        }
        live.take_place(Arc::clone(&node));
        Ok(self.restore_held(&rules, &row, Some(&node)).map(|(_, allotment)| allotment))
    }

    /// The places above a task, from its root down. Those that other nodes work on are known here only as its ancestors.
    async fn place_above(&self, row: &LedgerRow) -> Result<Option<Arc<TreeNode>>, Error> {
        let mut missing = Vec::new();
        let mut next = row.governed.kinship.parent.clone();
        let mut above = None;
        while let Some(parent) = next {
            above = self.govern.trees.get(&parent).or_else(|| self.govern.trees.ended(&parent));
            if above.is_some() {
                break;
            }
            let Some(row) = self.ledger_row_of(&parent).await? else { break };
            next = row.governed.kinship.parent.clone();
            missing.push(row);
        }
        let rules = self.govern.rules.load_full();
        for row in missing.into_iter().rev() {
            let node = self.restored_node(&rules, &row, above);
            if row.state.is_terminal() {
                node.end(row.state);
            }
            above = Some(node);
        }
        Ok(above)
    }

    async fn ledger_row_of(&self, task: &TaskId) -> Result<Option<LedgerRow>, Error> {
        match self.store.find_any(task.as_str()).await.map_err(internal)? {
            Some(stored) => self.ledger_row(&stored).await,
            None => Ok(None),
        }
    }

    /// Nothing for a task from before governance.
    async fn ledger_row(&self, stored: &Stored) -> Result<Option<LedgerRow>, Error> {
        let task = &stored.task;
        let Some(governed) = self.store.governed(&task.id).await.map_err(internal)? else { return Ok(None) };
        Ok(Some(LedgerRow {
            task: task.id.clone(),
            context_id: task.context_id.clone(),
            agent: task.agent.clone(),
            owner: task.owner.clone(),
            dialect: task.dialect,
            created_at: task.created_at,
            state: stored.progress.state,
            status_at: stored.progress.status_at,
            link: self.store.link(&task.id).await.map_err(internal)?,
            governed,
        }))
    }
}

fn cost_of(spend: &Spend) -> Amount {
    spend.settled.saturating_add(spend.overrun)
}
