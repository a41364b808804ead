//! What hop tokens cost: made and verified, beside the bare signature.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use chancery::protocol::Timestamp;
use chancery_identity::hop_token::{BudgetCaps, HopClaims, HopTokens};
use chancery_identity::keys::Receipts;
use chancery_identity::{Algorithm, KeyRing, KeyUse, SigningKey};

use super::identity::{BATCH, line, timed};
use super::{Match, Row};
use crate::report::{MeasuredRow, Pair, Unit};

fn tokens() -> Result<HopTokens> {
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::HopTokens, None, Algorithm::EdDsa, Timestamp::default())?;
    Ok(HopTokens::new("0a1b2c3d", &ring))
}

fn claims(id: u32) -> HopClaims {
    let now = Timestamp::from_micros(1_800_000_000_000_000);
    HopClaims {
        parent_task: "0193a4a0-7c1f-7d6b-8d0e-7f5a0c9b1e2d".into(),
        place: *b"12345678",
        budget: BudgetCaps { micro_usd: Some(50_000), tokens: None },
        issued_at: now,
        expires_at: now + Duration::from_secs(60),
        id,
    }
}

/// Tokens made by the second, beside the bare signature over as many bytes.
pub(super) fn mint(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let (tokens, key) = (tokens()?, SigningKey::<Receipts>::generate(Algorithm::EdDsa)?);
    let claims = claims(1);
    let token = tokens.mint(&claims, &[])?;
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        black_box(key.sign(black_box(token.as_bytes()))?);
        Ok(())
    })?;
    let ours = timed(this.effort.rounds, batch, |()| {
        black_box(tokens.mint(black_box(&claims), &[])?);
        Ok(())
    })?;
    let note = format!("{ours:.1} µs for a token of {} bytes; {bare:.1} µs for Ed25519 over them", token.len());
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}

/// Tokens verified by the second, beside the bare verification of one signature.
pub(super) fn verify(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let (tokens, key) = (tokens()?, SigningKey::<Receipts>::generate(Algorithm::EdDsa)?);
    let now = claims(0).issued_at;
    let token = tokens.mint(&claims(0), &[])?;
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
            Ok(tokens.mint(&claims(id), &[])?)
        });
        made.collect()
    };
    let ours = timed(this.effort.rounds, fresh, |token| {
        black_box(tokens.verify(black_box(&token), now)?);
        Ok(())
    })?;
    let note = format!("{ours:.1} µs for a token; {bare:.1} µs for Ed25519 alone");
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}
