//! Finds faults of a card: missing members of its version, unusable values, and habits that break clients.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use url::Url;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// The version's rules are broken.
    Fault,
    /// Legal, but some clients will stumble.
    Advice,
}

impl Severity {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Advice => "advice",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn to_json(&self) -> Value {
        json!({ "severity": self.severity.word(), "message": self.message })
    }
}

/// What a member must be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Object,
    List,
}

const BINDINGS: [&str; 3] = ["JSONRPC", "HTTP+JSON", "GRPC"];

const EITHER: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("description", Kind::Text),
    ("version", Kind::Text),
    ("capabilities", Kind::Object),
    ("defaultInputModes", Kind::List),
    ("defaultOutputModes", Kind::List),
    ("skills", Kind::List),
];
const ORIGINAL: &[(&str, Kind)] = &[
    ("name", Kind::Text),
    ("url", Kind::Text),
    ("version", Kind::Text),
    ("capabilities", Kind::Object),
    ("authentication", Kind::Object),
    ("skills", Kind::List),
];
const SKILL: &[(&str, Kind)] = &[("id", Kind::Text), ("name", Kind::Text), ("description", Kind::Text), ("tags", Kind::List)];
const INTERFACE: &[(&str, Kind)] = &[("url", Kind::Text), ("protocolBinding", Kind::Text), ("protocolVersion", Kind::Text)];

pub(super) fn lint(card: &Value) -> Vec<Finding> {
    let mut findings = Findings::default();
    if is_original(card) {
        original(card, &mut findings);
        return findings.0;
    }
    findings.require("", card, EITHER);
    for (index, skill) in card["skills"].as_array().into_iter().flatten().enumerate() {
        findings.require(&format!("skills[{index}]."), skill, SKILL);
    }
    if card.get("supportedInterfaces").is_some() {
        newer(card, &mut findings);
    } else if card.get("protocolVersion").is_some() || card.get("url").is_some() {
        older(card, &mut findings);
    } else {
        findings.fault("supportedInterfaces is missing: the card has no address of the agent".to_owned());
    }
    findings.0
}

/// By the member that only the original protocol's cards have.
fn is_original(card: &Value) -> bool {
    card["authentication"].is_object() && card.get("supportedInterfaces").is_none() && card.get("protocolVersion").is_none()
}

fn original(card: &Value, findings: &mut Findings) {
    findings.require("", card, ORIGINAL);
    for (index, skill) in card["skills"].as_array().into_iter().flatten().enumerate() {
        findings.require(&format!("skills[{index}]."), skill, &SKILL[..2]);
    }
    findings.address("", "JSONRPC", card["url"].as_str().unwrap_or_default());
    findings.advice("a card of the original protocol: clients of 0.3 and 1.0 look at /.well-known/agent-card.json".to_owned());
}

fn newer(card: &Value, findings: &mut Findings) {
    let interfaces = card["supportedInterfaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.require("", card, &[("supportedInterfaces", Kind::List)]);
    let mut seen = BTreeSet::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let place = format!("supportedInterfaces[{index}].");
        findings.require(&place, interface, INTERFACE);
        let text = |name: &str| interface[name].as_str().unwrap_or_default();
        let (binding, version, url) = (text("protocolBinding"), text("protocolVersion"), text("url"));
        if !version.is_empty() && !is_major_minor(version) {
            findings.fault(format!("{place}protocolVersion is {version:?}, not of the form 1.0"));
        }
        if !binding.is_empty() && !BINDINGS.contains(&binding) && Url::parse(binding).is_err() {
            findings.fault(format!("{place}protocolBinding is {binding:?}, neither {} nor a URI", BINDINGS.join(", ")));
        }
        findings.address(&place, binding, url);
        if !seen.insert((binding, version)) {
            findings.advice(format!("{place}{binding} {version} is listed before; clients take the first"));
        }
    }
    if card.get("url").is_some() || card.get("preferredTransport").is_some() {
        findings.advice("members of 0.3 stand beside those of 1.0; strict readers of 1.0 refuse the card".to_owned());
    }
}

fn older(card: &Value, findings: &mut Findings) {
    findings.require("", card, &[("url", Kind::Text), ("protocolVersion", Kind::Text)]);
    let binding = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
    findings.address("", binding, card["url"].as_str().unwrap_or_default());
    for (index, interface) in card["additionalInterfaces"].as_array().into_iter().flatten().enumerate() {
        let place = format!("additionalInterfaces[{index}].");
        findings.require(&place, interface, &[("url", Kind::Text), ("transport", Kind::Text)]);
    }
    findings.advice("a card of 0.3 only: clients of 1.0 need supportedInterfaces".to_owned());
}

/// `1.0`, and not `1` or `1.0.0`.
fn is_major_minor(version: &str) -> bool {
    let numbers: Vec<_> = version.split('.').collect();
    numbers.len() == 2 && numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fault(&mut self, message: String) {
        self.0.push(Finding { severity: Severity::Fault, message });
    }

    fn advice(&mut self, message: String) {
        self.0.push(Finding { severity: Severity::Advice, message });
    }

    fn require(&mut self, place: &str, object: &Value, members: &[(&str, Kind)]) {
        for (name, kind) in members {
            match (kind, &object[*name]) {
                (_, Value::Null) => self.fault(format!("{place}{name} is missing")),
                (Kind::Text, Value::String(text)) if !text.is_empty() => {}
                (Kind::Text, Value::String(_)) => self.fault(format!("{place}{name} is empty")),
                (Kind::List, Value::Array(list)) if !list.is_empty() => {}
                (Kind::List, Value::Array(_)) => self.fault(format!("{place}{name} has no entry")),
                (Kind::Object, Value::Object(_)) => {}
                (Kind::Text, _) => self.fault(format!("{place}{name} is not a string")),
                (Kind::List, _) => self.fault(format!("{place}{name} is not an array")),
                (Kind::Object, _) => self.fault(format!("{place}{name} is not an object")),
            }
        }
    }

    fn address(&mut self, place: &str, binding: &str, url: &str) {
        let parsed = Url::parse(url);
        let web = parsed.as_ref().is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        match binding {
            _ if url.is_empty() => {}
            "GRPC"
                if !web && url.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) => {}
            "GRPC" if web => {}
            "GRPC" => self.fault(format!("{place}url is {url:?}, not host:port")),
            // A binding that is named by a URI, as SWP is, has URLs of its own.
            custom if custom.contains("://") && parsed.is_ok() => {}
            _ if !web => self.fault(format!("{place}url is {url:?}, not an http or https URL")),
            _ if parsed.is_ok_and(|url| url.scheme() == "http" && !is_local(&url)) => {
                self.advice(format!("{place}url is {url:?}: not encrypted"));
            }
            _ => {}
        }
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery::agents::BuiltIn;

    fn messages(card: &Value, severity: Severity) -> Vec<String> {
        lint(card).into_iter().filter(|finding| finding.severity == severity).map(|finding| finding.message).collect()
    }

    fn sound() -> Value {
        let mut card = serde_json::to_value(BuiltIn::Echo.card()).unwrap();
        card["supportedInterfaces"] = json!([
            { "url": "https://h/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": "h:443", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
        ]);
        card
    }

    #[test]
    fn a_sound_card_has_no_findings() {
        assert_eq!(lint(&sound()), []);
    }

    #[test]
    fn every_required_member_is_missed() {
        let mut members: Vec<&str> = EITHER.iter().map(|(name, _)| *name).collect();
        members.push("supportedInterfaces");
        for name in members {
            let mut card = sound();
            card.as_object_mut().unwrap().remove(name);
            let faults = messages(&card, Severity::Fault);
            assert!(faults.iter().any(|fault| fault.starts_with(&format!("{name} is missing"))), "{name}: {faults:?}");
        }
    }

    #[test]
    fn values_nobody_can_use_are_faults() {
        let interface = |member: &str, value: &str| {
            let mut card = sound();
            card["supportedInterfaces"][0][member] = json!(value);
            messages(&card, Severity::Fault)
        };
        for (member, value) in
            [("protocolVersion", "1.0.1"), ("protocolVersion", "one"), ("protocolBinding", "SOAP"), ("url", "h:1"), ("url", "")]
        {
            assert_eq!(interface(member, value).len(), 1, "{member} {value:?}");
        }
        let mut card = sound();
        card["skills"][0]["tags"] = json!([]);
        card["name"] = json!(7);
        assert_eq!(messages(&card, Severity::Fault), ["name is not a string", "skills[0].tags has no entry"]);
    }

    #[test]
    fn habits_that_break_clients_are_advice() {
        let mut card = sound();
        card["supportedInterfaces"][0]["url"] = json!("http://example.org");
        card["supportedInterfaces"][1] = card["supportedInterfaces"][0].clone();
        card["url"] = json!("http://example.org");
        let advice = messages(&card, Severity::Advice);
        for word in ["not encrypted", "listed before", "members of 0.3"] {
            assert!(advice.iter().any(|message| message.contains(word)), "{word}: {advice:?}");
        }
        assert_eq!(messages(&card, Severity::Fault), [""; 0]);
    }

    #[test]
    fn a_card_of_0_3_is_held_against_0_3() {
        let mut card = sound();
        let members = card.as_object_mut().unwrap();
        members.remove("supportedInterfaces");
        members.insert("url".into(), json!("https://h"));
        assert_eq!(messages(&card, Severity::Fault), ["protocolVersion is missing"]);
        card["protocolVersion"] = json!("0.3.0");
        assert_eq!(messages(&card, Severity::Fault), [""; 0]);
    }

    #[test]
    fn a_card_of_the_original_protocol_is_held_against_that() {
        let mut card = json!({
            "name": "a", "url": "https://h", "version": "1", "capabilities": {}, "authentication": { "schemes": [] },
            "skills": [{ "id": "s", "name": "S" }],
        });
        assert_eq!(messages(&card, Severity::Fault), [""; 0]);
        card["skills"][0] = json!({ "id": "s" });
        card["url"] = json!("h:1");
        let faults = messages(&card, Severity::Fault);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
