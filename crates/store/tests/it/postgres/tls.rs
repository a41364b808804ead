//! TLS to the database: each mode of `sslmode` accepts the certificates it says, and no others.

use std::path::PathBuf;

use chancery_core::Store;
use chancery_store::{PostgresOptions, PostgresStore, SslMode};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::contract::sample::{creation, task};
use crate::server::PostgresServer;

/// An authority that signs for a server of these names, and one that signs nothing here.
struct TestAuthorities {
    certificate: String,
    key: String,
    signer: PathBuf,
    stranger: PathBuf,
    _folder: tempfile::TempDir,
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn authorities(name: &str) -> TestAuthorities {
    let folder = tempfile::tempdir().unwrap();
    let (signer, stranger) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &signer).unwrap();
    let write = |file: &str, content: String| {
        let place = folder.path().join(file);
        std::fs::write(&place, content).unwrap();
        place
    };
    TestAuthorities {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        signer: write("signer.pem", signer.pem()),
        stranger: write("stranger.pem", stranger.pem()),
        _folder: folder,
    }
}

async fn server(tls: &TestAuthorities) -> PostgresServer {
    let (certificate, key) = (tls.certificate.clone(), tls.key.clone());
    let settings = "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'";
    let start = move || PostgresServer::start_with(false, settings, &[("server.pem", &certificate), ("server.key", &key)]);
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// The host by a name, because certificates of tests have names.
fn url(server: &PostgresServer) -> String {
    server.url("postgres").replace("127.0.0.1", "localhost")
}

async fn open(server: &PostgresServer, ssl_mode: SslMode, ca_file: Option<PathBuf>) -> Result<bool, String> {
    let options = PostgresOptions { ssl_mode, ca_file, ..PostgresOptions::at(url(server)) };
    let store = PostgresStore::open(options).await.map_err(|error| error.to_string())?;
    store.append(creation(&task(&uuid::Uuid::now_v7().to_string()))).await.map_err(|error| error.to_string())?;
    let sessions = crate::server::session(&server.url("postgres")).await;
    // Sessions of the store before may be on their way out.
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                     WHERE application_name = 'chancery node ' || (SELECT node FROM writers WHERE NOT closed)";
    Ok(sessions.query_one(encrypted, &[]).await.unwrap().get(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_accepts_the_certificates_that_it_says() {
    let tls = authorities("localhost");
    let server = server(&tls).await;
    let (signer, stranger) = (Some(tls.signer.clone()), Some(tls.stranger.clone()));
    assert_eq!(open(&server, SslMode::Disable, None).await, Ok(false));
    assert_eq!(open(&server, SslMode::Prefer, None).await, Ok(true));
    assert_eq!(open(&server, SslMode::Require, None).await, Ok(true));
    assert_eq!(open(&server, SslMode::VerifyCa, signer.clone()).await, Ok(true));
    assert_eq!(open(&server, SslMode::VerifyFull, signer).await, Ok(true));
    for mode in [SslMode::VerifyCa, SslMode::VerifyFull] {
        let refusal = open(&server, mode, stranger.clone()).await.unwrap_err();
        assert!(refusal.contains("certificate"), "{mode:?}: {refusal}");
    }
    let refusal = open(&server, SslMode::VerifyFull, None).await.unwrap_err();
    assert!(refusal.contains("certificate"), "no authority of the system signed it: {refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_for_another_name_is_refused_only_where_names_count() {
    let tls = authorities("database.example");
    let server = server(&tls).await;
    assert_eq!(open(&server, SslMode::VerifyCa, Some(tls.signer.clone())).await, Ok(true));
    let refusal = open(&server, SslMode::VerifyFull, Some(tls.signer.clone())).await.unwrap_err();
    assert!(refusal.contains("certificate"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let server = tokio::task::spawn_blocking(|| PostgresServer::start(false)).await.unwrap();
    assert_eq!(open(&server, SslMode::Prefer, None).await, Ok(false));
    let refusal = open(&server, SslMode::Require, None).await.unwrap_err();
    assert!(refusal.contains("TLS"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_comes_from_a_file_or_from_the_environment() {
    let by_password = "password_encryption = 'scram-sha-256'";
    let server = tokio::task::spawn_blocking(move || PostgresServer::start_with(false, by_password, &[])).await.unwrap();
    let admin = crate::server::session(&server.url("postgres")).await;
    admin.batch_execute("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'a secret'").await.unwrap();
    server.set_access("host all postgres 127.0.0.1/32 trust\nhost all ada 127.0.0.1/32 scram-sha-256\n");
    let url = server.url("postgres").replace("postgres@", "ada@");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "a secret\n").unwrap();
    let options = PostgresOptions { password_file: Some(file.clone()), ..PostgresOptions::at(&url) };
    PostgresStore::open(options.clone()).await.unwrap().append(creation(&task("t1"))).await.unwrap();
    std::fs::write(&file, "another\n").unwrap();
    let refusal = PostgresStore::open(options).await.unwrap_err().to_string();
    assert!(refusal.contains("password authentication failed") && !refusal.contains("another"), "{refusal}");
    let unset = PostgresOptions { password_env: Some("CHANCERY_TEST_UNSET".into()), ..PostgresOptions::at(&url) };
    let refusal = PostgresStore::open(unset).await.unwrap_err().to_string();
    assert!(refusal.contains("the environment variable CHANCERY_TEST_UNSET has no password"), "{refusal}");
}
