-- What earlier turns of a task cost is in `spent` by itself, each at its own time; of what the task cost in all, that is this much.
ALTER TABLE ledger ADD COLUMN earlier_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN earlier_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN earlier_tasks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN earlier_overrun_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN earlier_overrun_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN earlier_overrun_tasks INTEGER NOT NULL DEFAULT 0;
