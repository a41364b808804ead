//! What can be chosen about the PostgreSQL store. A build without it reads the same options, to say what it lacks.

use std::fmt;
use std::path::PathBuf;

use chancery_core::StoreError;
use serde::{Deserialize, Serialize};

/// How the connection to the database is encrypted, and whose certificate is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted where the server offers it. Any certificate is accepted.
    #[default]
    Prefer,
    /// Always encrypted. Any certificate is accepted, so the store does not notice a proxy of a third party.
    Require,
    /// Always encrypted. The certificate has to be signed by an authority of the CA file; its name is not compared.
    VerifyCa,
    /// Always encrypted. The certificate has to be signed by a trusted authority and to name the host.
    VerifyFull,
}

impl SslMode {
    const NAMED: [(&'static str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode)
    }
}

/// Where the database is, and how the store uses it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresOptions {
    /// `postgres://USER@HOST:PORT/DATABASE?…`. Several hosts are separated by commas; the store uses the one that
    /// accepts writes. `sslmode` and `sslrootcert` in the URL replace `ssl_mode` and `ca_file`.
    pub url: String,
    /// How the connection is encrypted.
    pub ssl_mode: SslMode,
    /// A PEM file with the authorities that may sign the server's certificate. Without it, `verify-full` uses those of the
    /// system. `verify-ca` needs it.
    pub ca_file: Option<PathBuf>,
    /// The environment variable with the password. It is read at each new connection.
    pub password_env: Option<String>,
    /// A file with the password on its first line. It is read at each new connection, so a password can be changed.
    pub password_file: Option<PathBuf>,
    /// Connections that read while the writer writes.
    pub readers: usize,
    /// At most this many writes share one transaction. With half as many, 256 callers wrote about half as much.
    pub batch_limit: usize,
    /// At most this many writes wait for the writer; the next one waits for its place.
    pub queue_limit: usize,
    /// How long a call waits for a database that does not answer, before the caller gets an error that asks for a retry.
    pub patience_ms: u64,
    /// How long to wait for a new connection to one host.
    pub connect_timeout_ms: u64,
    /// After this time without an answer to a batch the connection counts as broken.
    pub answer_timeout_ms: u64,
    /// The server ends a statement that takes longer.
    pub statement_timeout_ms: u64,
    /// The server ends a statement that waits longer for a lock; it is then tried again.
    pub lock_timeout_ms: u64,
    /// The server ends a session that leaves a transaction open and idle for longer.
    pub idle_in_transaction_timeout_ms: u64,
    /// After this time without a renewal other nodes count this one as gone.
    pub lease_ms: u64,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            ssl_mode: SslMode::default(),
            ca_file: None,
            password_env: None,
            password_file: None,
            readers: 4,
            batch_limit: 256,
            queue_limit: 1024,
            patience_ms: 5_000,
            connect_timeout_ms: 2_000,
            answer_timeout_ms: 15_000,
            statement_timeout_ms: 10_000,
            lock_timeout_ms: 2_000,
            idle_in_transaction_timeout_ms: 2_000,
            lease_ms: 10_000,
        }
    }
}

/// Without the password that the URL may hold.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ssl_mode, ca_file, password_env, password_file, readers, batch_limit, queue_limit, patience_ms, .. } = self;
        f.debug_struct("PostgresOptions")
            .field("url", &self.shown_url())
            .field("ssl_mode", ssl_mode)
            .field("ca_file", ca_file)
            .field("password_env", password_env)
            .field("password_file", password_file)
            .field("readers", readers)
            .field("batch_limit", batch_limit)
            .field("queue_limit", queue_limit)
            .field("patience_ms", patience_ms)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// The database of this URL, everything else by default.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The URL as logs and messages show it: without user, password and parameters. Of a URL whose parts are
    /// ambiguous nothing is shown.
    pub fn shown_url(&self) -> String {
        const NOTHING: &str = "postgres://…";
        let Some((scheme, rest)) = self.url.split_once("://") else { return NOTHING.to_owned() };
        let (address, parameters) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
        // A password with an unescaped ? or # would end behind it.
        if parameters.contains('@') {
            return NOTHING.to_owned();
        }
        format!("{scheme}://{}", address.rsplit('@').next().unwrap_or_default())
    }

    /// Returns why no store can be opened with these options, as far as that shows without a connection.
    pub fn fault(&self) -> Option<String> {
        self.clone().with_url_taken_apart().err().map(|fault| fault.message)
    }

    /// Whether the URL holds a password.
    fn has_password(&self) -> bool {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let named = |pair: &str| pair.starts_with("password=");
        address.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || parameters.split('&').any(named)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn patience(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.patience_ms)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn lease(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.lease_ms.max(1))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn answer_timeout(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.answer_timeout_ms)
    }

    /// Takes `sslmode` and `sslrootcert` out of the URL, because the driver knows neither all modes nor the file.
    pub(crate) fn with_url_taken_apart(mut self) -> Result<Self, StoreError> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            return Err(StoreError::new(format!(
                "the database URL starts with neither postgres:// nor postgresql://: {}",
                self.shown_url()
            )));
        }
        if let Some((address, query)) = self.url.clone().split_once('?') {
            let mut others = Vec::new();
            for pair in query.split('&').filter(|pair| !pair.is_empty()) {
                match pair.split_once('=') {
                    Some(("sslmode", mode)) => self.ssl_mode = named_mode(mode)?,
                    Some(("sslrootcert", file)) => self.ca_file = Some(PathBuf::from(file)),
                    // A node writes, so it has no use for a server that does not accept writes.
                    Some(("target_session_attrs", "read-write")) => {}
                    Some(("target_session_attrs", other)) => {
                        return Err(StoreError::new(format!(
                            "target_session_attrs={other} in the database URL: only read-write is possible, because a node writes"
                        )));
                    }
                    _ => others.push(pair),
                }
            }
            let others = others.join("&");
            self.url = if others.is_empty() { address.to_owned() } else { format!("{address}?{others}") };
        }
        if self.ssl_mode == SslMode::VerifyCa && self.ca_file.is_none() {
            let needs = "sslmode verify-ca needs a CA file: set ca_file, or sslrootcert in the URL";
            return Err(StoreError::new(needs));
        }
        if self.password_env.is_some() && self.password_file.is_some() {
            return Err(StoreError::new("password_env and password_file are both set; remove one of them"));
        }
        if self.has_password() && (self.password_env.is_some() || self.password_file.is_some()) {
            let twice = "the database URL holds a password, beside password_env or password_file; remove it from the URL";
            return Err(StoreError::new(twice));
        }
        Ok(self)
    }
}

fn named_mode(name: &str) -> Result<SslMode, StoreError> {
    SslMode::from_name(name).ok_or_else(|| {
        let known = SslMode::NAMED.map(|(name, _)| name).join(", ");
        StoreError::new(format!("sslmode={name} in the database URL is not known; it can be one of {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_about_tls_are_taken_out_of_the_url() {
        let url = "postgres://ada:secret@one:5432,two/db?sslmode=verify-full&application_name=x&sslrootcert=/ca.pem";
        let options = PostgresOptions::at(url).with_url_taken_apart().unwrap();
        assert_eq!(options.url, "postgres://ada:secret@one:5432,two/db?application_name=x");
        assert_eq!((options.ssl_mode, options.ca_file), (SslMode::VerifyFull, Some("/ca.pem".into())));
    }

    #[test]
    fn unusable_urls_are_refused_in_words() {
        let refusal = |url: &str| PostgresOptions::at(url).with_url_taken_apart().unwrap_err().to_string();
        assert!(refusal("mysql://x").contains("neither postgres:// nor postgresql://"));
        assert!(refusal("postgres://h/db?sslmode=allow").contains("disable, prefer, require, verify-ca, verify-full"));
        assert!(refusal("postgres://h/db?sslmode=verify-ca").contains("needs a CA file"));
        assert!(refusal("postgres://h/db?target_session_attrs=any").contains("only read-write"));
    }

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("postgres://ada:secret@host/db?password=secret", "postgres://host/db"),
            ("postgres://ada:sec/ret@host/db", "postgres://host/db"),
            ("postgres://ada:a@secret@host/db", "postgres://host/db"),
            ("postgres://ada:secret?more@host/db", "postgres://…"),
            ("postgres://ada:secret#more@host/db", "postgres://…"),
            ("postgres://host/db?application_name=a@b&password=secret", "postgres://…"),
            ("ada:secret@host/db", "postgres://…"),
        ] {
            let options = PostgresOptions::at(url);
            assert_eq!(options.shown_url(), shown, "{url}");
            assert!(!format!("{options:?}").contains("ret"), "{options:?}");
        }
    }

    #[test]
    fn two_passwords_contradict_each_other() {
        let with_file = |url: &str| PostgresOptions { password_file: Some("p".into()), ..PostgresOptions::at(url) };
        assert_eq!(with_file("postgres://ada@h/db").fault(), None);
        for url in ["postgres://ada:secret@h/db", "postgres://ada@h/db?password=secret"] {
            let fault = with_file(url).fault().unwrap();
            assert!(fault.contains("holds a password") && !fault.contains("secret"), "{fault}");
        }
        let both = PostgresOptions { password_env: Some("P".into()), ..with_file("postgres://ada@h/db") };
        assert!(both.fault().unwrap().contains("both set"));
    }
}
