//! `chancery push listen`: a receiver to try things out with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use chancery_identity::webhook::{JWKS_MAX_AGE, PushKeys};
use chancery_receiver::{NotificationRefusal, ReceivedDelivery, Receiver};
use http::{StatusCode, header};
use tokio::sync::Notify;

use super::super::{Failure, Shared, remark, show};
use super::agreed::AgreedSecretsCommand;
use super::shown;

const EXAMPLES: &str = "\
Examples:
  chancery push listen                                        print every request to http://127.0.0.1:7421, unverified
  chancery push listen --secret-env SECRET                    accept only notifications signed with that shared secret
  chancery push listen --keys http://127.0.0.1:7420 --url http://127.0.0.1:7421/hook
                                                              accept only notifications that this node signed for this URL
  chancery push listen --answer 503                           reject every delivery, to observe the retries
  chancery push listen --json --count 3                       print three notifications as JSON, one per line, and stop

The command answers repeated and late notifications like all others, and prints them as refused. It answers a GET with
`validationToken` with the token, because some senders verify the owner of a URL this way.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PushListenCommand {
    /// The address to listen on; every path is accepted
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7421")]
    listen: SocketAddr,
    /// Answer every request with this status and accept nothing
    #[arg(long, value_name = "STATUS", value_parser = status)]
    answer: Option<StatusCode>,
    /// Stop after so many notifications
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    #[command(flatten)]
    agreed: AgreedSecretsCommand,
}

fn status(text: &str) -> Result<StatusCode, String> {
    text.parse().map_err(|_| "a status is a number from 100 to 999".to_owned())
}

#[derive(Clone)]
struct Hook {
    receiver: Receiver,
    json: bool,
    answer: Option<StatusCode>,
    /// How many are still to come; none if it does not matter.
    left: Option<Arc<AtomicU64>>,
    done: Arc<Notify>,
}

impl PushListenCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        let mut builder = self.agreed.builder().await?;
        if !self.agreed.is_something() {
            remark("nothing is verified; see --help for what senders can be asked to show");
            builder = builder.everybody();
        }
        let receiver = builder.build().map_err(|fault| Failure::Usage(fault.to_string()))?;
        let listener = tokio::net::TcpListener::bind(self.listen).await;
        let listener = listener.map_err(|fault| Failure::Refused(format!("cannot listen on {}: {fault}", self.listen)))?;
        let address = listener.local_addr().map_err(|fault| Failure::Refused(fault.to_string()))?;
        remark(&format!("listening on http://{address}"));
        let hook = Hook {
            receiver,
            json: shared.json,
            answer: self.answer,
            left: self.count.map(|count| Arc::new(AtomicU64::new(count))),
            done: Arc::default(),
        };
        let (fresh, done) = (hook.receiver.clone(), hook.done.clone());
        let router = Router::new().fallback_service(get(challenge).post(receive).with_state(hook));
        let stopped = async move {
            tokio::select! {
                () = done.notified() => {}
                _ = tokio::signal::ctrl_c() => {}
                () = self.keep_keys_fresh(&fresh) => {}
            }
        };
        let served = axum::serve(listener, router).with_graceful_shutdown(stopped).await;
        served.map_err(|fault| Failure::Refused(fault.to_string()))
    }

    /// As long as keys may be kept, so that a sender can change them. Ends never.
    async fn keep_keys_fresh(&self, receiver: &Receiver) {
        if self.agreed.publisher().is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(JWKS_MAX_AGE).await;
            match self.agreed.public_keys().await {
                Ok(keys) => receiver.set_keys(PushKeys::new(keys)),
                Err(failure) => remark(&format!("the keys cannot be fetched again, the old ones stay: {failure}")),
            }
        }
    }
}

async fn receive(State(hook): State<Hook>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let most = hook.receiver.most_body_bytes();
    let Ok(body) = axum::body::to_bytes(body, most).await else { return hook.refuse(NotificationRefusal::TooLarge(most)) };
    match hook.receiver.receive(&parts.headers, body.clone()).await {
        Ok(delivery) => hook.take(delivery, &body).await,
        Err(refusal) => hook.refuse(refusal),
    }
}

async fn challenge(RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let token = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "validationToken");
    match token {
        Some((_, token)) => ([(header::CONTENT_TYPE, "text/plain")], token.into_owned()).into_response(),
        None => (StatusCode::METHOD_NOT_ALLOWED, "notifications are posted").into_response(),
    }
}

impl Hook {
    async fn take(&self, delivery: ReceivedDelivery, body: &[u8]) -> Response {
        if self.json {
            show::print_json(&shown::as_json(&delivery, body).to_string());
        } else {
            show::print_line(&shown::as_line(&delivery));
        }
        let response = match self.answer {
            Some(status) => status.into_response(),
            None => delivery.accept().await.into_response(),
        };
        if let Some(left) = &self.left
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            self.done.notify_one();
        }
        response
    }

    fn refuse(&self, refusal: NotificationRefusal) -> Response {
        if self.json {
            show::print_json(&shown::refusal_as_json(&refusal).to_string());
        } else {
            show::print_line(&format!("refused  {}: {}", refusal.code(), show::safe(&refusal.to_string())));
        }
        refusal.into_response()
    }
}
