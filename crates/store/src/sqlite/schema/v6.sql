-- The record in shorthand, about a quarter as long. A row has its lines here, and `entries` is empty; or there, as those from before have.
ALTER TABLE record ADD COLUMN shorthand BLOB;
