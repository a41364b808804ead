//! What a hop token says.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chancery_protocol::{AgentId, TaskId, Timestamp, TraceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{HopTokenFault, MAX_HOP_TOKEN_LIFE};
use crate::strict_json::MAX_SAFE_INTEGER;

const PATH_DIGEST_BYTES: usize = 16;
/// The same in base64url.
const PATH_DIGEST: usize = 22;

/// The place of a task in its tree, for the one agent that works on it. Times are kept to the second, in which it is good as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopClaims {
    pub tenant: Arc<str>,
    pub root_task: TaskId,
    /// The task the token goes with; the parent of every call that carries it.
    pub parent_task: TaskId,
    pub trace_id: TraceId,
    /// Of that task.
    pub depth: u32,
    /// The digest of whom the task came through, see [`path_digest`]. The issuer has the path itself in its records.
    pub path_digest: Arc<str>,
    /// Members of `tracestate`, each as `NODE@chancery=HANDLE` with commas between: the issuer's own, which other nodes pass on in the
    /// place of the token, and those of nodes that the task came through, for agents that pass on nothing but the token.
    pub marks: Option<Arc<str>>,
    pub budget: BudgetCaps,
    pub audience: TokenAudience,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// Random, so that no two tokens are the same.
    pub id: u128,
}

/// What the task and the calls under it could spend when the token was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetCaps {
    /// In millionths; without it there is no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// The agent that may use the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenAudience {
    /// The name it has here.
    pub agent: Arc<str>,
    /// By its key, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<AgentId>,
}

/// The claims as they are written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsJson {
    iss: Arc<str>,
    aud: TokenAudience,
    iat: i64,
    exp: i64,
    jti: String,
    tenant: Arc<str>,
    /// Left out where it is the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<TaskId>,
    parent: TaskId,
    trace: TraceId,
    depth: u32,
    path_digest: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marks: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_uncapped")]
    budget: BudgetCaps,
}

fn is_uncapped(budget: &BudgetCaps) -> bool {
    *budget == BudgetCaps::default()
}

impl HopClaims {
    pub(super) fn written(&self, issuer: &Arc<str>) -> Result<Vec<u8>, serde_json::Error> {
        let issued = seconds(self.issued_at);
        // A token whose task may take less than a second would otherwise be over when it is made.
        let ends = seconds(self.expires_at).saturating_add(i64::from(self.expires_at.micros().rem_euclid(1_000_000) != 0));
        let latest = issued.saturating_add(MAX_HOP_TOKEN_LIFE.as_secs().cast_signed());
        let safe = |number: Option<u64>| number.map(|number| number.min(MAX_SAFE_INTEGER));
        let written = ClaimsJson {
            iss: issuer.clone(),
            aud: self.audience.clone(),
            iat: issued,
            exp: ends.min(latest),
            jti: format!("{:032x}", self.id),
            tenant: self.tenant.clone(),
            root: (self.root_task != self.parent_task).then(|| self.root_task.clone()),
            parent: self.parent_task.clone(),
            trace: self.trace_id,
            depth: self.depth,
            path_digest: self.path_digest.clone(),
            marks: self.marks.clone(),
            budget: BudgetCaps { micro_usd: safe(self.budget.micro_usd), tokens: safe(self.budget.tokens) },
        };
        serde_json::to_vec(&written)
    }

    /// From a payload whose signature has been checked.
    pub(super) fn read(payload: Map<String, Value>) -> Result<Self, HopTokenFault> {
        let malformed = HopTokenFault::Malformed;
        let written: ClaimsJson =
            serde_json::from_value(Value::Object(payload)).map_err(|_| malformed("its claims are not those of a hop token"))?;
        if written.path_digest.len() != PATH_DIGEST {
            return Err(malformed("its path has no digest"));
        }
        let id = TraceId::from_hex(&written.jti).map(|id| id.0).or((written.jti == "0".repeat(32)).then_some(0));
        let life = written.exp.checked_sub(written.iat).and_then(|life| u64::try_from(life).ok());
        if life.is_none_or(|life| life > MAX_HOP_TOKEN_LIFE.as_secs()) {
            return Err(malformed("it lasts longer than a hop token may"));
        }
        let time =
            |seconds: i64| seconds.checked_mul(1_000_000).map(Timestamp::from_micros).ok_or(malformed("its times are none"));
        Ok(Self {
            tenant: written.tenant,
            root_task: written.root.unwrap_or_else(|| written.parent.clone()),
            parent_task: written.parent,
            trace_id: written.trace,
            depth: written.depth,
            path_digest: written.path_digest,
            marks: written.marks,
            budget: written.budget,
            audience: written.aud,
            issued_at: time(written.iat)?,
            expires_at: time(written.exp)?,
            id: id.ok_or(malformed("its id is not 32 hex digits"))?,
        })
    }
}

/// One short text for a whole path: the first 16 bytes of SHA-256 over each name with its length before it.
pub fn path_digest(path: &[Arc<str>]) -> Arc<str> {
    let mut digest = Context::new(&SHA256);
    for agent in path {
        digest.update(&(agent.len() as u64).to_be_bytes());
        digest.update(agent.as_bytes());
    }
    URL_SAFE_NO_PAD.encode(&digest.finish().as_ref()[..PATH_DIGEST_BYTES]).into()
}

fn seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}
