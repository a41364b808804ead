-- Nodes by start: each start of a node gets a number of its own.
CREATE SEQUENCE node_numbers;

CREATE TABLE nodes (
    node    bigint PRIMARY KEY,
    life    uuid NOT NULL,        -- random for each start
    version text NOT NULL,
    since   timestamptz NOT NULL DEFAULT now()
);

-- The fence. The first statement of each batch counts its writer's row up, unless the row is closed.
CREATE TABLE writers (
    node   bigint NOT NULL,
    life   uuid NOT NULL,
    writer bigint NOT NULL,
    batch  bigint NOT NULL,
    closed boolean NOT NULL,
    PRIMARY KEY (node, writer)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Each value begins a block of 1,000 numbers of tasks.
CREATE SEQUENCE task_numbers INCREMENT 1000 MINVALUE 1 START 1;

-- One row per task: what never changes, how far it has come, the names its owner gave it, and what it cost.
CREATE TABLE tasks (
    num             bigint PRIMARY KEY,
    id              text COLLATE "C" NOT NULL,
    context_id      text COLLATE "C" NOT NULL,
    agent           text COLLATE "C" NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    owner           text COLLATE "C" NOT NULL,
    dialect         text COLLATE "C" NOT NULL,
    created_at      bigint NOT NULL,
    state           bigint NOT NULL,
    status_at       bigint NOT NULL,
    seq             bigint NOT NULL,
    bytes           bigint NOT NULL,
    message_only    boolean NOT NULL,
    stage           bigint NOT NULL, -- 1 somebody works on it, 2 it waits for its caller, 3 nothing can happen any more
    client_task_id  text COLLATE "C",
    key             text COLLATE "C", -- the idempotency key it was made under
    lanes           bigint NOT NULL,  -- how many webhooks are told of it
    root            text COLLATE "C", -- the id of the task its tree began with, if that is another
    trace           bytea,            -- 16 bytes; null for a task that is not governed
    parent          text COLLATE "C", -- the id of the task it was made for
    depth           bigint,
    facts           bytea,            -- what is only ever read back as a whole, as JSON
    settled_usd     bigint,
    settled_tokens  bigint,
    settled_tasks   bigint,
    reserved_usd    bigint,
    reserved_tokens bigint,
    reserved_tasks  bigint,
    overrun_usd     bigint,
    overrun_tokens  bigint,
    overrun_tasks   bigint,
    settled_at      bigint,
    estimated_by    bigint,
    known_by        bigint,
    -- What earlier turns cost is in `spent` by itself; of what the task cost in all, that is this much.
    earlier_usd            bigint NOT NULL DEFAULT 0,
    earlier_tokens         bigint NOT NULL DEFAULT 0,
    earlier_tasks          bigint NOT NULL DEFAULT 0,
    earlier_overrun_usd    bigint NOT NULL DEFAULT 0,
    earlier_overrun_tokens bigint NOT NULL DEFAULT 0,
    earlier_overrun_tasks  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX tasks_id ON tasks (id);
CREATE UNIQUE INDEX tasks_client_id ON tasks (tenant, owner, client_task_id) WHERE client_task_id IS NOT NULL;
-- A task is in `tasks_open` until it ends, then in the two others.
CREATE INDEX tasks_open ON tasks (tenant, owner, status_at, id) WHERE stage < 3;
CREATE INDEX tasks_finished ON tasks (status_at, id) WHERE stage = 3;
CREATE INDEX tasks_listed ON tasks (tenant, owner, agent, status_at, id) WHERE stage = 3 AND NOT message_only;
-- Trees: the tasks below a root, those of them that have not ended, and the roots by their trace.
CREATE INDEX ledger_trees ON tasks (root) WHERE root IS NOT NULL;
CREATE INDEX ledger_open_trees ON tasks (root) WHERE root IS NOT NULL AND stage < 3;
CREATE INDEX ledger_roots ON tasks (trace) WHERE root IS NULL AND trace IS NOT NULL;

-- The entries of one append, or a part of them, as a JSON array of [number, microseconds since 1970, event].
CREATE TABLE log (
    task     bigint NOT NULL, -- its num
    seq      bigint NOT NULL, -- the number of the first entry
    last_seq bigint NOT NULL,
    entries  bytea NOT NULL,
    PRIMARY KEY (task, seq)
);

-- A task as it was after an entry, so that a read needs only the entries after it. A row may be missing.
CREATE TABLE snapshots (
    task      bigint PRIMARY KEY, -- its num
    seq       bigint NOT NULL,
    body      bytea NOT NULL,     -- without the artifacts, as JSON
    artifacts bytea NOT NULL
);

-- With whom a task goes on, when an agent elsewhere works on it.
CREATE TABLE links (
    task         bigint PRIMARY KEY, -- its num
    tenant       text COLLATE "C" NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    agent        text COLLATE "C" NOT NULL,
    context_id   text COLLATE "C" NOT NULL,
    peer         text COLLATE "C" NOT NULL,
    peer_task    text COLLATE "C",
    peer_context text COLLATE "C"
);
CREATE INDEX links_of_context ON links (tenant, owner, agent, context_id, task);

-- What an owner used an idempotency key for. A key lives for its own time, also after its task is forgotten.
CREATE TABLE keys (
    tenant      text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    task        text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    expires_at  bigint NOT NULL,
    PRIMARY KEY (tenant, owner, key)
);
CREATE INDEX keys_expiring ON keys (expires_at);

-- Nonces of signed requests that were let in, until their signatures hold no more.
CREATE TABLE nonces (
    nonce bytea PRIMARY KEY,
    until bigint NOT NULL
);
CREATE INDEX nonces_ending ON nonces (until);

-- How many tasks have ended, counted by each node for itself: no node waits for the row of another.
CREATE TABLE ended_counts (
    node         bigint NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    agent        text COLLATE "C" NOT NULL,
    state        bigint NOT NULL,
    message_only boolean NOT NULL,
    tasks        bigint NOT NULL,
    PRIMARY KEY (tenant, owner, agent, state, message_only, node)
) WITH (fillfactor = 50);

-- What tasks had cost that are gone, and earlier turns of others, as long as a budget counts it.
CREATE TABLE spent (
    num            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             bigint NOT NULL,
    tenant         text COLLATE "C" NOT NULL,
    owner          text COLLATE "C" NOT NULL,
    agent          text COLLATE "C" NOT NULL,
    skill          text COLLATE "C",
    root           text COLLATE "C",
    settled_usd    bigint NOT NULL,
    settled_tokens bigint NOT NULL,
    settled_tasks  bigint NOT NULL,
    overrun_usd    bigint NOT NULL,
    overrun_tokens bigint NOT NULL,
    overrun_tasks  bigint NOT NULL
);
CREATE INDEX spent_at ON spent (at);

-- What was decided about calls that made no task.
CREATE TABLE decisions (
    num  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id   text COLLATE "C" NOT NULL,
    task text COLLATE "C", -- the id of the task the call went on with
    at   bigint NOT NULL,  -- in microseconds, while the body has only the milliseconds
    body bytea NOT NULL
);
CREATE UNIQUE INDEX decisions_id ON decisions (id);
CREATE INDEX decisions_of_task ON decisions (task, num) WHERE task IS NOT NULL;

CREATE TABLE freezes (
    scope text COLLATE "C" NOT NULL,
    name  text COLLATE "C" NOT NULL, -- empty where the scope is everything
    by    text COLLATE "C" NOT NULL,
    at    bigint NOT NULL,
    why   bytea,
    PRIMARY KEY (scope, name)
);

-- The record of what was seen and decided: entries that were committed together, a line for each.
CREATE TABLE record (
    first   bigint PRIMARY KEY, -- the index of the first
    count   bigint NOT NULL,
    at      bigint NOT NULL,    -- when the first happened
    hash    bytea NOT NULL,     -- of the last, 32 bytes
    entries bytea NOT NULL
);

-- Signed words on how the record stands. Those that sealed a segment stay when its entries go.
CREATE TABLE record_checkpoints (
    number    bigint PRIMARY KEY,
    covers    bigint NOT NULL,  -- the index after the last entry it covers
    sealed    boolean NOT NULL,
    at        bigint NOT NULL,
    body      bytea NOT NULL,   -- what is signed
    signature bytea NOT NULL
);
CREATE INDEX record_checkpoints_covers ON record_checkpoints (covers);

-- Where webhooks of a tenant point. Their lanes wait in a line of their own.
CREATE TABLE push_origins (
    num          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       text COLLATE "C" NOT NULL,
    origin       text COLLATE "C" NOT NULL,
    lanes        bigint NOT NULL,
    parked_until bigint NOT NULL,
    due_at       bigint,           -- when the first of its lanes can be claimed
    UNIQUE (tenant, origin)
) WITH (fillfactor = 50);
CREATE INDEX push_origins_due ON push_origins (due_at, tenant, origin) WHERE due_at IS NOT NULL;

CREATE TABLE push_tenants (
    tenant text COLLATE "C" PRIMARY KEY,
    lanes  bigint NOT NULL
) WITH (fillfactor = 50);

-- What a webhook is. It seldom changes, and may be long. Numbers are never used again: they are part of delivery ids.
CREATE TABLE registrations (
    lane       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text COLLATE "C" NOT NULL,
    version    text COLLATE "C" NOT NULL,
    profile    text COLLATE "C" NOT NULL,
    events     text COLLATE "C" NOT NULL,
    url        bytea NOT NULL,
    scheme     bytea,
    kek_id     text COLLATE "C",
    sealed     bytea,
    created_at bigint NOT NULL,
    trace      bytea NOT NULL
);

-- How far a webhook has got. It changes with each delivery, and is short.
CREATE TABLE lanes (
    lane          bigint PRIMARY KEY,
    task          bigint NOT NULL, -- its num
    origin        bigint NOT NULL, -- its num
    state         bigint NOT NULL, -- 1 active, 2 paused, 3 disabled, 4 gone
    reason        text COLLATE "C",
    head          bigint NOT NULL,
    tail          bigint NOT NULL,
    attempt       bigint NOT NULL,
    refusals      bigint NOT NULL,
    next_at       bigint NOT NULL,
    first_fail_at bigint,
    epoch         bigint NOT NULL,
    lease_until   bigint NOT NULL,
    span_to       bigint,
    span_kind     bigint,
    due_at        bigint,          -- when it can be claimed, if there is something to deliver by it
    ended_at      bigint,          -- when its task ended, if it has
    tries         bigint NOT NULL,
    receipt       bytea
) WITH (fillfactor = 50);
CREATE INDEX lanes_of_task ON lanes (task);
CREATE INDEX lanes_due ON lanes (origin, due_at, lane) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_ended ON lanes (ended_at) WHERE ended_at IS NOT NULL;

-- The last attempts of each lane, in a ring.
CREATE TABLE attempts (
    lane    bigint NOT NULL,
    slot    bigint NOT NULL,
    num     bigint NOT NULL,
    seq     bigint NOT NULL,
    n       bigint NOT NULL,
    at      bigint NOT NULL,
    ms      bigint NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    http    bigint,
    PRIMARY KEY (lane, slot)
);

-- Deliveries that were given up, with all there is to know about them: their tasks and lanes may go before they do.
CREATE TABLE dead_letters (
    num          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane         bigint NOT NULL,
    task         text COLLATE "C" NOT NULL,
    registration text COLLATE "C" NOT NULL,
    tenant       text COLLATE "C" NOT NULL,
    owner        text COLLATE "C" NOT NULL,
    origin       text COLLATE "C" NOT NULL,
    webhook_id   text COLLATE "C" NOT NULL,
    from_seq     bigint NOT NULL,
    to_seq       bigint NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    attempts     bigint NOT NULL,
    first_at     bigint NOT NULL,
    last_at      bigint NOT NULL,
    http         bigint,
    error        bytea,
    body         bytea NOT NULL,
    headers      bytea NOT NULL,
    replays      bigint NOT NULL,
    new_id       boolean NOT NULL,
    replay_at    bigint,          -- when it is to be delivered again
    epoch        bigint NOT NULL
);
CREATE INDEX dead_letters_at ON dead_letters (last_at);
CREATE INDEX dead_letters_of_task ON dead_letters (task);
CREATE INDEX dead_letters_in_line ON dead_letters (task, from_seq, num) WHERE replay_at IS NOT NULL;

-- What receivers took. Each lane's are a chain. Only the oldest ever go.
CREATE TABLE receipts (
    num         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane        bigint NOT NULL,
    seq         bigint NOT NULL,
    webhook_id  text COLLATE "C" NOT NULL,
    task        text COLLATE "C" NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    origin      text COLLATE "C" NOT NULL,
    body_sha256 bytea NOT NULL,
    http        bigint NOT NULL,
    at          bigint NOT NULL,
    prev_hash   bytea NOT NULL,
    hash        bytea NOT NULL,
    signature   text COLLATE "C" NOT NULL,
    receiver    bytea
);
CREATE INDEX receipts_of_lane ON receipts (lane, num);
