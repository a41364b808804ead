//! The SWP door: a listener of its own, the policy of its connections, and the profiles that are served there.

mod connection;
mod kind;
mod said;
mod scope;
mod task;
mod traces;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_wire::swp::codec;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::Connection;
use self::scope::Scopes;
use crate::entrance::Entrance;
use crate::listen::{Connections, accept};
use crate::origin::Origin;
use crate::stall::StallGuard;
use crate::tls::{self, Tls};

/// Whether the timestamps of envelopes are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamping {
    #[default]
    Ignored,
    /// Those that are there.
    Checked,
    /// There has to be one.
    Required,
}

/// Part of the `[swp]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwpRules {
    /// How long a connection without an open task may say nothing, and how long a frame may take to arrive.
    pub idle_ms: u64,
    pub timestamps: Timestamping,
}

impl Default for SwpRules {
    fn default() -> Self {
        Self { idle_ms: 60_000, timestamps: Timestamping::Ignored }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwpSettings {
    pub rules: SwpRules,
    pub limits: codec::Limits,
}

impl SwpSettings {
    fn idle(&self) -> Duration {
        Duration::from_millis(self.rules.idle_ms)
    }

    fn timestamps(&self, now: Timestamp) -> codec::Timestamps {
        let checked = |allow_zero| codec::Timestamps::Checked { now_ms: millis(now), allow_zero };
        match self.rules.timestamps {
            Timestamping::Ignored => codec::Timestamps::Ignored,
            Timestamping::Checked => checked(true),
            Timestamping::Required => checked(false),
        }
    }
}

fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.micros() / 1_000).unwrap_or(0)
}

/// Serves until `stop` fires and the connections have finished, or have had their time. Without TLS anybody on the way can read
/// along, so whoever calls this sees to it that nobody is.
pub async fn serve_swp(listener: TcpListener, tls: Option<Tls>, entrance: Entrance, stop: CancellationToken) {
    let connections = Arc::new(Connections::default());
    let scopes = Arc::new(Scopes::default());
    let tracker = TaskTracker::new();
    while let Some((stream, address)) = accept(&listener, &stop).await {
        let doors = entrance.doors();
        let limits = &doors.settings().limits;
        let Some(place) = connections.enter(address, limits) else {
            tracing::debug!(%address, "too many connections; one was closed at once");
            continue;
        };
        let stream = StallGuard::new(stream, Duration::from_millis(limits.write_stall_ms));
        let (entrance, scopes, tls, stop) = (entrance.clone(), Arc::clone(&scopes), tls.clone(), stop.clone());
        tracker.spawn(async move {
            match tls {
                None => converse(stream, address.into(), entrance, scopes, stop).await,
                // Boxed, so that a connection without TLS has no room for one.
                Some(tls) => Box::pin(secured(stream, tls, address, entrance, scopes, stop)).await,
            }
            drop(place);
        });
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

/// A connection that begins with a TLS handshake.
async fn secured(
    stream: StallGuard<TcpStream>,
    tls: Tls,
    address: IpAddr,
    entrance: Entrance,
    scopes: Arc<Scopes>,
    stop: CancellationToken,
) {
    let patience = Duration::from_millis(entrance.doors().settings().limits.tls_handshake_ms);
    let accepted = tokio::select! {
        accepted = tls.accept(stream, patience) => accepted,
        () = stop.cancelled() => return,
    };
    match accepted {
        Ok(stream) => {
            let certificate = tls::shown(&stream).map(|certificate| Arc::from(certificate.as_ref()));
            converse(stream, Origin { address: Some(address), certificate }, entrance, scopes, stop).await;
        }
        Err(fault) => {
            tracing::info!(%address, code = %codec::Code::SecurityPolicy, error = %fault, "an SWP channel could not be secured");
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: Origin,
    entrance: Entrance,
    scopes: Arc<Scopes>,
    stop: CancellationToken,
) {
    let address = origin.address;
    let doors = entrance.doors();
    // Before any frame is looked at it is known who sends them.
    let known = match doors.know_channel(&origin).await {
        Ok(known) => known,
        Err(error) => {
            tracing::info!(?address, code = %codec::Code::SecurityPolicy, %error, "an SWP channel is nobody's and was closed");
            return;
        }
    };
    let scope = scopes.enter(&known.caller, &doors.settings().swp.limits);
    Connection::new(entrance, origin, known, scope, stop).run(stream).await;
}
