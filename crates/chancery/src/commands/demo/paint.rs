//! Colours, where there is a terminal that shows them.

use std::fmt::Display;
use std::io::IsTerminal as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Loud,
    Quiet,
    Good,
    Busy,
    Bad,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

impl Paint {
    /// Colours for a terminal, unless the environment turns them off (<https://no-color.org>).
    pub(super) fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(is_live() && !unwanted)
    }

    #[cfg(test)]
    pub(super) const PLAIN: Self = Self(false);

    pub(super) fn tone(self, tone: Tone, text: impl Display) -> String {
        let code = match tone {
            Tone::Loud => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Bad => "1;31",
        };
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }
}

/// Whether stdout is a terminal on which lines can be drawn over.
pub(super) fn is_live() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
