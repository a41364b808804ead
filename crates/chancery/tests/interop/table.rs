//! What a driver prints, what it must print, and both as one table.

use std::fmt::Write;

use serde::Deserialize;

/// One check of one driver, as its line of JSON says it.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) sdk: String,
    pub(crate) sdk_version: String,
    pub(crate) protocol: String,
    pub(crate) binding: String,
    pub(crate) operation: String,
    pub(crate) ok: bool,
    pub(crate) detail: String,
}

impl Row {
    pub(crate) fn key(&self) -> String {
        key(&self.sdk, &self.sdk_version, &self.protocol, &self.binding, &self.operation)
    }
}

/// The rows one SDK owes for one protocol version.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) sdk: &'static str,
    pub(crate) sdk_version: &'static str,
    pub(crate) protocol: &'static str,
    pub(crate) bindings: &'static [&'static str],
    pub(crate) operations: &'static [&'static str],
}

impl Family {
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        self.good_rows().map(|row| row.key())
    }

    /// The rows of a run in which nothing went wrong.
    pub(crate) fn good_rows(&self) -> impl Iterator<Item = Row> {
        let row = move |binding: &str, operation: &str| Row {
            sdk: self.sdk.into(),
            sdk_version: self.sdk_version.into(),
            protocol: self.protocol.into(),
            binding: binding.into(),
            operation: operation.into(),
            ok: true,
            detail: String::new(),
        };
        self.bindings.iter().flat_map(move |binding| self.operations.iter().map(move |operation| row(binding, operation)))
    }

    fn key(&self, binding: &str, operation: &str) -> String {
        key(self.sdk, self.sdk_version, self.protocol, binding, operation)
    }
}

fn key(sdk: &str, sdk_version: &str, protocol: &str, binding: &str, operation: &str) -> String {
    format!("{sdk} {sdk_version}, A2A {protocol} over {binding}, {operation}")
}

/// SDK × protocol version × binding down, operations across.
pub(crate) fn render(families: &[Family], rows: &[Row]) -> String {
    let mut operations: Vec<&str> = Vec::new();
    for operation in families.iter().flat_map(|family| family.operations) {
        if !operations.contains(operation) {
            operations.push(operation);
        }
    }
    let mut out = format!("\n{:<12} {:<8} {:<9} {:<10}", "sdk", "version", "protocol", "binding");
    for operation in &operations {
        let _ = write!(out, " {operation}");
    }
    out.push('\n');
    for family in families {
        for binding in family.bindings {
            let _ = write!(out, "{:<12} {:<8} {:<9} {binding:<10}", family.sdk, family.sdk_version, family.protocol);
            for operation in &operations {
                let key = family.key(binding, operation);
                let mark = match rows.iter().find(|row| row.key() == key) {
                    Some(row) if row.ok => "ok",
                    Some(_) => "FAIL",
                    None if family.operations.contains(operation) => "MISSING",
                    None => "-",
                };
                let _ = write!(out, " {mark:^width$}", width = operation.len());
            }
            out.push('\n');
        }
    }
    let passed = rows.iter().filter(|row| row.ok).count();
    let expected: usize = families.iter().map(|family| family.rows().count()).sum();
    let _ = writeln!(out, "{passed} of {expected} rows ok");
    out
}
