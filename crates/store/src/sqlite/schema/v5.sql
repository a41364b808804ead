-- The record of what was seen and decided: entries that were committed together, a line for each.
CREATE TABLE record (
    first   INTEGER PRIMARY KEY, -- the index of the first
    count   INTEGER NOT NULL,
    at      INTEGER NOT NULL,    -- when the first happened
    hash    BLOB NOT NULL,       -- of the last, 32 bytes
    entries TEXT NOT NULL
) STRICT;

-- Signed words on how it stands. Those that sealed a segment stay when its entries go.
CREATE TABLE record_checkpoints (
    number    INTEGER PRIMARY KEY,
    end       INTEGER NOT NULL,  -- the index after the last entry it covers
    sealed    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    body      TEXT NOT NULL,     -- what is signed
    signature BLOB NOT NULL
) STRICT;

CREATE INDEX record_checkpoints_end ON record_checkpoints (end);
