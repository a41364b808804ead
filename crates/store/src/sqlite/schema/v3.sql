-- How the call that made a task was governed, what the task was given, and what it cost.
-- Money is in millionths of a dollar; counts beyond 2^63 wrap to negative numbers.
CREATE TABLE ledger (
    task            INTEGER PRIMARY KEY, -- its num
    root            TEXT,                -- the id of the task its tree began with, if that is another
    trace           BLOB NOT NULL,       -- 16 bytes
    parent          TEXT,                -- the id of the task it was made for
    depth           INTEGER NOT NULL,
    settled_usd     INTEGER NOT NULL,
    settled_tokens  INTEGER NOT NULL,
    settled_tasks   INTEGER NOT NULL,
    reserved_usd    INTEGER NOT NULL,
    reserved_tokens INTEGER NOT NULL,
    reserved_tasks  INTEGER NOT NULL,
    overrun_usd     INTEGER NOT NULL,
    overrun_tokens  INTEGER NOT NULL,
    overrun_tasks   INTEGER NOT NULL,
    settled_at      INTEGER,
    estimated_by    INTEGER NOT NULL,
    known_by        INTEGER,
    facts           TEXT NOT NULL        -- what is only ever read back as a whole, as JSON
) STRICT;

-- Each task is in one of them: those that tasks led to by their root, the roots by their trace. Traces come in no order, so
-- an index by trace alone would write one of its pages for each task; on shelves of 128 tasks, only the last is written to.
CREATE INDEX ledger_trees ON ledger (root) WHERE root IS NOT NULL;
CREATE INDEX ledger_roots ON ledger (task >> 7, trace) WHERE root IS NULL;

CREATE INDEX tasks_waiting ON tasks (stage) WHERE stage = 2;

-- What tasks had cost that are gone, as long as a budget counts it.
CREATE TABLE spent (
    num            INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    tenant         TEXT NOT NULL,
    owner          TEXT NOT NULL,
    agent          TEXT NOT NULL,
    skill          TEXT,
    settled_usd    INTEGER NOT NULL,
    settled_tokens INTEGER NOT NULL,
    settled_tasks  INTEGER NOT NULL,
    overrun_usd    INTEGER NOT NULL,
    overrun_tokens INTEGER NOT NULL,
    overrun_tasks  INTEGER NOT NULL
) STRICT;

CREATE INDEX spent_at ON spent (at);

-- What was decided about calls that made no task. Only the oldest ever go, so the numbers have no gaps.
CREATE TABLE decisions (
    num  INTEGER PRIMARY KEY,
    id   TEXT NOT NULL UNIQUE,
    task TEXT,             -- the id of the task the call went on with
    at   INTEGER NOT NULL, -- in microseconds, while the body has only the milliseconds
    body TEXT NOT NULL
) STRICT;

CREATE INDEX decisions_of_task ON decisions (task) WHERE task IS NOT NULL;

CREATE TABLE freezes (
    scope TEXT NOT NULL,
    name  TEXT NOT NULL, -- empty where the scope is everything
    by    TEXT NOT NULL,
    at    INTEGER NOT NULL,
    why   TEXT,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
