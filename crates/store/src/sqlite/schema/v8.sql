-- What an owner used an idempotency key for. A key lives for its own time, also after its task is forgotten.
CREATE TABLE keys (
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    key         TEXT NOT NULL,
    task        TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_expiring ON keys (expires_at);

INSERT INTO keys SELECT tenant, owner, key, id, key_fingerprint, key_expires_at FROM tasks WHERE key IS NOT NULL;

-- A key made from a message id names the agent too from now on.
INSERT OR IGNORE INTO keys
SELECT tenant, owner, 'message:' || agent || ':' || substr(key, 9), id, key_fingerprint, key_expires_at
FROM tasks WHERE key LIKE 'message:%';

-- `tasks.key` only says which key a task was made under; an expired key may be used again, so it is no longer unique.
DROP INDEX tasks_key;
DROP INDEX tasks_key_expiry;
UPDATE tasks SET key_fingerprint = NULL, key_expires_at = NULL WHERE key IS NOT NULL;
