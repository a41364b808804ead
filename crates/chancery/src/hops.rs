//! The port through which the service makes and reads hop tokens, over the node's own keys.

use std::sync::Arc;

use chancery_core::budget::Caps;
use chancery_core::lineage::{TokenCheck, TokenClaims};
use chancery_core::{ForeignToken, Hop, HopTokenService, MicroUsd};
use chancery_identity::hop_token::{
    BudgetCaps, ForeignClaims, HopClaims, HopTokenFault, HopTokens as KeyedTokens, TokenAudience, path_digest,
};
use chancery_protocol::Timestamp;

#[derive(Debug)]
pub(crate) struct SignedHops(pub(crate) Arc<KeyedTokens>);

impl HopTokenService for SignedHops {
    fn mint(&self, hop: &Hop) -> Option<String> {
        let claims = &hop.claims;
        let minted = self.0.mint(&HopClaims {
            tenant: Arc::clone(&claims.tenant),
            root_task: claims.root_task.clone(),
            parent_task: claims.parent_task.clone(),
            trace_id: claims.trace_id,
            depth: claims.depth,
            path_digest: path_digest(&hop.path.to_vec()),
            marks: hop.marks.clone(),
            budget: BudgetCaps {
                micro_usd: hop.budget.usd.map(|usd| u64::try_from(usd.0).unwrap_or(0)),
                tokens: hop.budget.tokens,
            },
            audience: TokenAudience { agent: claims.audience.clone(), id: None },
            issued_at: hop.issued,
            expires_at: hop.expires,
            id: rand::random(),
        });
        // Work without a token can still be told apart by who does it, so it goes out.
        minted
            .inspect_err(|error| tracing::error!(%error, task = %claims.parent_task, "a task goes out without a hop token"))
            .ok()
    }

    fn read(&self, token: &str, now: Timestamp) -> Result<Option<TokenClaims>, TokenCheck> {
        let claims = match self.0.verify(token, now) {
            Ok(claims) => claims,
            Err(HopTokenFault::Foreign { .. }) => return Ok(None),
            Err(HopTokenFault::Malformed(_)) => return Err(TokenCheck::Malformed),
            Err(HopTokenFault::TooLarge) => return Err(TokenCheck::TooLarge),
            Err(HopTokenFault::UnknownKey) => return Err(TokenCheck::UnknownKey),
            Err(HopTokenFault::BadSignature) => return Err(TokenCheck::Signature),
            Err(HopTokenFault::Expired) => return Err(TokenCheck::Expired),
            Err(HopTokenFault::NotYet) => return Err(TokenCheck::NotYetValid),
        };
        Ok(Some(TokenClaims {
            tenant: Arc::clone(&claims.tenant),
            root_task: claims.root_task.clone(),
            parent_task: claims.parent_task.clone(),
            trace_id: claims.trace_id,
            depth: claims.depth,
            audience: Arc::clone(&claims.audience.agent),
        }))
    }

    fn read_foreign(&self, token: &str) -> ForeignToken {
        let Some(ForeignClaims { marks, budget }) = ForeignClaims::of(token) else { return ForeignToken::default() };
        let usd = budget.micro_usd.map(|usd| MicroUsd(i64::try_from(usd).unwrap_or(i64::MAX)));
        ForeignToken { members: marks, budget: Caps { usd, tokens: budget.tokens, tasks: None } }
    }
}
