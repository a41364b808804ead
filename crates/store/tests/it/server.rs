//! Databases for tests, in a PostgreSQL server that all tests of a process share.

use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use chancery_store::{PostgresOptions, PostgresStore};
pub(crate) use chancery_testkit::{PostgresServer, postgres_url as url};
use tokio_postgres::NoTls;

/// How long the store of the template may take to close.
const CLOSES_WITHIN: Duration = Duration::from_secs(60);

/// What the one thread that manages databases is asked for.
enum DatabaseRequest {
    Make { name: String, done: mpsc::Sender<()> },
    Remove { name: String },
}

/// The server that all tests of a process share, and the thread that makes databases in it.
struct SharedServer {
    port: u16,
    requests: mpsc::Sender<DatabaseRequest>,
}

/// The template that has the tables already.
const TEMPLATE: &str = "with_tables";

fn shared() -> &'static SharedServer {
    static SHARED: OnceLock<SharedServer> = OnceLock::new();
    SHARED.get_or_init(|| {
        let (requests, asked) = mpsc::channel();
        let (started, port) = mpsc::channel();
        std::thread::spawn(move || {
            let server = PostgresServer::start(false);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let (admin, connection) = tokio_postgres::connect(&server.url("postgres"), NoTls).await.unwrap();
                tokio::spawn(connection);
                admin.batch_execute(&format!("CREATE DATABASE {TEMPLATE}")).await.unwrap();
                let store = PostgresStore::open(PostgresOptions::at(server.url(TEMPLATE))).await.unwrap();
                chancery_core::Store::close(&store, CLOSES_WITHIN).await.unwrap();
                started.send(server.port()).unwrap();
                while let Ok(request) = tokio::task::block_in_place(|| asked.recv()) {
                    match request {
                        DatabaseRequest::Make { name, done } => {
                            make_from_template(&admin, &name).await;
                            done.send(()).unwrap();
                        }
                        DatabaseRequest::Remove { name } => {
                            admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
                        }
                    }
                }
            });
        });
        SharedServer { port: port.recv().expect("the server for tests did not start"), requests }
    })
}

/// The store that made the template may be on its way out still.
async fn make_from_template(admin: &tokio_postgres::Client, name: &str) {
    for attempt in 0.. {
        match admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")).await {
            Ok(()) => return,
            Err(error) => assert!(attempt < 100, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A database of its own, in the server that all tests of the process share. It goes when the test ends.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    name: String,
    port: u16,
}

impl TestDatabase {
    pub(crate) fn make() -> Self {
        let shared = shared();
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let (done, made) = mpsc::channel();
        shared.requests.send(DatabaseRequest::Make { name: name.clone(), done }).unwrap();
        made.recv().unwrap();
        Self { name, port: shared.port }
    }

    pub(crate) fn url(&self) -> String {
        url(self.port, &self.name)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL by which another port of this machine leads to it.
    pub(crate) fn url_by(&self, port: u16) -> String {
        url(port, &self.name)
    }

    /// Options for tests that are not about patience: a busy machine may take long for ten thousand writes at once.
    pub(crate) fn patient(&self) -> PostgresOptions {
        PostgresOptions { patience_ms: 120_000, ..PostgresOptions::at(self.url()) }
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.patient()).await.unwrap()
    }

    /// A store of one of several nodes.
    pub(crate) async fn join(&self) -> PostgresStore {
        PostgresStore::join(self.patient()).await.unwrap()
    }

    /// A session beside the store's, for what an operator or a fault does.
    pub(crate) async fn session(&self) -> tokio_postgres::Client {
        session(&self.url()).await
    }
}

pub(crate) async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // The thread may be gone with the process.
        drop(shared().requests.send(DatabaseRequest::Remove { name: std::mem::take(&mut self.name) }));
    }
}
