//! What a hop token says, and the bytes it says it in.

use chancery_protocol::{TaskId, Timestamp};
use uuid::Uuid;

use super::{HopTokenFault, MAX_HOP_TOKEN_LIFE, MintFault};

/// The form of the bytes, in the upper half of the flags.
const FORM: u8 = 0x10;
const HAS_USD: u8 = 0x01;
const HAS_TOKENS: u8 = 0x02;

/// The place of a task in its tree, for the one agent that works on it. Times are kept to the second, in which it is good as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopClaims {
    /// The task the token goes with; the parent of every call that carries it. It is a UUID.
    pub parent_task: TaskId,
    /// A digest of all else that the issuer has on record of the task, so that the token agrees with the record or is refused.
    pub place: PlaceDigest,
    pub budget: BudgetCaps,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// Random, so that two tokens of a task are not the same.
    pub id: u32,
}

/// The first bytes of a SHA-256 over the place of a task.
pub type PlaceDigest = [u8; 8];

/// What the task and the calls under it could spend when the token was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetCaps {
    /// In millionths; without it there is no cap.
    pub micro_usd: Option<u64>,
    pub tokens: Option<u64>,
}

impl HopClaims {
    /// The bytes of the claims: flags, task, place, issue time, life, id, and the caps there are. All numbers are big-endian.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) -> Result<(), MintFault> {
        let task = Uuid::try_parse(self.parent_task.as_str()).map_err(|_| MintFault::Unwritten)?;
        let issued = seconds(self.issued_at);
        // A token whose task may take less than a second would otherwise be over when it is made.
        let ends = seconds(self.expires_at).saturating_add(i64::from(self.expires_at.micros().rem_euclid(1_000_000) != 0));
        let life = ends.saturating_sub(issued).clamp(0, MAX_HOP_TOKEN_LIFE.as_secs().cast_signed());
        let BudgetCaps { micro_usd, tokens } = self.budget;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        bytes.push(FORM | flag(micro_usd.is_some(), HAS_USD) | flag(tokens.is_some(), HAS_TOKENS));
        bytes.extend_from_slice(task.as_bytes());
        bytes.extend_from_slice(&self.place);
        bytes.extend_from_slice(&u32::try_from(issued).map_err(|_| MintFault::Unwritten)?.to_be_bytes());
        bytes.extend_from_slice(&u16::try_from(life).map_err(|_| MintFault::Unwritten)?.to_be_bytes());
        bytes.extend_from_slice(&self.id.to_be_bytes());
        for cap in [micro_usd, tokens].into_iter().flatten() {
            bytes.extend_from_slice(&cap.to_be_bytes());
        }
        Ok(())
    }

    /// Reads what [`Self::write`] wrote, and nothing that is shorter, longer or of another form.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, HopTokenFault> {
        let mut bytes = ByteReader(bytes);
        let [flags] = bytes.take()?;
        if flags & !(HAS_USD | HAS_TOKENS) != FORM {
            return Err(HopTokenFault::Malformed("its form is not one of ours"));
        }
        let task = Uuid::from_bytes(bytes.take()?);
        let place = bytes.take()?;
        let issued = i64::from(u32::from_be_bytes(bytes.take()?));
        let life = i64::from(u16::from_be_bytes(bytes.take()?));
        if life > MAX_HOP_TOKEN_LIFE.as_secs().cast_signed() {
            return Err(HopTokenFault::Malformed("it lasts longer than a hop token may"));
        }
        let id = u32::from_be_bytes(bytes.take()?);
        let mut cap = |flag: u8| if flags & flag == 0 { Ok(None) } else { bytes.take().map(u64::from_be_bytes).map(Some) };
        let budget = BudgetCaps { micro_usd: cap(HAS_USD)?, tokens: cap(HAS_TOKENS)? };
        if !bytes.0.is_empty() {
            return Err(HopTokenFault::Malformed("it is longer than its claims"));
        }
        let time = |seconds: i64| Timestamp::from_micros(seconds.saturating_mul(1_000_000));
        Ok(Self {
            parent_task: task.hyphenated().to_string().as_str().into(),
            place,
            budget,
            issued_at: time(issued),
            expires_at: time(issued + life),
            id,
        })
    }
}

/// What is left to be read.
struct ByteReader<'a>(&'a [u8]);

impl ByteReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], HopTokenFault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(HopTokenFault::Malformed("it is shorter than its claims"))?;
        self.0 = rest;
        Ok(*taken)
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}
