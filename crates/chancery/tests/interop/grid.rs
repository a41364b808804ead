//! Every client before every agent as one table, and what is wrong in it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::backs::{BACKS, Back};
use crate::table::{Family, Row};

/// What the clients said of one agent.
pub(crate) struct Seen {
    pub(crate) back: &'static Back,
    pub(crate) rows: Vec<Row>,
}

impl Seen {
    /// Rows that failed although they can work, that work although they are said not to, that are missing, or nobody asked for.
    pub(crate) fn faults(&self, families: &[&Family]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut rows: BTreeMap<String, &Row> = self.rows.iter().map(|row| (row.key(), row)).collect();
        for owed in families.iter().flat_map(|family| family.good_rows()) {
            let fault = match (rows.remove(&owed.key()), self.back.cannot(&owed.protocol, &owed.operation)) {
                (None, _) => "no such row was printed",
                (Some(row), None) if !row.ok => &row.detail,
                (Some(row), Some(_)) if row.ok => "works, and is on the list of what cannot",
                _ => continue,
            };
            faults.push(format!("{} before {}: {fault}", owed.key(), self.back.name()));
        }
        faults.extend(rows.into_keys().map(|key| format!("{key} before {}: not in the expected list", self.back.name())));
        faults
    }

    fn cell(&self, family: &Family, binding: &str) -> String {
        let here = |row: &&Row| {
            (row.sdk.as_str(), row.sdk_version.as_str(), row.protocol.as_str(), row.binding.as_str())
                == (family.sdk, family.sdk_version, family.protocol, binding)
        };
        let passed = self.rows.iter().filter(here).filter(|row| row.ok).count();
        let impossible = family.operations.iter().any(|operation| self.back.cannot(family.protocol, operation).is_some());
        format!("{passed}/{}{}", family.operations.len(), if impossible { "*" } else { "" })
    }
}

/// Clients down, agents across.
pub(crate) fn render(families: &[&Family], all: &[Seen]) -> String {
    let column = |text: &str| format!(" {text:>9}");
    let head = |name: &str, of: fn(&Back) -> &'static str| {
        let across: String = all.iter().map(|seen| column(of(seen.back))).collect();
        format!("{name:>40}{across}\n")
    };
    let mut out = String::from("\n");
    out += &head("agent", |back| back.sdk);
    out += &head("version", |back| back.sdk_version);
    out += &head("protocol", |back| back.protocol);
    out += &head("called over", |back| back.binding);
    out += &head("streams", Back::streams);
    for family in families {
        for binding in family.bindings {
            let Family { sdk, sdk_version, protocol, .. } = family;
            let _ = write!(out, "{sdk:<11} {sdk_version:<7} {protocol:<8} {binding:<9}  ");
            out.extend(all.iter().map(|seen| column(&seen.cell(family, binding))));
            out.push('\n');
        }
    }
    for back in BACKS {
        for cannot in back.cannot {
            let (operations, protocols) = (cannot.operations.join(" and "), cannot.protocols.join(" and "));
            let _ = writeln!(out, "* {}: no {operations} for callers of {protocols}: {}", back.name(), cannot.reason);
        }
    }
    let rows = || all.iter().flat_map(|seen| &seen.rows);
    let _ = writeln!(out, "{} of {} rows ok", rows().filter(|row| row.ok).count(), rows().count());
    out
}
