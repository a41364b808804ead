-- Nonces of signed requests that were let in, until their signatures hold no more.
CREATE TABLE nonces (
    nonce BLOB PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX nonces_ending ON nonces (until);
