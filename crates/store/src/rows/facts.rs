//! What the ledger keeps of a task that no query asks for: as JSON, in few bytes, because every task has it.

use std::borrow::Cow;
use std::sync::Arc;

use chancery_core::budget::Caps;
use chancery_core::lineage::{AgentPath, Attribution, ClaimedContext};
use chancery_core::{Fact, Governed, MicroUsd, Rule, StoreError, Verdict};
use chancery_protocol::AgentName;
use serde::{Deserialize, Serialize};

use super::UnreadableRow;

/// A verdict: the rule, whether it passed, and what that rests on.
type Line<F> = (Rule, bool, F);
type NamedFact = (Cow<'static, str>, Fact);

#[derive(Serialize)]
struct LineageJson<'a> {
    #[serde(rename = "p")]
    path: Vec<AgentName>,
    #[serde(rename = "a")]
    attribution: Attribution,
    #[serde(rename = "m", skip_serializing_if = "std::ops::Not::not")]
    made: bool,
    /// With whether something was left out of it: a claim that is read again does not say so itself.
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    claimed: Option<(&'a ClaimedContext, bool)>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    skill: Option<&'a str>,
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    allowance: Option<CapNumbers>,
    #[serde(rename = "v")]
    verdicts: Vec<Line<&'a [NamedFact]>>,
}

/// The caps on money, tokens and tasks. Money is an integer, so it is exact.
type CapNumbers = (Option<i64>, Option<u64>, Option<u64>);

pub(crate) fn encode(governed: &Governed) -> Result<String, StoreError> {
    let kinship = &governed.kinship;
    let facts = LineageJson {
        path: kinship.path.to_vec(),
        attribution: kinship.attribution,
        made: kinship.made,
        claimed: kinship.claimed.as_deref().map(|claimed| (claimed, claimed.cut)),
        skill: kinship.skill.as_deref(),
        allowance: kinship.allowance.map(|caps| (caps.usd.map(|usd| usd.0), caps.tokens, caps.tasks)),
        verdicts: governed.verdicts.iter().map(|verdict| (verdict.rule, verdict.passed, &*verdict.facts)).collect(),
    };
    serde_json::to_string(&facts)
        .map_err(|error| StoreError::new(format!("how a task is governed cannot be written as JSON: {error}")))
}

/// The path is a plain list: this store wrote it, and has to read it at any length.
#[derive(Deserialize)]
struct Read {
    #[serde(rename = "p")]
    path: Vec<AgentName>,
    #[serde(rename = "a")]
    attribution: Attribution,
    #[serde(rename = "m", default)]
    made: bool,
    #[serde(rename = "c", default)]
    claimed: Option<(ClaimedContext, bool)>,
    #[serde(rename = "s", default)]
    skill: Option<Arc<str>>,
    #[serde(rename = "b", default)]
    allowance: Option<CapNumbers>,
    #[serde(rename = "v")]
    verdicts: Vec<Line<Vec<NamedFact>>>,
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) path: AgentPath,
    pub(crate) attribution: Attribution,
    pub(crate) made: bool,
    pub(crate) claimed: Option<Box<ClaimedContext>>,
    pub(crate) skill: Option<Arc<str>>,
    pub(crate) allowance: Option<Caps>,
    pub(crate) verdicts: Arc<[Verdict]>,
}

pub(crate) fn decode(text: &str) -> Result<Facts, UnreadableRow> {
    let read: Read = parse(text)?;
    let verdicts = read.verdicts.into_iter().map(|(rule, passed, facts)| Verdict { rule, passed, facts });
    Ok(Facts {
        path: AgentPath::new(read.path),
        attribution: read.attribution,
        made: read.made,
        claimed: read.claimed.map(|(claimed, cut)| Box::new(ClaimedContext { cut, ..claimed })),
        skill: read.skill,
        allowance: read.allowance.map(|(usd, tokens, tasks)| Caps { usd: usd.map(MicroUsd), tokens, tasks }),
        verdicts: verdicts.collect(),
    })
}

/// The skill alone: nothing else of a task outlives it.
pub(crate) fn skill(text: &str) -> Result<Option<Arc<str>>, UnreadableRow> {
    #[derive(Deserialize)]
    struct Skill {
        #[serde(rename = "s", default)]
        skill: Option<Arc<str>>,
    }
    parse::<Skill>(text).map(|facts| facts.skill)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, UnreadableRow> {
    serde_json::from_str(text).map_err(|error| UnreadableRow::new(format!("the facts of a task: {error}")))
}
