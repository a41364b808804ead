//! The port through which the service makes and reads hop tokens, over the node's own keys.

use std::sync::Arc;

use chancery_core::budget::Caps;
use chancery_core::lineage::TokenCheck;
use chancery_core::{ForeignToken, Hop, HopTokenService, MicroUsd, TokenTask};
use chancery_identity::hop_token::{BudgetCaps, ForeignClaims, HopClaims, HopTokenFault, HopTokens as KeyedTokens};
use chancery_protocol::Timestamp;

#[derive(Debug)]
pub(crate) struct SignedHops(pub(crate) Arc<KeyedTokens>);

impl HopTokenService for SignedHops {
    fn mint(&self, hop: &Hop) -> Option<String> {
        let claims = HopClaims {
            parent_task: hop.task.task.clone(),
            place: hop.task.place,
            budget: BudgetCaps {
                micro_usd: hop.budget.usd.map(|usd| u64::try_from(usd.0).unwrap_or(0)),
                tokens: hop.budget.tokens,
            },
            issued_at: hop.issued,
            expires_at: hop.expires,
            id: chancery_core::random_seed() as u32,
        };
        let members: Vec<&str> = hop.members.iter().map(String::as_str).collect();
        // Work without a token can still be told apart by who does it, so it goes out.
        self.0
            .mint(&claims, &members)
            .inspect_err(|error| tracing::error!(%error, task = %hop.task.task, "cannot make a hop token; the agent receives its task without one"))
            .ok()
    }

    fn read(&self, token: &str, now: Timestamp) -> Result<Option<TokenTask>, TokenCheck> {
        match self.0.verify(token, now) {
            Err(HopTokenFault::Foreign) => Ok(None),
            read => named(read).map(Some),
        }
    }

    fn read_member(&self, value: &str, now: Timestamp) -> Result<TokenTask, TokenCheck> {
        named(self.0.verify_body(value, now))
    }

    fn read_foreign(&self, token: &str) -> ForeignToken {
        let Some(ForeignClaims { marks, budget }) = ForeignClaims::of(token) else { return ForeignToken::default() };
        let usd = budget.micro_usd.map(|usd| MicroUsd(i64::try_from(usd).unwrap_or(i64::MAX)));
        ForeignToken { members: marks, budget: Caps { usd, tokens: budget.tokens, tasks: None } }
    }
}

fn named(read: Result<HopClaims, HopTokenFault>) -> Result<TokenTask, TokenCheck> {
    let HopClaims { parent_task, place, .. } = read.map_err(|fault| match fault {
        HopTokenFault::Malformed(_) | HopTokenFault::Foreign => TokenCheck::Malformed,
        HopTokenFault::TooLarge => TokenCheck::TooLarge,
        HopTokenFault::UnknownKey => TokenCheck::UnknownKey,
        HopTokenFault::BadSignature => TokenCheck::Signature,
        HopTokenFault::Expired => TokenCheck::Expired,
        HopTokenFault::NotYet => TokenCheck::NotYetValid,
    })?;
    Ok(TokenTask { task: parent_task, place })
}
