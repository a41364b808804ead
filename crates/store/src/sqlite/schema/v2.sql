-- With whom a task goes on, when an agent elsewhere works on it.
CREATE TABLE links (
    task       INTEGER PRIMARY KEY, -- its num
    tenant     TEXT NOT NULL,
    owner      TEXT NOT NULL,
    agent      TEXT NOT NULL,
    context_id TEXT NOT NULL,
    peer       TEXT NOT NULL,
    peer_task  TEXT,
    peer_context TEXT
) STRICT;

CREATE INDEX links_of_context ON links (tenant, owner, agent, context_id, task);
