//! Notifications as axum handlers take them.

use axum::extract::{FromRef, FromRequest, Request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::delivery::Delivery;
use crate::receiver::Receiver;
use crate::refusal::Refusal;

impl<S> FromRequest<S> for Delivery
where
    Receiver: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let receiver = Receiver::from_ref(state);
        let (parts, body) = request.into_parts();
        let most = receiver.most_body_bytes();
        let body = Limited::new(body, most)
            .collect()
            .await
            .map_err(|fault| if fault.is::<LengthLimitError>() { Refusal::TooLarge(most) } else { Refusal::BrokenOff })?;
        receiver.receive(&parts.headers, body.to_bytes()).await
    }
}
