//! Connections to the database, set up for what they are used for.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{StoreError, spawn_watched};
use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use deadpool_postgres::ClientWrapper;
use futures::{FutureExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode as DriverSslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::PostgresFault;
use super::options::{PostgresOptions, SslMode};
use super::{refusals, tls};

/// How long data may wait for its acknowledgement by the server's machine.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection is quiet before it is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// Makes connections, each with the password as it is then.
#[derive(Clone)]
pub(super) struct DatabaseConnector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    options: Arc<PostgresOptions>,
}

impl std::fmt::Debug for DatabaseConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseConnector").field("options", &self.options).finish_non_exhaustive()
    }
}

impl DatabaseConnector {
    pub(super) fn new(options: PostgresOptions) -> Result<Self, StoreError> {
        let options = options.with_url_taken_apart()?;
        let unusable = |error: Error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::new(format!("the database URL cannot be read: {cause}"))
        };
        let mut config: Config = options.url.parse().map_err(unusable)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(StoreError::new("the database URL names no host; write it as postgres://USER@HOST/DATABASE"));
        }
        config.ssl_mode(match options.ssl_mode {
            SslMode::Disable => DriverSslMode::Disable,
            SslMode::Prefer => DriverSslMode::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => DriverSslMode::Require,
        });
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(Duration::from_millis(options.connect_timeout_ms));
        config.tcp_user_timeout(TCP_USER_TIMEOUT).keepalives(true).keepalives_idle(KEEPALIVE_IDLE);
        config.application_name("chancery");
        config.options(settings(&options, config.get_options().unwrap_or_default()));
        let tls = tls::connector(options.ssl_mode, options.ca_file.as_deref())?;
        Ok(Self { config, tls, options: Arc::new(options) })
    }

    pub(super) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// Names the node in the server's list of sessions.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.config.application_name(name);
        self
    }

    pub(super) async fn open(&self) -> Result<ClientWrapper, PostgresFault> {
        self.open_with(None).await
    }

    /// A session whose notifications are handed on.
    pub(super) async fn open_listening(&self) -> Result<(ClientWrapper, mpsc::UnboundedReceiver<String>), PostgresFault> {
        let (notices, heard) = mpsc::unbounded_channel();
        Ok((self.open_with(Some(notices)).await?, heard))
    }

    async fn open_with(&self, notices: Option<mpsc::UnboundedSender<String>>) -> Result<ClientWrapper, PostgresFault> {
        let mut config = self.config.clone();
        if let Some(password) = self.password()? {
            config.password(password);
        }
        // The driver limits the time of each address, and not that of a server which accepts and says nothing.
        let hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let limit = Duration::from_millis(self.options.connect_timeout_ms).saturating_mul(hosts).saturating_mul(2);
        let connecting = async {
            match &self.tls {
                Some(tls) => connect_by(&config, tls.clone(), notices).await,
                None => connect_by(&config, NoTls, notices).await,
            }
        };
        let connected = tokio::time::timeout(limit, connecting).await;
        let (client, connection) =
            connected.map_err(|_| refusals::silent())?.map_err(|error| refusals::of_connection(&error, &self.config))?;
        Ok(ClientWrapper::new(client, connection))
    }

    fn password(&self) -> Result<Option<String>, PostgresFault> {
        let PostgresOptions { password_env, password_file, .. } = &*self.options;
        if let Some(name) = password_env {
            let password = std::env::var(name);
            return password
                .map(Some)
                .map_err(|_| PostgresFault::away(format!("the environment variable {name} has no password")));
        }
        let Some(file) = password_file else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .map_err(|error| PostgresFault::away(format!("the password file {} cannot be read: {error}", file.display())))?;
        Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
    }
}

async fn connect_by<T>(
    config: &Config,
    tls: T,
    notices: Option<mpsc::UnboundedSender<String>>,
) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    // Each use of a broken connection gets the error too, so it is not reported here.
    let connection = match notices {
        Some(notices) => spawn_watched("store-listener-connection", hand_on(connection, notices)),
        None => spawn_watched("store-connection", connection.map(drop)),
    };
    Ok((client, connection))
}

/// Works for a connection until it ends, and hands on the notifications that come over it.
async fn hand_on<S, T>(mut connection: Connection<S, T>, notices: mpsc::UnboundedSender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut messages = futures::stream::poll_fn(|context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notice) = message
            && notices.send(notice.payload().to_owned()).is_err()
        {
            return;
        }
    }
}

/// Settings of each session, in the form of the startup message.
fn settings(options: &PostgresOptions, given: &str) -> String {
    let PostgresOptions { statement_timeout_ms, lock_timeout_ms, idle_in_transaction_timeout_ms, .. } = options;
    format!(
        "{given} -c synchronous_commit=on -c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms} \
         -c idle_in_transaction_session_timeout={idle_in_transaction_timeout_ms}"
    )
}

/// A pool of readers makes and checks its connections by this.
impl Manager for DatabaseConnector {
    type Type = ClientWrapper;
    type Error = PostgresFault;

    async fn create(&self) -> Result<ClientWrapper, PostgresFault> {
        self.open().await
    }

    async fn recycle(&self, session: &mut ClientWrapper, _: &Metrics) -> RecycleResult<PostgresFault> {
        if session.is_closed() { Err(RecycleError::message("the connection is closed")) } else { Ok(()) }
    }
}
