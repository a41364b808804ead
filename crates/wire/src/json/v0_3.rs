//! Version 0.3: `kind` tags, kebab-case states and a card of its own.

pub(crate) mod card;
mod security;
