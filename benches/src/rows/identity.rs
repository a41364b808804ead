//! What identity costs: signing and verifying cards beside the bare signature, and each credential check as a share of a send.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use chancery_identity::cards::{CardShape, KeyHint, VerifyRules, sign_card, verify_card_signatures};
use chancery_identity::keys::{Cards, Receipts};
use chancery_identity::{Algorithm, SigningKey};
use serde_json::Value;

use super::{Match, Row};
use crate::credentials::{Credential, Wallet};
use crate::report::{MeasuredRow, Pair, RowTarget, Unit, median};

/// Calls that are timed together: one alone is too short for the clock.
pub(super) const BATCH: usize = 500;

/// Median microseconds of one call over rounds of batches. Calls that need something prepared get it before the clock starts.
pub(super) fn timed<T>(
    rounds: usize,
    mut prepare: impl FnMut() -> Result<Vec<T>>,
    mut call: impl FnMut(T) -> Result<()>,
) -> Result<f64> {
    let mut each = Vec::new();
    for _ in 0..rounds.max(3) {
        let prepared = prepare()?;
        let count = prepared.len();
        let start = Instant::now();
        for one in prepared {
            call(one)?;
        }
        each.push(start.elapsed().as_secs_f64() * 1e6 / count as f64);
    }
    Ok(median(each.into_iter()))
}

pub(super) fn line(row: &Row, unit: Unit, value: Pair, ratio: f64, target: Option<RowTarget>, note: String) -> MeasuredRow {
    MeasuredRow {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        unit,
        value,
        ratio,
        spread: (f64::NAN, f64::NAN),
        target,
        p50_us: None,
        p99_us: None,
        p99_ratio: None,
        p99_target: None,
        processor_target: None,
        processor_us: None,
        note: Some(note),
    }
}

fn card(key: &SigningKey<Cards>) -> Result<(Value, String)> {
    let mut card = chancery::new_card("Bench", "Is signed and verified.");
    card.supported_interfaces.push(chancery::protocol::AgentInterface {
        url: "https://agent.example.org/".to_owned(),
        protocol_binding: "JSONRPC".to_owned(),
        tenant: None,
        protocol_version: "1.0".to_owned(),
    });
    let plain = serde_json::to_value(&card)?;
    let mut signed = plain.clone();
    sign_card(&mut signed, CardShape::V1_0, &[key], None)?;
    Ok((plain, signed.to_string()))
}

/// Cards signed by the second, beside the same key's bare signature over as many bytes.
pub(super) fn sign(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let key = SigningKey::<Cards>::generate(Algorithm::EdDsa)?;
    let bare_key = SigningKey::<Receipts>::generate(Algorithm::EdDsa)?;
    let (plain, signed) = card(&key)?;
    let bytes = plain.to_string().into_bytes();
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        black_box(bare_key.sign(black_box(&bytes))?);
        Ok(())
    })?;
    let ours = timed(
        this.effort.rounds,
        || Ok(vec![plain.clone(); BATCH]),
        |mut card| Ok(sign_card(black_box(&mut card), CardShape::V1_0, &[&key], None)?),
    )?;
    let note = format!("one EdDSA signature on a card of {} bytes; bare is Ed25519 over its bytes", signed.len());
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}

/// Cards verified by the second, from text, beside the bare verification of one signature.
pub(super) fn verify(row: &Row, this: &Match<'_>) -> Result<MeasuredRow> {
    let key = SigningKey::<Cards>::generate(Algorithm::EdDsa)?;
    let bare_key = SigningKey::<Receipts>::generate(Algorithm::EdDsa)?;
    let (plain, signed) = card(&key)?;
    let bytes = plain.to_string().into_bytes();
    let bare_signature = bare_key.sign(&bytes)?;
    let batch = || Ok(vec![(); BATCH]);
    let bare = timed(this.effort.rounds, batch, |()| {
        ensure!(bare_key.public().verify::<Receipts>(black_box(&bytes), &bare_signature), "the bare signature is good");
        Ok(())
    })?;
    let public = key.public().clone();
    let keys = move |_: &KeyHint<'_>| vec![public.clone()];
    let ours = timed(this.effort.rounds, batch, |()| {
        black_box(verify_card_signatures(black_box(&signed), &keys, &VerifyRules::default())?);
        Ok(())
    })?;
    let note = format!("parsing, canonical form and one signature of a card of {} bytes; bare is Ed25519 alone", signed.len());
    Ok(line(row, Unit::PerSecond, Pair { yardstick: 1e6 / bare, chancery: 1e6 / ours }, bare / ours, None, note))
}

/// One kind of credential: microseconds of its check beside those of a whole send through the router, in this process.
pub(super) fn credential(row: &Row, kind: Credential, this: &Match<'_>) -> Result<MeasuredRow> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wallet = Wallet::new().context("a caller of each kind")?;
    let sender = runtime.block_on(crate::credentials::Sender::new())?;
    let batch = || Ok(vec![(); BATCH]);
    let send = timed(this.effort.rounds, batch, |()| runtime.block_on(sender.send()))?;
    let check = timed(this.effort.rounds, || wallet.requests(kind, BATCH), |request| runtime.block_on(wallet.check(&request)))?;
    let share = check / send;
    let note = format!("{:.1} % of a send", share * 100.0);
    let target = kind.at_most().map(RowTarget::RatioAtMost);
    Ok(line(row, Unit::Microseconds, Pair { yardstick: send, chancery: check }, share, target, note))
}
