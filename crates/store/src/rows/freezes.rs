//! The scope of a freeze, as two words.

use std::sync::Arc;

use chancery_core::FreezeScope;

use super::UnreadableRow;

/// The kind of a scope, and its name; everything has none.
pub(crate) fn named(scope: &FreezeScope) -> (&'static str, &str) {
    match scope {
        FreezeScope::Tree(root) => ("tree", root),
        FreezeScope::Caller(caller) => ("caller", caller),
        FreezeScope::Agent(agent) => ("agent", agent),
        FreezeScope::Tenant(tenant) => ("tenant", tenant),
        FreezeScope::Everything => ("everything", ""),
    }
}

pub(crate) fn scope_named(kind: &str, name: Arc<str>) -> Result<FreezeScope, UnreadableRow> {
    Ok(match kind {
        "tree" => FreezeScope::Tree(name),
        "caller" => FreezeScope::Caller(name),
        "agent" => FreezeScope::Agent(name),
        "tenant" => FreezeScope::Tenant(name),
        "everything" => FreezeScope::Everything,
        other => return Err(UnreadableRow::new(format!("a freeze of {other}"))),
    })
}
