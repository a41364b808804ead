//! The `[store]` section: where tasks are kept. Without a URL they are in a SQLite file in the data folder.

use std::fmt;
use std::path::PathBuf;

use chancery_store::{PostgresOptions, SqliteOptions, SslMode, Synchronous};
use serde::Deserialize;

use super::Config;
use super::effect::declare_section;
use super::fault::ConfigFault;
use super::places::Places;

/// The `[store]` section.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How often SQLite waits for the disk.
    pub synchronous: Synchronous,
    /// The PostgreSQL database that keeps the tasks. Without it they are in the data folder.
    pub url: Option<StoreUrl>,
    /// How the connection to the database is encrypted.
    pub ssl_mode: SslMode,
    /// The authorities that may sign the certificate of the database.
    pub ca_file: Option<PathBuf>,
    /// The environment variable with the password. It is read at each new connection.
    pub password_env: Option<String>,
    /// The file with the password on its first line. It is read at each new connection.
    pub password_file: Option<PathBuf>,
    /// Connections that read while the writer writes.
    pub readers: usize,
    /// How long a call waits for a database that does not answer.
    pub patience_ms: u64,
    /// How long to wait for a new connection to one host.
    pub connect_timeout_ms: u64,
    /// The database ends a statement that takes longer.
    pub statement_timeout_ms: u64,
}

declare_section!(StoreConfig {
    synchronous: Restart,
    url: Restart,
    ssl_mode: Restart,
    ca_file: Restart,
    password_env: Restart,
    password_file: Restart,
    readers: Restart,
    patience_ms: Restart,
    connect_timeout_ms: Restart,
    statement_timeout_ms: Restart,
});

impl Default for StoreConfig {
    fn default() -> Self {
        let PostgresOptions {
            ssl_mode,
            ca_file,
            password_env,
            password_file,
            readers,
            patience_ms,
            connect_timeout_ms,
            statement_timeout_ms,
            ..
        } = PostgresOptions::default();
        Self {
            synchronous: Synchronous::default(),
            url: None,
            ssl_mode,
            ca_file,
            password_env,
            password_file,
            readers,
            patience_ms,
            connect_timeout_ms,
            statement_timeout_ms,
        }
    }
}

impl StoreConfig {
    pub(crate) fn sqlite(&self) -> SqliteOptions {
        SqliteOptions { synchronous: self.synchronous, ..SqliteOptions::default() }
    }

    /// The options of the database at the URL, if there is one.
    pub(crate) fn postgres(&self) -> Option<PostgresOptions> {
        let url = self.url.as_ref()?;
        Some(PostgresOptions {
            ssl_mode: self.ssl_mode,
            ca_file: self.ca_file.clone(),
            password_env: self.password_env.clone(),
            password_file: self.password_file.clone(),
            readers: self.readers,
            patience_ms: self.patience_ms,
            connect_timeout_ms: self.connect_timeout_ms,
            statement_timeout_ms: self.statement_timeout_ms,
            ..PostgresOptions::at(&url.0)
        })
    }

    /// The keys that only count with a URL and have another value than the default.
    fn of_database(&self) -> impl Iterator<Item = &'static str> {
        let default = Self::default();
        [
            ("store.ssl_mode", self.ssl_mode != default.ssl_mode),
            ("store.ca_file", self.ca_file != default.ca_file),
            ("store.password_env", self.password_env != default.password_env),
            ("store.password_file", self.password_file != default.password_file),
            ("store.readers", self.readers != default.readers),
            ("store.patience_ms", self.patience_ms != default.patience_ms),
            ("store.connect_timeout_ms", self.connect_timeout_ms != default.connect_timeout_ms),
            ("store.statement_timeout_ms", self.statement_timeout_ms != default.statement_timeout_ms),
        ]
        .into_iter()
        .filter_map(|(key, is_set)| is_set.then_some(key))
    }
}

/// What contradicts itself in the section, once the command line has its say. `in_memory` is `--memory`.
pub(crate) fn contradictions(config: &Config, places: &Places, in_memory: bool) -> Vec<ConfigFault> {
    let store = &config.store;
    let Some(options) = store.postgres() else {
        let alone = |key| places.fault(key, "needs a PostgreSQL database: set store.url, or remove this key");
        return store.of_database().map(alone).collect();
    };
    let mut faults = Vec::new();
    if in_memory {
        faults.push(
            places.fault("store.url", "--memory keeps tasks in memory, so nothing would use the database: remove one of them"),
        );
    }
    if store.synchronous != Synchronous::Full {
        let message = "is about SQLite, and store.url keeps tasks in PostgreSQL, which always waits for its disk: remove it";
        faults.push(places.fault("store.synchronous", message));
    }
    for (key, count) in [("store.readers", store.readers as u64), ("store.connect_timeout_ms", store.connect_timeout_ms)] {
        if count == 0 {
            faults.push(places.fault(key, "must be more than 0"));
        }
    }
    faults.extend(options.fault().map(|fault| places.fault("store.url", &fault)));
    faults
}

/// The URL of a PostgreSQL database. It may hold a password, so it is shown without its user and parameters.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StoreUrl(String);

impl TryFrom<String> for StoreUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // The text is not repeated: it may hold a password.
        let is_known = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        is_known.then_some(Self(text)).ok_or("must be the URL of a PostgreSQL database, as in \"postgres://USER@HOST/DATABASE\"")
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&PostgresOptions::at(&self.0).shown_url())
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(section: &str) -> (Config, Places) {
        Config::read(&format!("[store]\n{section}\n")).unwrap()
    }

    fn found(section: &str, in_memory: bool) -> Vec<String> {
        let (config, places) = read(section);
        contradictions(&config, &places, in_memory).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_keys_of_a_database_reach_its_options() {
        let (config, _) = read(
            "url = 'postgres://ada@one,two/db?target_session_attrs=read-write'\nssl_mode = 'verify-full'\nca_file = 'ca.pem'\n\
             password_env = 'DATABASE_PASSWORD'\nreaders = 9\npatience_ms = 1\nconnect_timeout_ms = 2\nstatement_timeout_ms = 3",
        );
        let options = config.store.postgres().unwrap();
        assert_eq!(options.fault(), None);
        assert_eq!(
            (options.ssl_mode, options.ca_file, options.password_env.as_deref()),
            (SslMode::VerifyFull, Some("ca.pem".into()), Some("DATABASE_PASSWORD"))
        );
        assert_eq!(
            (options.readers, options.patience_ms, options.connect_timeout_ms, options.statement_timeout_ms),
            (9, 1, 2, 3)
        );
        assert_eq!(Config::default().store.postgres(), None);
    }

    #[test]
    fn contradictions_are_faults_at_their_line() {
        let url = "url = 'postgres://ada@h/db'";
        for (section, in_memory, fault) in [
            (url.to_owned(), true, "2:7: store.url: --memory keeps tasks in memory"),
            (format!("{url}\nsynchronous = 'normal'"), false, "3:15: store.synchronous: is about SQLite"),
            ("patience_ms = 3".to_owned(), false, "2:15: store.patience_ms: needs a PostgreSQL database"),
            ("ssl_mode = 'verify-full'".to_owned(), false, "2:12: store.ssl_mode: needs a PostgreSQL database"),
            (format!("{url}\nreaders = 0"), false, "3:11: store.readers: must be more than 0"),
            (format!("{url}\nssl_mode = 'verify-ca'"), false, "2:7: store.url: sslmode verify-ca needs a CA file"),
            ("url = 'postgres://h/db?target_session_attrs=any'".to_owned(), false, "2:7: store.url: target_session_attrs=any"),
            (
                "url = 'postgres://ada:hidden@h/db'\npassword_env = 'P'".to_owned(),
                false,
                "2:7: store.url: the database URL holds",
            ),
        ] {
            let found = found(&section, in_memory);
            assert!(found.len() == 1 && found[0].starts_with(fault), "{section}: {found:#?}");
        }
        assert_eq!(found(&format!("{url}\nsynchronous = 'full'"), false), [""; 0], "what PostgreSQL does too");
        assert_eq!(found("", true), [""; 0]);
    }

    #[test]
    fn a_password_in_a_url_is_shown_nowhere() {
        let (config, _) = read("url = 'postgres://ada:hidden@h/db?password=hidden'");
        assert!(!format!("{config:?}").contains("hidden"), "{:?}", config.store);
        assert_eq!(config.store.url.unwrap().to_string(), "postgres://h/db");
        for wrong in [
            "[store]\nurl = 'mysql://ada:hidden@h/db'\n",
            "[store]\nurl = ['postgres://ada:hidden@h/db']\n",
            "[store]\nurl = postgres://ada:hidden@h/db\n",
            "[store]\nulr = 'postgres://ada:hidden@h/db'\n",
            "[store]\nurl = 'postgres://ada:hidden@h/db\n",
            "[store]\npassword = 'hidden'\n",
        ] {
            let faults = Config::parse(wrong).unwrap_err();
            assert!(!format!("{faults:?}").contains("hidden"), "{wrong}: {faults:?}");
        }
    }
}
