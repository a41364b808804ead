-- A task as it was after an entry, so that a read needs only the entries after it. The log says the same: a row may be missing.
-- The artifacts come last: a list without them does not read their pages.
CREATE TABLE snapshots (
    task      INTEGER PRIMARY KEY, -- its num
    seq       INTEGER NOT NULL,
    body      TEXT NOT NULL,       -- without the artifacts, as JSON
    artifacts TEXT NOT NULL
) STRICT;
