//! `chancery push verify`: a notification that was kept, looked at as its receiver would.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use chancery::protocol::Timestamp;
use chancery_receiver::{MOST_BODY_BYTES, MachineClock, ReceiverClock};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::{Failure, Shared, show};
use super::agreed::AgreedSecretsCommand;
use super::shown;

const EXAMPLES: &str = "\
Examples:
  chancery push verify --headers head.txt --secret-env SECRET body.json
  chancery push verify --headers head.txt --keys https://node.example.org --url https://me.example.org/hook body.json
  chancery push verify -H 'webhook-id: msg_…' -H 'webhook-timestamp: 1800000000' -H 'webhook-signature: v1,…' \\
      --secret-file hook.secret --at 2027-01-15T08:00:00Z body.json

A header file has one `name: value` a line. The body must be the very bytes that were received. A signature is good for five
minutes: --at sets the time of arrival. Exit code 1 if the notification is rejected.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyWebhookCommand {
    /// The file with the body, as it was received; `-` reads it from the standard input
    #[arg(value_name = "FILE")]
    body: PathBuf,
    /// A header of the notification
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The file with the headers of the notification
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
    /// The time when it arrived [default: now]
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    at: Option<Timestamp>,
    #[command(flatten)]
    agreed: AgreedSecretsCommand,
}

/// A moment that does not pass.
#[derive(Debug)]
struct Then(Timestamp);

impl ReceiverClock for Then {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl VerifyWebhookCommand {
    pub(super) async fn run(self, shared: &Shared) -> Result<(), Failure> {
        if !self.agreed.is_something() {
            return Err(Failure::Usage("say what to verify with: a secret, keys or a token (see --help)".to_owned()));
        }
        let (headers, body) = (self.head()?, read(&self.body)?);
        let now = self.at.unwrap_or_else(|| MachineClock.now());
        let receiver = self.agreed.builder().await?.clock(Arc::new(Then(now))).build();
        let receiver = receiver.map_err(|fault| Failure::Usage(fault.to_string()))?;
        match receiver.receive(&headers, body.clone()).await {
            Ok(delivery) => {
                if shared.json {
                    show::print_json(&shown::as_json(&delivery, &body).to_string());
                } else {
                    show::print_line(&shown::as_line(&delivery));
                }
                drop(delivery);
                Ok(())
            }
            Err(refusal) => {
                if shared.json {
                    show::print_json(&shown::refusal_as_json(&refusal).to_string());
                }
                Err(Failure::Refused(format!("{}: {}", refusal.code(), show::safe(&refusal.to_string()))))
            }
        }
    }

    fn head(&self) -> Result<HeaderMap, Failure> {
        let mut lines = self.header.clone();
        if let Some(file) = &self.headers {
            let text = std::fs::read_to_string(file).map_err(|fault| unreadable(file, &fault))?;
            lines.extend(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
        }
        let mut headers = HeaderMap::new();
        for line in lines {
            let odd = || Failure::Usage(format!("not a header: {}", show::safe(&line)));
            let (name, value) = line.split_once(':').ok_or_else(odd)?;
            let name: HeaderName = name.trim().parse().map_err(|_| odd())?;
            headers.append(name, HeaderValue::from_str(value.trim()).map_err(|_| odd())?);
        }
        Ok(headers)
    }
}

/// One byte more than a receiver reads, so that it can say that there were too many.
fn read(file: &Path) -> Result<Bytes, Failure> {
    let mut body = Vec::new();
    let most = MOST_BODY_BYTES as u64 + 1;
    let read = if file.as_os_str() == "-" {
        std::io::stdin().take(most).read_to_end(&mut body)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut body))
    };
    read.map_err(|fault| unreadable(file, &fault))?;
    Ok(body.into())
}

fn unreadable(file: &Path, fault: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {fault}", file.display()))
}
