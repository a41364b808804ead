//! Logs, on stderr: for people on a terminal, as JSON for everything else.

use std::fmt;
use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

use super::show::one_line;

/// Starts logging. `RUST_LOG` says how much; without it, what an operator should know.
pub(super) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A log that cannot be written, as on a full disk, is nothing to complain of on stderr: that would be a panic in whatever was at work.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    let started = if std::io::stderr().is_terminal() {
        log.fmt_fields(OneLineFields).try_init()
    } else {
        log.json().flatten_event(true).with_ansi(false).try_init()
    };
    if let Err(error) = started {
        super::complain(&format!("logs cannot be written: {error}"));
    }
}

/// Escapes messages and fields, so that nothing in them ends the line or controls the terminal. Callers and
/// agents write many of these values.
struct OneLineFields;

impl<'writer> FormatFields<'writer> for OneLineFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&one_line(&text))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_that_is_logged_ends_its_line_or_steers_the_terminal() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::fmt().with_ansi(true).fmt_fields(OneLineFields).with_writer(move || writer.clone());
        let hostile = "a\u{1b}]0;title\u{7}\r\n2026-01-01T00:00:00Z INFO forged\u{9b}2J\u{202e}b";
        tracing::subscriber::with_default(log.finish(), || {
            let span = tracing::info_span!("task", id = %hostile);
            let error = std::io::Error::other(hostile);
            span.in_scope(
                || tracing::warn!(shown = %hostile, quoted = hostile, error = &error as &dyn std::error::Error, "{hostile}"),
            );
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("forged").count(), 5, "all of it is there: {text:?}");
        assert_eq!(text.lines().count(), 1, "{text:?}");
        for steering in ["\u{1b}]", "\u{7}", "\r", "\u{9b}", "\u{202e}"] {
            assert!(!text.contains(steering), "{steering:?} is in {text:?}");
        }
    }
}
