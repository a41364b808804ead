//! The text that a request signature signs (RFC 9421 §2): one line for each covered component, then the parameters.

use std::fmt::Write as _;

use http::header::{HeaderMap, HeaderName};

use super::structured::{Bare, InnerList, Item};

/// The parts of a request that a signature can cover beside its headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedTarget<'a> {
    pub method: &'a str,
    pub scheme: &'a str,
    /// Lower case, without the default port.
    pub authority: &'a str,
    pub path_and_query: &'a str,
}

impl<'a> SignedTarget<'a> {
    fn path(&self) -> &'a str {
        let path = self.path_and_query.split('?').next().unwrap_or_default();
        if path.is_empty() { "/" } else { path }
    }

    /// With its question mark, if there is one.
    pub(super) fn query(&self) -> Option<&'a str> {
        self.path_and_query.find('?').map(|at| &self.path_and_query[at..])
    }
}

/// The names of covered components. Component parameters (`;sf`, `;key`, `;bs`, `;tr`, `;req`) are not supported: each
/// makes a name cover less than it seems to, or another message.
pub(super) fn covered(list: &InnerList) -> Result<Vec<&str>, &'static str> {
    let mut names = Vec::with_capacity(list.items.len());
    for item in &list.items {
        let Item { value: Bare::Text(name), parameters } = item else { return Err("a component that is no string") };
        if !parameters.is_empty() {
            return Err("a component with parameters");
        }
        if names.contains(&name.as_str()) {
            return Err("a component that is covered twice");
        }
        names.push(name.as_str());
    }
    Ok(names)
}

pub(super) fn signature_base(list: &InnerList, target: SignedTarget<'_>, headers: &HeaderMap) -> Result<String, &'static str> {
    let mut base = String::with_capacity(512);
    for name in covered(list)? {
        // Writing into a string cannot fail.
        let _ = match name {
            "@method" => writeln!(base, "\"@method\": {}", target.method),
            "@authority" => writeln!(base, "\"@authority\": {}", target.authority),
            "@path" => writeln!(base, "\"@path\": {}", target.path()),
            "@query" => writeln!(base, "\"@query\": {}", target.query().unwrap_or("?")),
            "@target-uri" => {
                let query = target.query().unwrap_or_default();
                writeln!(base, "\"@target-uri\": {}://{}{}{query}", target.scheme, target.authority, target.path())
            }
            name => writeln!(base, "\"{name}\": {}", field(name, headers)?),
        };
    }
    let _ = write!(base, "\"@signature-params\": {list}");
    Ok(base)
}

/// All values of a header as one.
fn field(name: &str, headers: &HeaderMap) -> Result<String, &'static str> {
    if name.starts_with('@') {
        return Err("a derived component that is not supported");
    }
    // Names of components are in lower case; `from_lowercase` refuses all others.
    let header = HeaderName::from_lowercase(name.as_bytes()).map_err(|_| "a component that is no header's name")?;
    let mut joined: Option<String> = None;
    for value in headers.get_all(&header) {
        let value = value.to_str().map_err(|_| "a covered header that is not ASCII")?.trim();
        joined = Some(match joined {
            None => value.to_owned(),
            Some(before) => before + ", " + value,
        });
    }
    joined.ok_or("a covered header that is not there")
}
