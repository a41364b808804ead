//! The doors as they are now: they can be replaced while requests come in, and each request goes through one set of them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_identity::KeyRing;
use chancery_identity::cards::CardFault;
use http::Request;

use crate::doors::{Doors, DoorsInner};
use crate::origin::ConnectionOrigin;
use crate::response::DoorBody;

/// Where requests find the doors. Cheap to clone; all clones are the same one.
#[derive(Clone, Debug)]
pub struct DoorsHandle(Arc<ArcSwap<DoorsInner>>);

impl DoorsHandle {
    pub fn new(doors: Doors) -> Self {
        Self(Arc::new(ArcSwap::new(doors.0)))
    }

    /// The doors a request that comes now goes through.
    pub fn doors(&self) -> Doors {
        Doors(self.0.load_full())
    }

    /// Requests that come from now on go through these. Those inside are not disturbed.
    pub fn replace(&self, doors: Doors) {
        self.0.store(doors.0);
    }

    /// Renders cards and public keys again, with the current keys.
    pub fn publish(&self, keys: &KeyRing) -> Result<(), CardFault> {
        self.doors().publish(keys)
    }

    /// All doors as one axum router, to be mounted in a program of your own.
    pub fn router(&self) -> axum::Router {
        axum::Router::new().fallback_service(self.clone())
    }

    pub(crate) fn still_has(&self, doors: &Doors) -> bool {
        Arc::ptr_eq(&self.0.load(), &doors.0)
    }
}

/// So that the doors can be mounted in an axum router.
impl tower::Service<Request<axum::body::Body>> for DoorsHandle {
    type Response = http::Response<DoorBody>;
    type Error = Infallible;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<axum::body::Body>) -> Self::Future {
        let doors = self.doors();
        // A program that mounts the doors behind a listener of its own can say where a request came from.
        let origin = request.extensions().get::<ConnectionOrigin>().cloned().unwrap_or_else(|| {
            let peer = request.extensions().get::<axum::extract::ConnectInfo<SocketAddr>>();
            peer.map(|info| info.0.into()).unwrap_or_default()
        });
        Box::pin(async move { Ok(doors.handle(request, &origin).await) })
    }
}
