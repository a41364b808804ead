//! Several control planes on one database, in one process: a call at any of them answers for every task.

mod cluster;
mod following;
mod forwarding;
mod mixed;
mod oracle;
mod succession;
