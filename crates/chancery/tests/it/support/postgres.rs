//! Databases for nodes, in a PostgreSQL server that all tests of this process share, or in one of a test's own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use chancery_testkit::PostgresServer;

use crate::support::server::{Home, Server, Setup};

/// The server that nobody stops. It ends with the process.
pub(crate) fn shared() -> &'static PostgresServer {
    static SHARED: OnceLock<PostgresServer> = OnceLock::new();
    SHARED.get_or_init(|| PostgresServer::start(false))
}

/// A name for a database or a role that no other test has.
pub(crate) fn fresh_name(what: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("{what}_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The URL of an empty database of its own.
pub(crate) fn database() -> String {
    shared().make_database(&fresh_name("node"))
}

/// A node with the conformance agent in this home, whose tasks are in the database at the URL.
pub(crate) fn on_database(home: &Home, url: &str, config: &str) -> Server {
    setup(home, url).config(config).start()
}

/// The same before it is started.
pub(crate) fn setup(home: &Home, url: &str) -> Setup {
    Setup::in_home(home).args(["--agent", "conformance", "--store", url])
}
