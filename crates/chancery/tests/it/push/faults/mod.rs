//! Webhooks when things break: the process is killed, the store says no, the disk is full, one origin has a crowd waiting.

mod crowd;
mod full_disk;
mod journal;
mod kills;
mod no_sync;
