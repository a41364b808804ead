//! Typed parts as the `rvagent-a2a` crate spells them, whose parts have no metadata.
//!
//! That crate writes a witness as `{"kind": "ru_lake_witness", …}` and a value as `{"kind": "structured_json", "value", "schema"}`,
//! and puts what it says about a part into the metadata of the artifact or message around it. The model keeps one spelling, ours;
//! the codec of the original protocol translates in both directions.

use std::borrow::Cow;

use super::{ARTIFACT_KIND_VERSION, KIND, SCHEMA, VENDOR, VERSION, WITNESS};
use crate::raw_json::{member, members};
use crate::{Json, Metadata, Part, PartContent};

/// Our word for a witness, and the crate's.
const OURS: &str = "rulake_witness";
pub(super) const THEIRS: &str = "ru_lake_witness";
const VALUE: &str = "structured_json";
const GRANT: &str = "grant";

/// A part in the crate's spelling. Parts that both sides spell alike are borrowed.
pub fn to_rvagent(part: &Part) -> Cow<'_, Part> {
    let PartContent::Data(data) = &part.content else { return Cow::Borrowed(part) };
    match (tag(part.metadata.as_ref(), KIND).as_deref(), kind_of(data).as_deref()) {
        (Some(VALUE), _) => Cow::Owned(wrapped(part, data)),
        (None | Some(OURS), Some(OURS)) => {
            let mut said = renamed(data, THEIRS);
            if member(data.text(), "capabilities").is_none() {
                said = object(members(said.text()).chain([("capabilities".into(), "[]")]));
            }
            Cow::Owned(Part { content: PartContent::Data(said), ..part.clone() })
        }
        _ => Cow::Borrowed(part),
    }
}

/// Parts in our spelling. `around` is the metadata of the artifact or message that has them: the crate says there which kind and
/// version they are, and a grant for a witness can stand only there.
pub fn from_rvagent(parts: Vec<Part>, around: Option<&Metadata>) -> Vec<Part> {
    let alone = parts.len() == 1;
    parts.into_iter().map(|part| read(part, around, alone)).collect()
}

/// The metadata of a message or artifact for the crate: a grant that its parts agree on, where nothing says another.
pub fn around_rvagent<'a>(parts: &[Part], around: Option<&'a Metadata>) -> Option<Cow<'a, Metadata>> {
    let mut grants = parts.iter().filter_map(|part| vendor_member(part.metadata.as_ref(), GRANT));
    let borrowed = around.map(Cow::Borrowed);
    let Some(grant) = grants.next().filter(|grant| grants.all(|other| other == *grant)) else { return borrowed };
    if vendor_member(around, GRANT).is_some() {
        return borrowed;
    }
    Some(Cow::Owned(with_tags(around, [(GRANT, grant)])))
}

fn read(part: Part, around: Option<&Metadata>, alone: bool) -> Part {
    let PartContent::Data(data) = &part.content else { return part };
    let Some(kind) = kind_of(data) else { return part };
    let (own, outer) = (tag(part.metadata.as_ref(), KIND), tag(around, KIND));
    // A message of several parts can have one tag only.
    let tagged =
        |name: &str| own.as_deref().is_none_or(|tag| tag == name) && (!alone || outer.as_deref().is_none_or(|tag| tag == name));
    let version = vendor_member(part.metadata.as_ref(), VERSION).or_else(|| vendor_member(around, VERSION));
    let version = version.unwrap_or_else(|| text(ARTIFACT_KIND_VERSION));
    match &*kind {
        THEIRS | OURS if tagged(OURS) => {
            let mut tags = vec![(KIND, text(OURS)), (VERSION, version)];
            tags.extend(data.member("witness").map(|witness| (WITNESS, witness)).filter(|_| !has(&part, WITNESS)));
            let grant = vendor_member(around, GRANT).filter(|_| !has(&part, GRANT));
            tags.extend(grant.map(|grant| (GRANT, grant)));
            let metadata = Some(with_tags(part.metadata.as_ref(), tags));
            Part { content: PartContent::Data(renamed(data, OURS)), metadata, ..part }
        }
        VALUE if own.is_none() && tagged(VALUE) => match unwrapped(data) {
            Some((value, schema)) => {
                let metadata = with_tags(part.metadata.as_ref(), [(KIND, text(VALUE)), (VERSION, version)]);
                let metadata = schema.map_or_else(|| metadata.clone(), |schema| metadata.with(SCHEMA, schema));
                Part { content: PartContent::Data(value), metadata: Some(metadata), ..part }
            }
            None => part,
        },
        _ => part,
    }
}

/// A value in the crate's wrapper. The tag goes, because a part that has it is a bare value.
fn wrapped(part: &Part, data: &Json) -> Part {
    let metadata = part.metadata.clone().unwrap_or_else(Metadata::empty);
    let schema = metadata.member(SCHEMA).filter(|schema| schema.text().starts_with('"'));
    let kind = text(VALUE);
    let said = [("kind".into(), kind.text()), ("value".into(), data.text())];
    let said = object(said.into_iter().chain(schema.as_ref().map(|schema| (SCHEMA.into(), schema.text()))));
    let vendor = metadata.member(VENDOR).and_then(|vendor| Metadata::try_from(vendor).ok());
    let vendor = vendor.and_then(|vendor| vendor.without(KIND)).and_then(plain_version);
    let metadata = match vendor {
        Some(vendor) => Some(metadata.with(VENDOR, vendor.into_json())),
        None => metadata.without(VENDOR),
    };
    let metadata = if schema.is_some() { metadata.and_then(|metadata| metadata.without(SCHEMA)) } else { metadata };
    Part { content: PartContent::Data(said), metadata, ..part.clone() }
}

/// The first version is what no version means.
fn plain_version(vendor: Metadata) -> Option<Metadata> {
    if vendor.member(VERSION) == Some(text(ARTIFACT_KIND_VERSION)) { vendor.without(VERSION) } else { Some(vendor) }
}

/// What the wrapper holds, if it holds nothing that would be lost.
fn unwrapped(data: &Json) -> Option<(Json, Option<Json>)> {
    let known = members(data.text()).all(|(name, _)| matches!(&*name, "kind" | "value" | SCHEMA));
    let schema = data.member(SCHEMA).filter(|schema| schema.text() != "null");
    let is_text = schema.as_ref().is_none_or(|schema| schema.text().starts_with('"'));
    (known && is_text).then_some(())?;
    Some((data.member("value")?, schema))
}

fn renamed(data: &Json, kind: &str) -> Json {
    let kind = text(kind);
    object(members(data.text()).map(|(name, value)| if name == "kind" { (name, kind.text()) } else { (name, value) }))
}

fn kind_of(data: &Json) -> Option<String> {
    // Hardly any data has one.
    member(data.text(), "kind").filter(|kind| kind.starts_with('"')).and_then(|kind| serde_json::from_str(kind).ok())
}

fn has(part: &Part, name: &str) -> bool {
    vendor_member(part.metadata.as_ref(), name).is_some()
}

fn vendor_member(metadata: Option<&Metadata>, name: &str) -> Option<Json> {
    let metadata = metadata?;
    // Seen without taking it apart.
    metadata.text().contains(name).then(|| metadata.member(VENDOR)?.member(name)).flatten()
}

fn tag(metadata: Option<&Metadata>, name: &str) -> Option<String> {
    serde_json::from_str(vendor_member(metadata, name)?.text()).ok()
}

fn with_tags<'a>(metadata: Option<&Metadata>, tags: impl IntoIterator<Item = (&'a str, Json)>) -> Metadata {
    let metadata = metadata.cloned().unwrap_or_else(Metadata::empty);
    let vendor = metadata.member(VENDOR).and_then(|vendor| Metadata::try_from(vendor).ok()).unwrap_or_else(Metadata::empty);
    let vendor = tags.into_iter().fold(vendor, |vendor, (name, value)| vendor.with(name, value));
    metadata.with(VENDOR, vendor.into_json())
}

fn text(text: &str) -> Json {
    Json::from_value(&serde_json::Value::from(text))
}

/// An object of members that are JSON already, each as it is spelled.
fn object<'a>(members: impl Iterator<Item = (Cow<'a, str>, &'a str)>) -> Json {
    let mut said = String::from("{");
    for (name, value) in members {
        let separator = if said.len() > 1 { "," } else { "" };
        said.extend([separator, &serde_json::Value::from(&*name).to_string(), ":", value]);
    }
    said.push('}');
    // Put together from what is JSON, it is JSON.
    Json::parse(said).unwrap_or_else(|_| Json::from_value(&serde_json::Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArtifactKind;
    use serde_json::json;

    fn witness() -> ArtifactKind {
        let capabilities = vec!["read".to_owned()];
        ArtifactKind::RuLakeWitness { witness: "ab".repeat(32), data_ref: "file:///notes".into(), capabilities }
    }

    fn metadata(value: serde_json::Value) -> Metadata {
        Metadata::from_object(value.as_object().unwrap().clone())
    }

    fn data(part: &Part) -> serde_json::Value {
        let PartContent::Data(data) = &part.content else { panic!("{part:?}") };
        data.to_value()
    }

    #[test]
    fn what_goes_out_comes_back_as_it_was() {
        let deep = json!({ "kind": "structured_json", "value": 1 });
        for kind in [
            witness(),
            ArtifactKind::StructuredJson { value: json!([1, null]), schema: Some("urn:x".into()) },
            ArtifactKind::StructuredJson { value: json!(null), schema: None },
            ArtifactKind::StructuredJson { value: deep, schema: None },
        ] {
            let parts = kind.to_parts();
            let sent = to_rvagent(&parts[0]).into_owned();
            assert_ne!(sent, parts[0], "{kind:?}");
            assert_eq!(from_rvagent(vec![sent], None), parts, "{kind:?}");
        }
    }

    #[test]
    fn a_value_keeps_its_numbers_and_its_own_metadata() {
        let text = r#"{"n":12345678901234567890.10}"#;
        let tags = json!({ "ruvector": { "artifact_kind": "structured_json", "own": 1 }, "note": "n" });
        let part = Part { metadata: Some(metadata(tags)), ..Part::new(PartContent::Data(Json::parse(text.into()).unwrap())) };
        let sent = to_rvagent(&part).into_owned();
        let PartContent::Data(said) = &sent.content else { panic!("{sent:?}") };
        assert_eq!(said.text(), format!(r#"{{"kind":"structured_json","value":{text}}}"#));
        assert_eq!(sent.metadata, Some(metadata(json!({ "ruvector": { "own": 1 }, "note": "n" }))));
    }

    #[test]
    fn a_wrapper_with_more_in_it_than_the_crate_writes_stays_whole() {
        for said in [
            json!({ "kind": "structured_json", "value": 1, "more": 2 }),
            json!({ "kind": "structured_json", "value": 1, "schema": {} }),
            json!({ "kind": "structured_json" }),
            json!({ "kind": 7, "value": 1 }),
            json!({ "kind": "vector_ref", "dim": 1 }),
        ] {
            let part = Part::data(&said);
            assert_eq!(from_rvagent(vec![part.clone()], None), [part], "{said}");
        }
    }

    #[test]
    fn the_grant_of_a_witness_travels_around_its_message() {
        let mut part = witness().to_parts().remove(0);
        part.metadata = Some(with_tags(part.metadata.as_ref(), [(GRANT, text("g1"))]));
        let around = around_rvagent(std::slice::from_ref(&part), None).unwrap().into_owned();
        assert_eq!(around, metadata(json!({ "ruvector": { "grant": "g1" } })));
        // The crate reads data and nothing else.
        let bare = Part::new(to_rvagent(&part).into_owned().content);
        assert_eq!(from_rvagent(vec![bare], Some(&around)), [part.clone()]);
        let said = metadata(json!({ "ruvector": { "grant": "theirs" } }));
        assert_eq!(around_rvagent(&[part.clone()], Some(&said)).unwrap().into_owned(), said);
        let mut other = part.clone();
        other.metadata = Some(with_tags(part.metadata.as_ref(), [(GRANT, text("g2"))]));
        assert_eq!(around_rvagent(&[part, other], None), None, "two grants cannot be told apart there");
    }

    #[test]
    fn a_version_that_the_message_names_holds_for_its_parts() {
        let part = Part::data(&json!({ "kind": "ru_lake_witness", "witness": "w", "data_ref": "", "capabilities": [] }));
        let around = metadata(json!({ "ruvector": { "artifact_kind": "rulake_witness", "artifact_kind_version": "2" } }));
        let parts = from_rvagent(vec![part.clone()], Some(&around));
        assert!(ArtifactKind::from_part(&parts[0]).is_err(), "{parts:?}");
        let other = metadata(json!({ "ruvector": { "artifact_kind": "hologram" } }));
        assert_eq!(from_rvagent(vec![part.clone()], Some(&other)), [part], "a kind that nobody knows stays opaque");
    }

    #[test]
    fn a_witness_without_capabilities_gets_the_member_that_the_crate_demands() {
        let part = Part::data(&json!({ "kind": "rulake_witness", "witness": "w", "data_ref": "d" }));
        let said = json!({ "kind": "ru_lake_witness", "witness": "w", "data_ref": "d", "capabilities": [] });
        assert_eq!(data(&to_rvagent(&part)), said);
    }
}
