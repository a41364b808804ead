-- One row per task: what never changes, how far it has come, and the names its owner gave it.
CREATE TABLE tasks (
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
    key             TEXT,
    key_fingerprint BLOB,
    key_expires_at  INTEGER
) STRICT;

CREATE INDEX tasks_listed ON tasks (tenant, owner, status_at, id) WHERE message_only = 0;
CREATE INDEX tasks_finished ON tasks (status_at, id) WHERE stage = 3;
CREATE INDEX tasks_unfinished ON tasks (stage) WHERE stage = 1;
CREATE UNIQUE INDEX tasks_client_id ON tasks (tenant, owner, client_task_id) WHERE client_task_id IS NOT NULL;
CREATE UNIQUE INDEX tasks_key ON tasks (tenant, owner, key) WHERE key IS NOT NULL;
CREATE INDEX tasks_key_expiry ON tasks (key_expires_at) WHERE key IS NOT NULL;

-- The entries of one append, or a part of them, as a JSON array of [number, microseconds since 1970, event].
-- place = task's num * 2^24 + number of the first entry.
CREATE TABLE log (
    place    INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    entries  TEXT NOT NULL
) STRICT;

-- One row, written to see whether writing works.
CREATE TABLE readiness (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    checks   INTEGER NOT NULL
) STRICT;
INSERT INTO readiness VALUES (1, 0);
