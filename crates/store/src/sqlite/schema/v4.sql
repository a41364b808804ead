-- How many webhooks are told of a task: whoever appends to one without any need not look for them.
ALTER TABLE tasks ADD COLUMN lanes INTEGER NOT NULL DEFAULT 0;

-- Where webhooks of a tenant point. Their lanes wait in a line of their own, so that no line is gone through to find another.
CREATE TABLE push_origins (
    num          INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    origin       TEXT NOT NULL,
    lanes        INTEGER NOT NULL,
    parked_until INTEGER NOT NULL,
    due_at       INTEGER,          -- when the first of its lanes can be claimed
    UNIQUE (tenant, origin)
) STRICT;

CREATE INDEX push_origins_due ON push_origins (due_at, tenant, origin) WHERE due_at IS NOT NULL;

CREATE TABLE push_tenants (
    tenant TEXT PRIMARY KEY,
    lanes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What a webhook is. It seldom changes, and may be long.
CREATE TABLE registrations (
    lane       INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: part of delivery ids
    id         TEXT NOT NULL,
    version    TEXT NOT NULL,
    profile    TEXT NOT NULL,
    events     TEXT NOT NULL,
    url        TEXT NOT NULL,
    scheme     TEXT,
    kek_id     TEXT,
    sealed     BLOB,
    created_at INTEGER NOT NULL,
    trace      BLOB NOT NULL
) STRICT;

-- How far it has got. It changes with each delivery, and is short.
CREATE TABLE lanes (
    lane          INTEGER PRIMARY KEY,
    task          INTEGER NOT NULL, -- its num
    origin        INTEGER NOT NULL, -- its num
    state         INTEGER NOT NULL, -- 1 active, 2 paused, 3 disabled, 4 gone
    reason        TEXT,
    head          INTEGER NOT NULL,
    tail          INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    refusals      INTEGER NOT NULL,
    next_at       INTEGER NOT NULL,
    first_fail_at INTEGER,
    epoch         INTEGER NOT NULL,
    lease_until   INTEGER NOT NULL,
    span_to       INTEGER,
    span_kind     INTEGER,
    due_at        INTEGER,          -- when it can be claimed, if there is something to deliver by it
    ended_at      INTEGER,          -- when its task ended, if it has
    tries         INTEGER NOT NULL,
    receipt       BLOB
) STRICT;

CREATE INDEX lanes_of_task ON lanes (task);
CREATE INDEX lanes_due ON lanes (origin, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_ended ON lanes (ended_at) WHERE ended_at IS NOT NULL;

-- The last attempts of each lane, in a ring.
CREATE TABLE attempts (
    lane    INTEGER NOT NULL,
    slot    INTEGER NOT NULL,
    num     INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    ms      INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    http    INTEGER,
    PRIMARY KEY (lane, slot)
) STRICT, WITHOUT ROWID;

-- Deliveries that were given up, with all there is to know about them: their tasks and lanes may go before they do.
CREATE TABLE dead_letters (
    num          INTEGER PRIMARY KEY AUTOINCREMENT,
    lane         INTEGER NOT NULL,
    task         TEXT NOT NULL,
    registration TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    owner        TEXT NOT NULL,
    origin       TEXT NOT NULL,
    webhook_id   TEXT NOT NULL,
    from_seq     INTEGER NOT NULL,
    to_seq       INTEGER NOT NULL,
    reason       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    first_at     INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    http         INTEGER,
    error        TEXT,
    body         BLOB NOT NULL,
    headers      TEXT NOT NULL,
    replays      INTEGER NOT NULL,
    new_id       INTEGER NOT NULL,
    replay_at    INTEGER,          -- when it is to be delivered again
    epoch        INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_letters_at ON dead_letters (last_at);
CREATE INDEX dead_letters_of_task ON dead_letters (task);
CREATE INDEX dead_letters_in_line ON dead_letters (task, from_seq, num) WHERE replay_at IS NOT NULL;

-- What receivers took. Each lane's are a chain. Only the oldest ever go.
CREATE TABLE receipts (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    lane        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    webhook_id  TEXT NOT NULL,
    task        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    origin      TEXT NOT NULL,
    body_sha256 BLOB NOT NULL,
    http        INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    prev_hash   BLOB NOT NULL,
    hash        BLOB NOT NULL,
    signature   TEXT NOT NULL,
    receiver    TEXT
) STRICT;

CREATE INDEX receipts_of_lane ON receipts (lane);
