//! The SWP door: a listener of its own, the policy of its connections, and the profiles that are served there.

mod connection;
mod follow_ups;
mod kind;
mod queue;
mod scope;
mod task;
mod traces;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_wire::swp::codec;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::connection::SwpConnection;
use self::scope::TasksByCaller;
use crate::accept::{AcceptedConnection, ConnectionProtocol, Socket, accept_connections};
use crate::doors_handle::DoorsHandle;
use crate::limits::InboundLimits;
use crate::swp_settings::{SwpSettings, Timestamping};
use crate::tls::Tls;

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

/// Serves until `stop` fires and the connections have finished, or have had their time. Without TLS an
/// attacker on the network can read along, so the caller makes sure that the network is safe.
pub async fn serve_swp(listener: TcpListener, tls: Option<Tls>, doors_handle: DoorsHandle, stop: CancellationToken) {
    accept_connections(listener, tls, doors_handle, stop, SwpConnections::default()).await;
}

/// SWP on a connection, with the tasks of each caller over all its connections.
#[derive(Clone, Default)]
struct SwpConnections {
    scopes: Arc<TasksByCaller>,
}

impl ConnectionProtocol for SwpConnections {
    const NAME: &'static str = "SWP connection";

    /// Does nothing: each connection reads the limits of SWP when it begins.
    fn adopt(&mut self, _: &InboundLimits) {}

    async fn serve(self, AcceptedConnection { stream, origin, doors_handle, stop }: AcceptedConnection<impl Socket>) {
        let address = origin.address;
        let doors = doors_handle.doors();
        // Before any frame is looked at it is known who sends them.
        let known = match doors.know_channel(&origin).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(?address, code = %codec::SwpCode::SecurityPolicy, %error, "closed an SWP connection that did not authenticate");
                return;
            }
        };
        let scope = self.scopes.enter(&known.caller, &doors.settings().swp.limits);
        SwpConnection::new(doors_handle, origin, known, scope, stop).run(stream).await;
    }

    fn log_failed_handshake(address: IpAddr, error: &io::Error) {
        let code = codec::SwpCode::SecurityPolicy;
        tracing::warn!(%address, %code, %error, "the TLS handshake of an SWP connection failed");
    }
}
