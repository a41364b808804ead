-- The end of version 14 follows in `slim_indexes.rs`, index by index.
DROP INDEX tasks_open;
DROP INDEX tasks_listed;
