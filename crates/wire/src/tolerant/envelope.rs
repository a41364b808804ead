//! Opens the JSON-RPC envelope of an answer, also where it is missing or odd.

use chancery_protocol::raw_json::pick;

use super::unreadable::MemberFault;
use super::{Leniencies, Leniency, Unreadable, is_json, stripped};

/// An answer, with its result or its error still as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope<'a> {
    pub outcome: Result<&'a str, &'a str>,
    pub leniencies: Leniencies,
}

/// Opens the envelope of a text that was scanned. `id` is the JSON text of the id that the call had.
pub fn envelope<'a>(text: &'a str, id: &str) -> Result<Envelope<'a>, Unreadable> {
    let mut leniencies = Leniencies::new();
    let text = stripped(text, &mut leniencies);
    is_json(text)?;
    if !text.starts_with('{') {
        return Err(MemberFault::new("", "must be an object").within(text));
    }
    let [jsonrpc, answered, result, params, error] = pick(text, ["jsonrpc", "id", "result", "params", "error"]);
    let has = |name: &str| chancery_protocol::raw_json::member(text, name).is_some();
    if has("error") && error.is_none() {
        leniencies.insert(Leniency::NullError);
    }
    let outcome = match (result, error) {
        (Some(result), None) => Ok(result),
        // An error counts, whatever else is there: nothing of the call is known to be done.
        (_, Some(error)) if jsonrpc.is_some() || result.is_some() || error.starts_with('{') => Err(error),
        _ if has("result") => Ok("null"),
        _ => {
            leniencies.insert(Leniency::NoEnvelope);
            let notified = params.filter(|params| has("method") && params.starts_with('{'));
            return Ok(Envelope { outcome: Ok(notified.unwrap_or(text)), leniencies });
        }
    };
    if jsonrpc != Some("\"2.0\"") {
        leniencies.insert(Leniency::NoEnvelope);
    }
    // Each call has a connection of its own, so that an answer cannot be that of another one.
    if answered != Some(id) && outcome.is_ok() {
        leniencies.insert(Leniency::OtherCallId);
    }
    Ok(Envelope { outcome, leniencies })
}
