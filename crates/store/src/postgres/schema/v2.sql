-- The nodes that share this database. The id is in the names of their sessions.
CREATE TABLE cluster (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO cluster DEFAULT VALUES;

ALTER TABLE nodes
    ADD COLUMN exclusive   boolean NOT NULL DEFAULT true, -- whether it has the database for itself
    ADD COLUMN role        text,                          -- the database role of its sessions
    ADD COLUMN lease_until timestamptz,                   -- compared with now() alone
    ADD COLUMN successor   bigint,                        -- the node that takes what this one held
    ADD COLUMN gone        boolean NOT NULL DEFAULT false; -- it left by itself and holds nothing

-- The last batch with an entry of a watched task.
ALTER TABLE writers ADD COLUMN told bigint NOT NULL DEFAULT 0;

ALTER TABLE tasks
    ADD COLUMN node     bigint,                         -- the node that works on it
    ADD COLUMN released boolean NOT NULL DEFAULT false, -- a node that shut down worked on it; any node may go on
    ADD COLUMN watched  boolean NOT NULL DEFAULT false; -- a node that does not hold it reads its entries as they come
CREATE INDEX tasks_of_node ON tasks (node, num) WHERE node IS NOT NULL;
CREATE INDEX tasks_released ON tasks (num) WHERE released;

-- Calls for tasks that other nodes hold.
CREATE SEQUENCE forwarded_call_numbers;
CREATE TABLE forwarded_calls (
    num       bigint PRIMARY KEY,
    from_node bigint NOT NULL,
    to_node   bigint NOT NULL,
    task      text COLLATE "C" NOT NULL, -- its id
    state     bigint NOT NULL,           -- 1 waits, 2 answered, 3 the task has another holder, 4 withdrawn
    body      bytea NOT NULL,
    answer    bytea,
    made_at   timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX forwarded_calls_waiting ON forwarded_calls (to_node, num) WHERE state = 1;
CREATE INDEX forwarded_calls_made ON forwarded_calls (made_at);

-- A book of the record for each member of a cluster, by its number. A node that has the database for itself writes book 0.
ALTER TABLE record ADD COLUMN book bigint NOT NULL DEFAULT 0;
ALTER TABLE record DROP CONSTRAINT record_pkey, ADD PRIMARY KEY (book, first);
ALTER TABLE record_checkpoints ADD COLUMN book bigint NOT NULL DEFAULT 0;
ALTER TABLE record_checkpoints DROP CONSTRAINT record_checkpoints_pkey, ADD PRIMARY KEY (book, number);
DROP INDEX record_checkpoints_covers;
CREATE INDEX record_checkpoints_covers ON record_checkpoints (book, covers);
