//! Notifications as axum handlers take them.

use axum::extract::{FromRef, FromRequest, Request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::delivery::ReceivedDelivery;
use crate::receiver::Receiver;
use crate::refusal::NotificationRefusal;

impl<S> FromRequest<S> for ReceivedDelivery
where
    Receiver: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = NotificationRefusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, NotificationRefusal> {
        let receiver = Receiver::from_ref(state);
        let (parts, body) = request.into_parts();
        let most = receiver.most_body_bytes();
        let body = Limited::new(body, most).collect().await.map_err(|fault| {
            if fault.is::<LengthLimitError>() { NotificationRefusal::TooLarge(most) } else { NotificationRefusal::BrokenOff }
        })?;
        receiver.receive(&parts.headers, body.to_bytes()).await
    }
}
