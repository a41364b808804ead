//! What keeps a node from its database is said at the start, with what to do; `chancery validate` says the same. No password is
//! shown anywhere.

use chancery_testkit::PostgresServer;
use serde_json::json;

use super::{line_to, state};
use crate::operating::cli::{Ran, run};
use crate::support::certificates::Signer;
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::postgres::{database, fresh_name, setup, shared};
use crate::support::server::{Home, Setup};

/// A password that no output may have.
const PASSWORD: &str = "hidden-and-never-shown";

/// Starts a node that is expected to end at once.
fn serve(home: &Home, arguments: &[&str]) -> Ran {
    Ran::of(home.command().args(["serve", "--listen", "127.0.0.1:0"]).args(arguments))
}

/// A server that asks the role `ada` for her password, and `eve` too, who has no rights.
fn guarded() -> PostgresServer {
    let server = PostgresServer::start(false);
    server.sql(
        "postgres",
        &[
            &format!("CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'"),
            &format!("CREATE ROLE eve LOGIN PASSWORD '{PASSWORD}'"),
            "CREATE DATABASE adas OWNER ada",
            "CREATE DATABASE ascii OWNER ada ENCODING 'SQL_ASCII' TEMPLATE template0",
        ],
    );
    server.sql("adas", &["REVOKE CREATE ON SCHEMA public FROM PUBLIC"]);
    server.set_access("host all postgres 127.0.0.1/32 trust\nhost all ada,eve 127.0.0.1/32 scram-sha-256\n");
    server
}

#[test]
fn what_a_database_lacks_is_said_in_words_by_serve_and_validate() {
    let (home, server, nobody) = (Home::new(), guarded(), lasting_address());
    std::fs::write(home.path().join("password"), format!("{PASSWORD}\n")).unwrap();
    std::fs::write(home.path().join("none.pem"), "").unwrap();
    let at = |user: &str, database: &str| format!("url = 'postgres://{user}@127.0.0.1:{}/{database}'\n", server.port());
    let right = "password_file = 'password'\n";
    let with_password = |database: &str| format!("{}{right}", at("ada", database));
    for (section, words) in [
        (
            format!("url = 'postgres://ada:{PASSWORD}@{nobody}/adas'\n"),
            vec!["cannot be reached", "check host and port of the URL"],
        ),
        (at(&format!("ada:wrong-{PASSWORD}"), "adas"), vec!["28P01", "store.password_env or store.password_file"]),
        (at("ada", "adas"), vec!["the server asks for a password: set store.password_env"]),
        (format!("{}password_env = 'NO_SUCH_PASSWORD'\n", at("ada", "adas")), vec!["variable NO_SUCH_PASSWORD has no password"]),
        (format!("{}password_file = 'none'\n", at("ada", "adas")), vec!["the password file none cannot be read"]),
        (with_password("none"), vec!["3D000", "CREATE DATABASE \"none\" ENCODING 'UTF8'"]),
        (with_password("ascii"), vec!["has encoding SQL_ASCII", "ENCODING 'UTF8' TEMPLATE template0"]),
        (format!("{}{right}", at("eve", "adas")), vec!["role eve may not create tables", "GRANT CREATE ON SCHEMA"]),
        (format!("{}ssl_mode = 'require'\n", with_password("adas")), vec!["does not support TLS", "store.ssl_mode"]),
        (
            format!("{}ssl_mode = 'verify-full'\nca_file = 'none.pem'\n", with_password("adas")),
            vec!["the CA file none.pem cannot be used"],
        ),
    ] {
        std::fs::write(home.path().join("chancery.toml"), format!("[store]\n{section}")).unwrap();
        let (validated, served) = (run(&home, ["validate"]), serve(&home, &["--config", "chancery.toml"]));
        let texts = [&validated.stdout, &validated.stderr, &served.stdout, &served.stderr];
        assert_eq!((validated.code, served.code), (Some(2), Some(2)), "{section}: {texts:?}");
        assert!(validated.stdout.contains("chancery.toml:2:7: store.url: "), "{texts:?}");
        assert!(words.iter().all(|words| validated.stdout.contains(words)), "{words:?}: {}", validated.stdout);
        assert!(validated.stdout.lines().all(|line| served.stderr.contains(line)), "{texts:?}");
        assert!(texts.iter().all(|text| !text.contains(PASSWORD)), "{texts:?}");
        assert_eq!(run(&home, ["validate", "--offline"]).code, Some(0), "{section}");
        assert!(!home.data().exists(), "{section}: nothing was made");
    }
    std::fs::write(home.path().join("chancery.toml"), format!("[store]\n{}", with_password("adas"))).unwrap();
    let validated = run(&home, ["validate"]);
    assert_eq!(validated.code, Some(0), "{}", validated.stdout);
    let tables = server.sql("adas", &["SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"]);
    assert_eq!(tables, "0", "a check makes nothing");
}

#[test]
fn what_contradicts_a_database_is_a_fault_at_its_line() {
    let (home, url) = (Home::new(), database());
    let file = |section: &str| std::fs::write(home.path().join("chancery.toml"), format!("[store]\n{section}")).unwrap();
    let with_file = |arguments: &[&str]| serve(&home, &[&["--config", "chancery.toml"][..], arguments].concat());
    file(&format!("url = '{url}'\n"));
    let ran = with_file(&["--memory"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("chancery.toml:2:7: store.url: --memory keeps tasks in memory"), "{}", ran.stderr);
    file("patience_ms = 3\n");
    for ran in [with_file(&[]), run(&home, ["validate"])] {
        assert_eq!(ran.code, Some(2));
        let fault = "chancery.toml:2:15: store.patience_ms: needs a PostgreSQL database";
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(fault), "{}{}", ran.stdout, ran.stderr);
    }
    let validated = run(&home, ["validate", "--store", &url]);
    assert_eq!(validated.code, Some(0), "the flag names the database: {}", validated.stdout);
    file("synchronous = 'normal'\n");
    let ran = with_file(&["--store", &url]);
    assert!(ran.code == Some(2) && ran.stderr.contains("store.synchronous: is about SQLite"), "{}", ran.stderr);
    for arguments in [["--store", &format!("mysql://ada:{PASSWORD}@h/db")], ["--store", PASSWORD]] {
        let ran = serve(&home, &arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains("--store must be the URL of a PostgreSQL"), "{}", ran.stderr);
        assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
    }
    let ran = run(&home, ["store", "check", &url]);
    assert!(ran.code == Some(2) && ran.stderr.contains("this is a PostgreSQL database"), "{}", ran.stderr);
    assert!(!home.data().exists(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_several_hosts_and_a_password_from_a_file_lead_to_the_database() {
    let (home, authority, stranger) = (Home::new(), Signer::new("database"), Signer::new("stranger"));
    let signed = authority.named(&["localhost"]);
    let settings = "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'";
    let files = [("server.pem", signed.certificate.as_str()), ("server.key", signed.key.as_str())];
    let server = PostgresServer::start_with(false, settings, &files);
    server.sql("postgres", &[&format!("CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'"), "CREATE DATABASE adas OWNER ada"]);
    server.set_access("host all postgres 127.0.0.1/32 trust\nhostssl all ada 127.0.0.1/32 scram-sha-256\n");
    for (name, text) in [("ca.pem", authority.pem()), ("stranger.pem", stranger.pem()), ("password", format!("{PASSWORD}\n"))] {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    let nobody = lasting_address().port();
    let hosts = format!("localhost:{nobody},localhost:{}", server.port());
    let url = format!("postgres://ada@{hosts}/adas?target_session_attrs=read-write");
    let config = |ca: &str| {
        format!(
            "[agents.conformance]\nrun = 'conformance'\n[store]\nurl = '{url}'\nssl_mode = 'verify-full'\nca_file = '{ca}'\n\
             password_env = 'DATABASE_PASSWORD'\n"
        )
    };
    std::fs::write(home.path().join("chancery.toml"), config("stranger.pem")).unwrap();
    let refused = Ran::of(home.command().args(["validate"]).env("DATABASE_PASSWORD", PASSWORD));
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stdout.contains("store.ca_file has the authority"), "{}", refused.stdout);

    let node = Setup::in_home(&home).config(&config("ca.pem")).env("DATABASE_PASSWORD", PASSWORD).start();
    let sent = node.send("complete over TLS").await;
    assert_eq!(state(&sent["task"]), "TASK_STATE_COMPLETED", "{sent}");
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'ada'";
    assert_eq!(server.sql("postgres", &[encrypted]), "t");
    assert_eq!(node.terminate().0.code(), Some(0));

    let by_file = config("ca.pem").replace("password_env = 'DATABASE_PASSWORD'", "password_file = 'password'");
    let node = Setup::in_home(&home).config(&by_file).start();
    assert_eq!(node.call("GetTask", json!({ "id": sent["task"]["id"] })).await["result"], sent["task"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_in_the_url_is_shown_nowhere() {
    let (home, role) = (Home::new(), fresh_name("role"));
    let name = fresh_name("secretive");
    shared().sql("postgres", &[&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")]);
    shared().make_database(&name);
    let url = format!("postgres://{role}:{PASSWORD}@127.0.0.1:{}/{name}?password={PASSWORD}", shared().port());
    let server = setup(&home, &url).env("RUST_LOG", "trace").config("").start();
    let line = line_to(&home, &server);
    line.send("complete").await;
    // Every session is cut, and the node makes new ones.
    let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'");
    shared().sql("postgres", &[&cut]);
    soon("the node works on", async || (state(&line.send("complete").await["task"]) == "TASK_STATE_COMPLETED").then_some(()))
        .await;
    std::fs::write(home.path().join("chancery.toml"), "[store]\nreaders = 9\n").unwrap();
    let reloaded = run(&home, ["reload"]);
    assert!(reloaded.stderr.contains("store.readers"), "a change needs a restart: {}", reloaded.stderr);
    let answers = [line.admin("/config").await.unwrap().to_string(), line.admin("/node").await.unwrap().to_string()];
    let helped = Ran::of(home.command().args(["serve", "--help"]).env("CHANCERY_STORE", &url));
    let texts = [server.log(), reloaded.stdout, reloaded.stderr, helped.stdout, server.curl().to_owned()];
    assert!(texts[0].contains("tasks are in this PostgreSQL database"), "the log was written");
    for text in texts.iter().chain(&answers) {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}
