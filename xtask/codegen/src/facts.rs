//! Holds our schemas against the table of what the two A2A packages are made of on the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};

use crate::compile::{SHARED, descriptors};

/// Every field, enum value and method of a package as one line of the table.
fn facts(file: &FileDescriptorProto) -> BTreeSet<String> {
    let package = file.package();
    let mut lines = BTreeSet::new();
    for message in &file.message_type {
        message_facts(package, message, &mut lines);
    }
    for values in &file.enum_type {
        enum_facts(package, values, &mut lines);
    }
    for service in &file.service {
        for method in &service.method {
            let kind = match (method.client_streaming(), method.server_streaming()) {
                (false, false) => "unary",
                (false, true) => "streaming",
                (true, _) => "streaming both ways",
            };
            let (input, output) = (bare(method.input_type()), bare(method.output_type()));
            lines.insert(format!("{package}.{}.{} {input} {output} {kind}", service.name(), method.name()));
        }
    }
    lines
}

fn message_facts(scope: &str, message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", message.name());
    let is_map_entry = |nested: &&DescriptorProto| nested.options.as_ref().is_some_and(|options| options.map_entry());
    let maps: BTreeMap<String, &DescriptorProto> =
        message.nested_type.iter().filter(is_map_entry).map(|entry| (format!("{name}.{}", entry.name()), entry)).collect();
    for field in &message.field {
        let (kind, label) = match maps.get(bare(field.type_name())) {
            Some(entry) => (format!("map<{},{}>", type_of(&entry.field[0]), type_of(&entry.field[1])), "map".to_owned()),
            None => (type_of(field), label_of(message, field)),
        };
        lines.insert(format!("{name}.{} {} {kind} {label}", field.name(), field.number()));
    }
    for nested in message.nested_type.iter().filter(|nested| !is_map_entry(nested)) {
        message_facts(&name, nested, lines);
    }
    for values in &message.enum_type {
        enum_facts(&name, values, lines);
    }
}

fn enum_facts(scope: &str, values: &EnumDescriptorProto, lines: &mut BTreeSet<String>) {
    for value in &values.value {
        lines.insert(format!("{scope}.{}.{} {} enum value", values.name(), value.name(), value.number()));
    }
}

fn label_of(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    match field.oneof_index {
        _ if field.label() == Label::Repeated => "repeated".to_owned(),
        Some(_) if field.proto3_optional() => "optional".to_owned(),
        Some(at) => format!("oneof:{}", message.oneof_decl[usize::try_from(at).unwrap()].name()),
        None => "singular".to_owned(),
    }
}

fn type_of(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => bare(field.type_name()).to_owned(),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

/// Descriptors write absolute names with a leading dot.
fn bare(name: &str) -> &str {
    name.trim_start_matches('.')
}

fn proto_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("crates/wire/proto")
}

fn table() -> BTreeSet<String> {
    let text = fs::read_to_string(proto_folder().join("facts.txt")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn of_schemas(folder: &Path) -> BTreeSet<String> {
    let set = descriptors(folder).unwrap();
    set.file.iter().filter(|file| !file.package().starts_with("google.")).flat_map(facts).collect()
}

#[test]
fn the_schemas_say_exactly_what_the_table_of_facts_says() {
    let (ours, theirs) = (of_schemas(&proto_folder()), table());
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let invented: Vec<_> = ours.difference(&theirs).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing: {missing:#?}\ninvented: {invented:#?}");
}

#[test]
fn the_table_holds_both_packages_whole() {
    let table = table();
    let methods = |package: &str| table.iter().filter(|line| line.starts_with(&format!("{package}.A2AService."))).count();
    assert_eq!((methods("lf.a2a.v1"), methods("a2a.v1")), (11, 10));
    assert_eq!(table.len(), 374);
}

#[test]
fn messages_that_share_a_type_say_the_same_on_the_wire() {
    let table = table();
    let newer_name = |name: &str| match name.strip_prefix("a2a.v1.") {
        Some(older) => SHARED.iter().find(|pair| pair.0 == older).map_or(name.to_owned(), |pair| format!("lf.a2a.v1.{}", pair.1)),
        None => name.to_owned(),
    };
    // Number, type and label in words; a field may have changed its own name.
    let fields = |message: &str| -> BTreeSet<Vec<String>> {
        let of_message = table.iter().filter_map(|line| line.strip_prefix(message)?.strip_prefix('.')?.split_once(' '));
        of_message.map(|(_, fact)| fact.split([' ', '<', ',', '>']).map(newer_name).collect()).collect()
    };
    for (older, newer) in SHARED {
        let (before, after) = (fields(&format!("a2a.v1.{older}")), fields(&format!("lf.a2a.v1.{newer}")));
        assert!(!before.is_empty(), "{older} has no fields");
        assert!(before.is_subset(&after), "{older}: {before:?} is not within {after:?}");
    }
}

#[test]
fn a_changed_number_type_label_or_method_is_another_fact() {
    let schema = |body: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.proto"), format!("syntax = \"proto3\";\npackage p;\n{body}")).unwrap();
        of_schemas(folder.path())
    };
    let first =
        schema("message M { oneof o { string a = 1; } optional bool b = 2; repeated int32 c = 3; map<string, M> d = 4; }");
    assert_eq!(
        first.iter().map(String::as_str).collect::<Vec<_>>(),
        ["p.M.a 1 string oneof:o", "p.M.b 2 bool optional", "p.M.c 3 int32 repeated", "p.M.d 4 map<string,p.M> map"]
    );
    let second = schema("message M { string a = 1; bool b = 2; repeated int64 c = 3; map<string, M> d = 5; }");
    assert_eq!(first.intersection(&second).count(), 0);
    let method = schema("message M {} service S { rpc R(M) returns (stream M); } enum E { E_NONE = 0; }");
    assert_eq!(method.into_iter().collect::<Vec<_>>(), ["p.E.E_NONE 0 enum value", "p.S.R p.M p.M streaming"]);
}
