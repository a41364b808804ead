//! The outcome of an HTTP exchange in the terms of the rules.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use chancery_core::notify::{AttemptAnswer, DeliveryOutcome, FailClass, RetryAfter};
use chancery_protocol::Timestamp;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use crate::guard::GuardError;

/// A receiver's own receipt: a JWS, as text. Longer ones are not kept.
const RECEIPT_BYTES: usize = 4_096;
const RECEIPT: &str = "a2a-receipt";

pub(super) fn answered(status: StatusCode, headers: &HeaderMap) -> DeliveryOutcome {
    let receipt = headers.get(RECEIPT).and_then(|value| value.to_str().ok()).filter(|text| text.len() <= RECEIPT_BYTES);
    DeliveryOutcome {
        answer: AttemptAnswer::Answered { status: status.as_u16(), retry_after: retry_after(headers) },
        error: None,
        receipt: receipt.map(Arc::from),
    }
}

pub(super) fn failed(fault: &GuardError) -> DeliveryOutcome {
    let answer = match fault {
        GuardError::Blocked(_) => AttemptAnswer::Blocked,
        GuardError::Unresolved { .. } => AttemptAnswer::Failed(FailClass::Dns),
        GuardError::Unreachable(_) | GuardError::Proxy(_) => AttemptAnswer::Failed(FailClass::Connect),
        GuardError::Tls(_) => AttemptAnswer::Failed(FailClass::Tls),
        GuardError::TimedOut(_) => AttemptAnswer::Failed(FailClass::Timeout),
        GuardError::BrokeOff(_) => AttemptAnswer::Failed(FailClass::Reset),
        GuardError::Protocol(_)
        | GuardError::Redirect(_)
        | GuardError::TooBig(_)
        | GuardError::Encoded(_)
        | GuardError::Request(_) => AttemptAnswer::Failed(FailClass::Protocol),
    };
    DeliveryOutcome { answer, error: Some(fault.to_string().into()), receipt: None }
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(RetryAfter::In(Duration::from_secs(seconds)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(RetryAfter::At(Timestamp::from_micros(i64::try_from(date.as_micros()).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<RetryAfter> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().unwrap());
        retry_after(&headers)
    }

    #[test]
    fn a_receiver_says_when_to_come_back_in_seconds_or_by_date() {
        assert_eq!(asked("120"), Some(RetryAfter::In(Duration::from_secs(120))));
        let date = Timestamp::parse("1994-11-06T08:49:37Z").unwrap();
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(RetryAfter::At(date)));
        for nonsense in ["", "soon", "-1", "1.5"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_receipt_is_kept_as_long_as_it_is_short() {
        let receipt = |text: String| {
            let mut headers = HeaderMap::new();
            headers.insert(RECEIPT, text.parse().unwrap());
            answered(StatusCode::OK, &headers).receipt
        };
        assert_eq!(receipt("a.b.c".into()).as_deref(), Some("a.b.c"));
        assert!(receipt("x".repeat(RECEIPT_BYTES)).is_some());
        assert!(receipt("x".repeat(RECEIPT_BYTES + 1)).is_none());
    }
}
