DROP TABLE ledger;
DROP TABLE tasks;
ALTER TABLE tasks_and_ledger RENAME TO tasks;

-- A task is in `tasks_open` until it ends, then in the two others. A task that ends in one turn changes three entries.
CREATE INDEX tasks_open ON tasks (tenant, owner, status_at, id) WHERE stage < 3;
CREATE INDEX tasks_finished ON tasks (status_at, id) WHERE stage = 3;
CREATE INDEX tasks_listed ON tasks (tenant, owner, status_at, id) WHERE stage = 3 AND message_only = 0;
CREATE UNIQUE INDEX tasks_client_id ON tasks (tenant, owner, client_task_id) WHERE client_task_id IS NOT NULL;

-- Each task is in one of them: those that tasks led to by their root, the roots by their trace. Traces come in no order, so
-- an index by trace alone would write one of its pages for each task; on shelves of 128 tasks, only the last is written to.
CREATE INDEX ledger_trees ON tasks (root) WHERE root IS NOT NULL;
CREATE INDEX ledger_roots ON tasks (num >> 7, trace) WHERE root IS NULL AND trace IS NOT NULL;
