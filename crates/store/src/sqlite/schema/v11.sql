-- A task and its ledger in one row: what is known when it is made is one write, and its end is another.
-- The columns from `root` on are empty for tasks from before calls were governed; `trace` says which those are.
CREATE TABLE tasks_and_ledger (
    num             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    context_id      TEXT NOT NULL,
    agent           TEXT NOT NULL,
    tenant          TEXT NOT NULL,
    owner           TEXT NOT NULL,
    dialect         TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    state           INTEGER NOT NULL,
    status_at       INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    bytes           INTEGER NOT NULL,
    message_only    INTEGER NOT NULL,
    stage           INTEGER NOT NULL, -- 1 somebody works on it, 2 it waits for its caller, 3 nothing can happen any more
    client_task_id  TEXT,
    key             TEXT,             -- the idempotency key it was made under
    lanes           INTEGER NOT NULL DEFAULT 0,
    root            TEXT,             -- the id of the task its tree began with, if that is another
    trace           BLOB,             -- 16 bytes
    parent          TEXT,             -- the id of the task it was made for
    depth           INTEGER,
    facts           TEXT,             -- what is only ever read back as a whole, as JSON
    settled_usd     INTEGER,
    settled_tokens  INTEGER,
    settled_tasks   INTEGER,
    reserved_usd    INTEGER,
    reserved_tokens INTEGER,
    reserved_tasks  INTEGER,
    overrun_usd     INTEGER,
    overrun_tokens  INTEGER,
    overrun_tasks   INTEGER,
    settled_at      INTEGER,
    estimated_by    INTEGER,
    known_by        INTEGER,
    -- What earlier turns cost is in `spent` by itself; of what the task cost in all, that is this much.
    earlier_usd            INTEGER NOT NULL DEFAULT 0,
    earlier_tokens         INTEGER NOT NULL DEFAULT 0,
    earlier_tasks          INTEGER NOT NULL DEFAULT 0,
    earlier_overrun_usd    INTEGER NOT NULL DEFAULT 0,
    earlier_overrun_tokens INTEGER NOT NULL DEFAULT 0,
    earlier_overrun_tasks  INTEGER NOT NULL DEFAULT 0
) STRICT;
