//! JSON Schemas that artifacts are held to, from a folder of the operator's. Nothing is ever fetched for one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use chancery_protocol::{Artifact, ArtifactKind, Error, ErrorKind};
use jsonschema::{Draft, Retrieve, Uri, Validator};
use serde_json::Value;

use crate::SchemaFault;

/// By their `$id`.
#[derive(Debug, Default)]
pub struct Schemas(HashMap<String, Validator>);

/// Only what lies in the folder can be referred to.
#[derive(Clone)]
struct InFolder(Arc<HashMap<String, Value>>);

impl Retrieve for InFolder {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        self.0.get(uri.as_str()).cloned().ok_or_else(|| format!("there is no schema {uri} in the folder").into())
    }
}

impl Schemas {
    /// Every `.json` file of the folder. Each has to have an `$id`; draft 2020-12, unless it names another.
    pub fn load(folder: &Path) -> Result<Self, SchemaFault> {
        let fault = |file: &Path, reason: String| SchemaFault { file: file.display().to_string(), reason };
        let entries = std::fs::read_dir(folder).map_err(|unread| fault(folder, unread.to_string()))?;
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort_unstable();
        let mut known = HashMap::new();
        let mut places = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|unread| fault(&file, unread.to_string()))?;
            let schema: Value = serde_json::from_str(&text).map_err(|wrong| fault(&file, wrong.to_string()))?;
            let Some(id) = schema.get("$id").and_then(Value::as_str).map(str::to_owned) else {
                return Err(fault(&file, "it has no $id".to_owned()));
            };
            if known.insert(id.clone(), schema).is_some() {
                return Err(fault(&file, format!("another file has the $id {id}")));
            }
            places.push((id, file));
        }
        let known = Arc::new(known);
        let mut validators = HashMap::new();
        for (id, file) in places {
            let options = jsonschema::options().with_draft(Draft::Draft202012).with_retriever(InFolder(Arc::clone(&known)));
            let validator = options.build(&known[&id]).map_err(|wrong| fault(&file, wrong.to_string()))?;
            validators.insert(id, validator);
        }
        Ok(Self(validators))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Holds JSON to the schema it names, if that is one of ours. The fault says where.
    pub fn check(&self, artifact: &Artifact, kind: &ArtifactKind) -> Result<(), Error> {
        let ArtifactKind::StructuredJson { value, schema: Some(schema) } = kind else { return Ok(()) };
        let Some(validator) = self.0.get(schema) else { return Ok(()) };
        let Some(fault) = validator.iter_errors(value).next() else { return Ok(()) };
        let path = match fault.instance_path().to_string() {
            path if path.is_empty() => "/".to_owned(),
            path => path,
        };
        let message = format!("the artifact {} does not obey {schema} at {path}: {fault}", artifact.artifact_id);
        Err(Error::new(ErrorKind::InvalidAgentResponse, message).with_fact("schema", schema).with_fact("path", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folder(files: &[(&str, Value)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, schema) in files {
            std::fs::write(folder.path().join(name), schema.to_string()).unwrap();
        }
        folder
    }

    fn check(schemas: &Schemas, value: Value, schema: &str) -> Result<(), Error> {
        let kind = ArtifactKind::StructuredJson { value, schema: Some(schema.to_owned()) };
        schemas.check(&kind.to_artifact("a"), &kind)
    }

    #[test]
    fn json_that_does_not_obey_its_schema_is_an_invalid_answer_with_the_path() {
        let item =
            json!({ "$id": "urn:item", "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let list = json!({ "$id": "urn:list", "type": "array", "items": { "$ref": "urn:item" } });
        let folder = folder(&[("item.json", item), ("list.json", list)]);
        let schemas = Schemas::load(folder.path()).unwrap();
        assert!(check(&schemas, json!([{ "n": 1 }]), "urn:list").is_ok());
        let fault = check(&schemas, json!([{ "n": 1 }, { "n": "two" }]), "urn:list").unwrap_err();
        assert_eq!(fault.kind, ErrorKind::InvalidAgentResponse);
        assert!(fault.facts.contains(&("path", "/1/n".to_owned())), "{fault:?}");
        let whole = check(&schemas, json!(7), "urn:item").unwrap_err();
        assert!(whole.facts.contains(&("path", "/".to_owned())), "{whole:?}");
        assert!(check(&schemas, json!(7), "urn:elsewhere").is_ok(), "what nobody here knows is not judged");
    }

    #[test]
    fn nothing_is_fetched_for_a_schema() {
        for elsewhere in ["https://example.org/schema.json", "file:///etc/passwd", "urn:missing"] {
            let folder = folder(&[("a.json", json!({ "$id": "urn:a", "$ref": elsewhere }))]);
            let fault = Schemas::load(folder.path()).unwrap_err();
            assert!(fault.reason.contains(elsewhere), "{fault}");
        }
    }

    #[test]
    fn a_schema_without_a_name_or_with_anothers_is_a_fault() {
        assert!(Schemas::load(folder(&[("a.json", json!({ "type": "object" }))]).path()).is_err());
        let twice = folder(&[("a.json", json!({ "$id": "urn:a" })), ("b.json", json!({ "$id": "urn:a" }))]);
        assert!(Schemas::load(twice.path()).unwrap_err().reason.contains("urn:a"));
        assert!(Schemas::load(Path::new("/nowhere/at/all")).is_err());
    }
}
