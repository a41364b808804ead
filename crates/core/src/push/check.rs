//! Whether what a caller wants to register makes sense. Faults name the field.

use chancery_protocol::{Error, PushConfig};

use super::limits::PushLimits;
use super::vault::{PushTarget, PushTargets};

/// `before` is what leads to the configuration's members in the request.
pub(super) fn config(
    config: &PushConfig,
    before: &str,
    limits: &PushLimits,
    targets: &dyn PushTargets,
) -> Result<PushTarget, Error> {
    let wrong = |name: &str, why: String| Error::invalid_field(format!("{before}{name}"), why);
    if config.url.is_empty() {
        return Err(wrong("url", "is required".to_owned()));
    }
    let text = |name: &'static str, text: Option<&str>, limit: &str, most: usize| match text {
        Some(text) => header_text(text, limit, most).map_err(|why| wrong(name, why)),
        None => Ok(()),
    };
    short(&config.url, "push.url_bytes", limits.url_bytes).map_err(|why| wrong("url", why))?;
    text("token", config.token.as_deref(), "push.token_bytes", limits.token_bytes)?;
    if let Some(authentication) = &config.authentication {
        if !is_token(&authentication.scheme) || authentication.scheme.len() > SCHEME_BYTES {
            return Err(wrong("authentication.scheme", "is not the name of a scheme".to_owned()));
        }
        let credentials = authentication.credentials.as_deref();
        text("authentication.credentials", credentials, "push.credentials_bytes", limits.credentials_bytes)?;
        targets.judge_scheme(&authentication.scheme, credentials).map_err(|why| wrong("authentication.credentials", why))?;
    }
    targets.judge(&config.url).map_err(|why| wrong("url", why))
}

/// The longest registered one has 21.
const SCHEME_BYTES: usize = 64;

fn short(text: &str, limit: &str, most: usize) -> Result<(), String> {
    if text.len() > most {
        return Err(format!("has {} bytes, more than {limit} = {most}", text.len()));
    }
    Ok(())
}

/// It becomes the value of a header, so it must not be able to end the line, nor be another after the reader has trimmed it.
fn header_text(text: &str, limit: &str, most: usize) -> Result<(), String> {
    short(text, limit, most)?;
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.starts_with(' ') && !text.ends_with(' ');
    if !visible {
        return Err("has characters that cannot be sent in a header".to_owned());
    }
    Ok(())
}

/// A `token` of RFC 9110.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_end_a_header_line_is_refused() {
        for text in ["a\r\nb", "a\nb", "a\0b", "\u{7f}", "ü", " a", "a ", "a\tb"] {
            assert!(header_text(text, "push.token_bytes", 99).is_err(), "{text:?}");
        }
        for text in ["", "a", "user:pass word", "!~"] {
            assert!(header_text(text, "push.token_bytes", 99).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn a_scheme_is_a_token() {
        assert!(["Bearer", "HMAC-SHA256", "x"].into_iter().all(is_token));
        assert!(!["", "Be arer", "a:b", "a\r", "(a)", "ü"].into_iter().any(is_token));
    }
}
