-- How many tasks have ended, so that a list can say how many match it without going through them. Logs of a message alone are not in it.
CREATE TABLE ended_counts (
    tenant TEXT NOT NULL,
    owner  TEXT NOT NULL,
    agent  TEXT NOT NULL,
    state  INTEGER NOT NULL,
    tasks  INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, agent, state)
) STRICT, WITHOUT ROWID;

INSERT INTO ended_counts
SELECT tenant, owner, agent, state, count(*) FROM tasks WHERE stage = 3 AND message_only = 0 GROUP BY tenant, owner, agent, state;

-- By agent: a caller lists its tasks at one agent.
DROP INDEX tasks_listed;
CREATE INDEX tasks_listed ON tasks (tenant, owner, agent, status_at, id) WHERE stage = 3 AND message_only = 0;
