//! The JSON-RPC envelope: one object in, one object out.

use std::borrow::Cow;

use chancery_protocol::objects::Objects;
use chancery_protocol::raw_json::members;
use chancery_protocol::{Error, ErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A call, with its `params` still as text.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// The caller's id as JSON text; `null` for a notification, which is answered all the same.
    pub id: &'a str,
    pub method: Cow<'a, str>,
    pub params: &'a str,
}

/// A call that is no call, with the id to answer to if there was a usable one.
#[derive(Debug)]
pub struct NotACall<'a> {
    pub id: &'a str,
    pub error: Error,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Reads the envelope of a text that was scanned. An id of more than `id_bytes` bytes is refused: it is repeated in every answer and
/// in every event of a stream.
pub fn open(text: &str, id_bytes: usize) -> Result<Envelope<'_>, NotACall<'_>> {
    let refuse = |id, error| Err(NotACall { id, error });
    let invalid = |message: &'static str| Error::new(ErrorKind::InvalidRequest, message);
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = Members::deserialize(Objects(&mut reader)).and_then(|members| reader.end().map(|()| members));
    let members = match members {
        Ok(members) => members,
        Err(fault) if fault.is_data() => {
            let batch = text.trim_start().starts_with('[');
            return refuse(
                "null",
                invalid(if batch { "batch requests are not supported" } else { "a request is a JSON object" }),
            );
        }
        Err(fault) => return refuse("null", Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}"))),
    };
    let id = members.id.map_or("null", RawValue::get);
    if !(id == "null" || id.starts_with(['"', '-']) || id.starts_with(|first: char| first.is_ascii_digit())) {
        return refuse("null", invalid("id: must be a string, a number or null"));
    }
    let length = id_length(id);
    if length > id_bytes {
        let reason = format!("id: has {length} bytes, more than limits.json_rpc_id_bytes = {id_bytes}");
        return refuse("null", Error::new(ErrorKind::InvalidRequest, reason));
    }
    if members.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return refuse(id, invalid("jsonrpc: must be \"2.0\""));
    }
    let method = match members.method.map(|method| serde_json::from_str::<Cow<'_, str>>(method.get())) {
        Some(Ok(method)) => method,
        Some(Err(_)) => return refuse(id, invalid("method: must be a string")),
        None => return refuse(id, invalid("method: is required")),
    };
    let params = members.params.map_or("{}", RawValue::get);
    if !(params.starts_with('{') || params == "null") {
        return refuse(id, Error::invalid_field("params", "must be an object"));
    }
    Ok(Envelope { id, method, params: if params == "null" { "{}" } else { params } })
}

/// The bytes of an id: those of its text if it is a string, or else its digits with sign, point and exponent.
fn id_length(id: &str) -> usize {
    match id.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(written) if written.contains('\\') => serde_json::from_str::<Cow<'_, str>>(id).map_or(id.len(), |text| text.len()),
        Some(written) => written.len(),
        None => id.len(),
    }
}

/// The call in a text that was scanned, if it is written the way most are. Its params are one value only if they can be read as
/// one; if they cannot, the method is not known or the id is too long, the envelope has to be opened.
pub fn usual_call(text: &str, id_bytes: usize) -> Option<Envelope<'_>> {
    let (mut jsonrpc, mut id, mut method, mut params) = (None, None, None, None);
    let mut members = members(text);
    for (name, value) in &mut members {
        match &*name {
            "jsonrpc" => jsonrpc = Some(value),
            "id" => id = Some(value),
            "method" => method = Some(value),
            "params" => params = Some(value),
            _ => return None,
        }
    }
    let plain = |text: &&str| text.bytes().all(|byte| byte >= b' ' && byte != b'\\');
    let quoted = |text: &&str| text.len() > 1 && text.starts_with('"') && plain(text);
    let counted = |text: &&str| matches!(text.as_bytes(), [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit));
    let id = id.filter(|id| (quoted(id) || counted(id)) && id_length(id) <= id_bytes)?;
    let method = method.filter(quoted).map(|method| &method[1..method.len() - 1])?;
    let params = params.filter(|params| params.starts_with('{'))?;
    let whole = members.rest() == "}" && jsonrpc == Some("\"2.0\"");
    whole.then_some(Envelope { id, method: method.into(), params })
}

/// Writes a response around a result that `write` appends.
pub fn respond(id: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    respond_in(Vec::with_capacity(1024), id, write)
}

/// The same into a buffer that has room for it.
pub fn respond_in(mut out: Vec<u8>, id: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    begin(&mut out, id);
    write(&mut out);
    end(&mut out);
    out
}

/// Writes what stands before a result.
pub fn begin(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
}

/// Writes what stands after a result.
pub fn end(out: &mut Vec<u8>) {
    out.push(b'}');
}

/// A response, with its result or its error still as text.
#[derive(Debug)]
pub struct Response<'a> {
    /// The id of the call it answers, as JSON text.
    pub id: &'a str,
    pub outcome: Result<&'a str, &'a str>,
}

#[derive(Deserialize)]
struct ResponseMembers<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads the envelope of a peer's response, of a text that was scanned.
pub fn open_response(text: &str) -> Result<Response<'_>, Error> {
    let not_understood = |what: String| Error::new(ErrorKind::InvalidAgentResponse, what);
    let members: ResponseMembers<'_> =
        serde_json::from_str(text).map_err(|fault| not_understood(format!("no JSON-RPC response: {fault}")))?;
    if members.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(not_understood("jsonrpc: must be \"2.0\"".to_owned()));
    }
    let outcome = match (members.result, members.error) {
        (Some(_), Some(_)) => return Err(not_understood("a response with a result and an error".to_owned())),
        (None, Some(error)) => Err(error.get()),
        // A result of `null` is a result.
        (result, None) => Ok(result.map_or("null", RawValue::get)),
    };
    Ok(Response { id: members.id.map_or("null", RawValue::get), outcome })
}

/// The result in a response that is written the usual way: version, id and result, nothing else and no spaces between them.
/// It is the result only if it can be read as one value; if it cannot, the response has to be opened.
pub fn usual_result<'a>(text: &'a str, id: &str) -> Option<&'a str> {
    let rest = match text.strip_prefix(r#"{"jsonrpc":"2.0","id":"#) {
        Some(rest) => rest.strip_prefix(id)?.strip_prefix(r#","result":"#)?,
        None => text.strip_prefix(r#"{"id":"#)?.strip_prefix(id)?.strip_prefix(r#","jsonrpc":"2.0","result":"#)?,
    };
    rest.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_written_the_usual_way_is_the_one_that_opening_the_response_shows() {
        for usual in [r#"{"jsonrpc":"2.0","id":"1","result":{"x":1}}"#, r#"{"id":"1","jsonrpc":"2.0","result":{"x":1}}"#] {
            assert_eq!(usual_result(usual, "\"1\""), Some(r#"{"x":1}"#), "{usual}");
            assert_eq!(open_response(usual).unwrap().outcome, Ok(r#"{"x":1}"#));
        }
        for other in [
            r#"{"jsonrpc":"2.0","id":"2","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"1","error":{}}"#,
            r#"{"jsonrpc":"2.0","id":"1","result":{}} "#,
        ] {
            assert_eq!(usual_result(other, "\"1\""), None, "{other}");
        }
        let more = usual_result(r#"{"jsonrpc":"2.0","id":"1","result":{},"error":null}"#, "\"1\"").unwrap();
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(more).is_err(), "{more} cannot be read as one value");
    }

    #[test]
    fn a_call_is_opened_without_reading_its_params() {
        let call = open(r#" {"jsonrpc":"2.0","method":"Get\u0054ask","id":"a\"b","params":{"id":[1,{}]}} "#, 256).unwrap();
        assert_eq!((call.id, &*call.method, call.params), (r#""a\"b""#, "GetTask", r#"{"id":[1,{}]}"#));
        assert_eq!(open(r#"{"jsonrpc":"2.0","method":"m","id":1}"#, 256).unwrap().params, "{}");
    }

    #[test]
    fn a_call_written_the_usual_way_is_the_one_that_opening_shows() {
        for usual in [
            r#"{"jsonrpc":"2.0","id":"a-1","method":"m","params":{"x":["}",1]}}"#,
            r#"{"id": 12, "jsonrpc": "2.0", "method": "m", "params": {}}"#,
            r#"{"method":"m","params":{"a":"\"}"},"id":"€","jsonrpc":"2.0"}"#,
        ] {
            let (usual, opened) = (usual_call(usual, 256).unwrap(), open(usual, 256).unwrap());
            assert_eq!((usual.id, usual.method, usual.params), (opened.id, opened.method, opened.params));
        }
        for other in [
            "",
            "[]",
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":01,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":-1,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"a\u0000","method":"m","params":{}}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\n\",\"method\":\"m\",\"params\":{}}",
            r#"{"jsonrpc":"2.0","id":1,"method":m,"params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"m","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"x":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m";"params":{}}"#,
        ] {
            assert!(usual_call(other, 256).is_none(), "{other}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused_in_the_right_words() {
        let cases = [
            ("[]", ErrorKind::InvalidRequest, "null", "batch"),
            ("7", ErrorKind::InvalidRequest, "null", "object"),
            ("{", ErrorKind::Parse, "null", "the body is not JSON"),
            ("", ErrorKind::Parse, "null", "the body is not JSON"),
            ("{} x", ErrorKind::Parse, "null", ""),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, ErrorKind::InvalidRequest, "null", "id"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, ErrorKind::InvalidRequest, "null", "id"),
            (r#"{"jsonrpc":"1.0","id":5,"method":"m"}"#, ErrorKind::InvalidRequest, "5", "jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":5}"#, ErrorKind::InvalidRequest, "5", "method"),
            (r#"{"jsonrpc":"2.0","id":5,"method":3}"#, ErrorKind::InvalidRequest, "5", "method"),
            (r#"{"jsonrpc":"2.0","id":5,"method":"m","params":[1]}"#, ErrorKind::InvalidParams, "5", "params"),
        ];
        for (text, kind, id, word) in cases {
            let refused = open(text, 256).unwrap_err();
            assert_eq!((refused.error.kind, refused.id), (kind, id), "{text}");
            assert!(refused.error.message.contains(word), "{text}: {}", refused.error);
        }
    }

    #[test]
    fn an_id_is_as_long_as_it_may_be_and_no_longer() {
        let string = |bytes: usize| format!("\"{}\"", "i".repeat(bytes));
        let ids = [string(8), string(9), "12345678".into(), "123456789".into(), r#""\u0069iiiiiii""#.into(), r#""éééé""#.into()];
        let allowed = [true, false, true, false, true, true];
        for (id, allowed) in ids.into_iter().zip(allowed) {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{}}}}"#);
            match open(&text, 8) {
                Ok(call) => assert_eq!((call.id, allowed), (&*id, true)),
                Err(refused) => {
                    assert_eq!((refused.id, refused.error.kind, allowed), ("null", ErrorKind::InvalidRequest, false), "{id}");
                    assert!(refused.error.message.contains("limits.json_rpc_id_bytes = 8"), "{}", refused.error);
                    assert!(usual_call(&text, 8).is_none(), "{id}");
                }
            }
        }
    }

    #[test]
    fn a_response_is_a_result_or_an_error_and_null_is_a_result() {
        let result = open_response(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1},"more":true}"#).unwrap();
        assert_eq!((result.id, result.outcome), ("\"a\"", Ok(r#"{"x":1}"#)));
        assert_eq!(open_response(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#).unwrap().outcome, Ok("null"));
        let error = open_response(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#).unwrap();
        assert_eq!((error.id, error.outcome), ("null", Err(r#"{"code":1}"#)));
        for bad in ["", "7", "[]", r#"{"id":1,"result":1}"#, r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#] {
            assert_eq!(open_response(bad).unwrap_err().kind, ErrorKind::InvalidAgentResponse, "{bad}");
        }
    }
}
