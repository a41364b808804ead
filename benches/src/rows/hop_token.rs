//! What hop tokens cost: made and verified, beside the bare signature.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use chancery::identity::hop_token::{BudgetCaps, HopClaims, HopTokens, TokenAudience, path_digest};
use chancery::identity::keys::Receipts;
use chancery::identity::{Algorithm, KeyRing, KeyUse, SigningKey};
use chancery::protocol::{Timestamp, TraceId};

use super::identity::{BATCH, line, timed};
use super::{Match, Row};
use crate::report::{MeasuredRow, Pair, Unit};

fn tokens() -> Result<HopTokens> {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, Timestamp::default())?;
    Ok(HopTokens::new("bench", &ring))
}

/// Three agents deep.
fn claims(id: u128) -> HopClaims {
    let now = Timestamp::from_micros(1_800_000_000_000_000);
    HopClaims {
        tenant: "default".into(),
        root_task: "0193a4a0-7c1e-7d6b-8d0e-7f5a0c9b1e2d".into(),
        parent_task: "0193a4a0-7c1f-7d6b-8d0e-7f5a0c9b1e2d".into(),
        trace_id: TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c),
        depth: 2,
        path_digest: path_digest(&["planner".into(), "research".into(), "summary".into()]),
        marks: None,
        budget: BudgetCaps { micro_usd: Some(50_000), tokens: None },
        audience: TokenAudience { agent: "writer".into(), id: None },
        issued_at: now,
        expires_at: now + Duration::from_secs(60),
        id,
    }
}

/// Tokens made by the second, beside the bare signature over as many bytes.
pub(super) fn mint(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let (tokens, key) = (tokens()?, SigningKey::<Receipts>::generate(Algorithm::EdDsa)?);
    let claims = claims(1);
    let token = tokens.mint(&claims)?;
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        black_box(key.sign(black_box(token.as_bytes()))?);
        Ok(())
    })?;
    let ours = timed(this.effort.rounds, batch, |()| {
        black_box(tokens.mint(black_box(&claims))?);
        Ok(())
    })?;
    let note = format!("{ours:.1} µs for a token of {} bytes; {bare:.1} µs for Ed25519 over them", token.len());
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}

/// Tokens that were never seen before, by the second, beside the bare verification of one signature.
pub(super) fn verify(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let (tokens, key) = (tokens()?, SigningKey::<Receipts>::generate(Algorithm::EdDsa)?);
    let now = claims(0).issued_at;
    let token = tokens.mint(&claims(0))?;
    let signature = key.sign(token.as_bytes())?;
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        ensure!(key.public().verify::<Receipts>(black_box(token.as_bytes()), &signature), "the bare signature is good");
        Ok(())
    })?;
    let mut id = 0;
    let fresh = || {
        let made = (0..BATCH).map(|_| {
            id += 1;
            Ok(tokens.mint(&claims(id))?)
        });
        made.collect()
    };
    let ours = timed(this.effort.rounds, fresh, |token| {
        black_box(tokens.verify(black_box(&token), now)?);
        Ok(())
    })?;
    let again = timed(this.effort.rounds, batch, |()| {
        black_box(tokens.verify(black_box(&token), now)?);
        Ok(())
    })?;
    let note = format!("{ours:.1} µs for a new token, {again:.2} µs for one seen before; {bare:.1} µs for Ed25519 alone");
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}
