//! The recall agent: imports memory by its witness, returns the entries nearest to a query, and adds entries.

use async_trait::async_trait;
use chancery_core::{Finished, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{AgentCard, ArtifactKind, Error, ErrorKind, Part, PartContent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::card::new_card;

/// Queries of one message.
const MAX_QUERIES: usize = 256;

/// An agent that resolves memory by its witness and answers queries on it.
#[derive(Debug)]
pub struct RecallAgent;

/// What a message may say beside the witness.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    queries: Vec<Vec<f32>>,
    #[serde(default = "ten")]
    k: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    vectors: Vec<New>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    id: u64,
    vector: Vec<f32>,
}

fn ten() -> usize {
    10
}

#[async_trait]
impl TaskRunner for RecallAgent {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let answer = answer(&turn).await.map_err(RunError::refused)?;
        let artifact = ArtifactKind::StructuredJson { value: answer, schema: None }.to_artifact(updates.new_artifact_id());
        updates.artifact(artifact).await?;
        Ok(updates.complete(None))
    }
}

async fn answer(turn: &Turn) -> Result<Value, Error> {
    let none = || Error::new(ErrorKind::UnsupportedOperation, "this node has no memory tier; set memory.tier in its config");
    let memory = turn.memory.as_ref().ok_or_else(none)?;
    let is_witness = |part: &&Part| matches!(ArtifactKind::from_part(part), Ok(ArtifactKind::RuLakeWitness { .. }));
    let missing = || Error::invalid_field("message.parts", "there is no ruLake witness among them");
    let witness = turn.message.parts.iter().find(is_witness).ok_or_else(missing)?;
    if let Some(Write { vectors }) = told(&turn.message.parts, "write")? {
        let written = memory.write(witness, vectors.into_iter().map(|new| (new.id, new.vector)).collect()).await?;
        let new = written.collection;
        return Ok(json!({
            "witness": new.witness, "data_ref": new.data_ref, "dim": new.dim, "count": new.count, "grant": written.grant,
        }));
    }
    let Some(search) = search(&turn.message.parts)? else {
        let found = memory.resolve(witness).await?;
        return Ok(json!({ "witness": found.witness, "data_ref": found.data_ref, "dim": found.dim, "count": found.count }));
    };
    let near = memory.search(witness, search.queries, search.k).await?;
    let shown = |near: &Vec<chancery_core::Nearest>| -> Value {
        near.iter().map(|one| json!({ "id": one.id, "score": one.score })).collect()
    };
    Ok(json!({ "neighbours": near.iter().map(shown).collect::<Vec<_>>() }))
}

/// What a message says under this name beside the witness.
fn told<T: DeserializeOwned>(parts: &[Part], name: &str) -> Result<Option<T>, Error> {
    let data = |part: &Part| match &part.content {
        PartContent::Data(json) => json.member(name),
        _ => None,
    };
    let Some(said) = parts.iter().find_map(data) else { return Ok(None) };
    let fault = |fault: serde_json::Error| Error::invalid_field(format!("message.parts.data.{name}"), fault.to_string());
    serde_json::from_str(said.text()).map(Some).map_err(fault)
}

fn search(parts: &[Part]) -> Result<Option<Search>, Error> {
    let Some(search) = told::<Search>(parts, "search")? else { return Ok(None) };
    if search.queries.is_empty() || search.queries.len() > MAX_QUERIES {
        return Err(Error::invalid_field("message.parts.data.search.queries", "must be from 1 to 256"));
    }
    Ok(Some(search))
}

pub(super) fn card() -> AgentCard {
    let mut card = new_card("Recall", "Loads memory by its witness, returns the entries nearest to a query, and adds entries.");
    card.default_input_modes = vec!["application/json".to_owned()];
    card.default_output_modes = vec!["application/json".to_owned()];
    for skill in &mut card.skills {
        skill.id = "recall".to_owned();
        skill.tags = vec!["memory".to_owned(), "vectors".to_owned()];
    }
    card
}
