//! An agent with a key of its own that signs requests, rightly or wrongly.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chancery_identity::credentials::{Authority, RequestFacts, UnsignedRequest, content_digest, sign_request};
use chancery_protocol::{AgentId, Timestamp};
use http::{HeaderMap, Method};
use shake::digest::{ExtendableOutput as _, Update as _, XofReader as _};

pub(crate) const PATH: &str = "/message:send";
pub(crate) const BODY: &[u8] = br#"{"message":{}}"#;

pub(crate) struct Agent(Ed25519KeyPair);

impl Agent {
    pub(crate) fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    pub(crate) fn public_key(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap()
    }

    pub(crate) fn id(&self) -> AgentId {
        let mut digest = [0; 32];
        shake::Shake256::default().chain(self.public_key()).finalize_xof().read(&mut digest);
        AgentId::from_digest(&digest)
    }

    pub(crate) fn keyid(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.public_key())
    }

    /// The headers of a good request, made by the code that clients use.
    pub(crate) fn sign(&self, path_and_query: &str, created: Timestamp, nonce: &str) -> HeaderMap {
        let authority: Authority = "https://node.example".parse().unwrap();
        let request = UnsignedRequest { method: &Method::POST, authority: &authority, path_and_query, body: BODY };
        let sign = |base: &[u8]| self.0.sign(base).as_ref().try_into().unwrap();
        let mut headers = HeaderMap::new();
        sign_request(&self.public_key(), sign, request, created, nonce).unwrap().add_to(&mut headers);
        headers
    }

    /// Signs lines of a base as they are given. `names` and `parameters` stand in `Signature-Input`.
    pub(crate) fn sign_lines(&self, names: &str, parameters: &str, lines: &[String]) -> HeaderMap {
        let list = format!("({names}){parameters}");
        let base = format!("{}\n\"@signature-params\": {list}", lines.join("\n"));
        let signature = STANDARD.encode(self.0.sign(base.as_bytes()));
        let mut headers = HeaderMap::new();
        headers.insert("content-digest", content_digest(BODY).parse().unwrap());
        headers.insert("signature-input", format!("a={list}").parse().unwrap());
        headers.insert("signature", format!("a=:{signature}:").parse().unwrap());
        headers
    }

    /// The lines of a good request to `PATH` that covers `names`, signed with other parameters or for another authority.
    pub(crate) fn sign_as(&self, names: &[&str], authority: &str, parameters: &str) -> HeaderMap {
        let line = |name: &&str| match *name {
            "@method" => "\"@method\": POST".to_owned(),
            "@authority" => format!("\"@authority\": {authority}"),
            "@path" => format!("\"@path\": {PATH}"),
            "@query" => "\"@query\": ?".to_owned(),
            "@target-uri" => format!("\"@target-uri\": https://{authority}{PATH}"),
            "content-digest" => format!("\"content-digest\": {}", content_digest(BODY)),
            other => format!("\"{other}\": x"),
        };
        let lines: Vec<_> = names.iter().map(line).collect();
        let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        self.sign_lines(&quoted.join(" "), parameters, &lines)
    }
}

pub(crate) fn request(headers: &HeaderMap) -> RequestFacts<'_> {
    RequestFacts { method: &Method::POST, path_and_query: PATH, headers, body: BODY, meant_for: None }
}
