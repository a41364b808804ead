//! An amount of USD in a config: a decimal string or a number, to the millionth.

use std::fmt;

use serde::Serializer;
use serde::de::{self, Deserializer, Visitor};

use crate::MicroUsd;

const MOST_USD: u64 = 9_000_000_000;

pub(super) fn serialize<S: Serializer>(amount: &Option<MicroUsd>, to: S) -> Result<S::Ok, S::Error> {
    match amount {
        Some(amount) => to.collect_str(amount),
        None => to.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MicroUsd>, D::Error> {
    struct Amount;

    impl Visitor<'_> for Amount {
        type Value = MicroUsd;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an amount of USD from 0 to {MOST_USD}, with at most six decimals")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<MicroUsd, E> {
            let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
                return Err(E::invalid_value(de::Unexpected::Str(text), &self));
            }
            let micros = format!("{whole}{decimals:0<6}").parse().ok().filter(|micros| *micros <= MOST_USD as i64 * 1_000_000);
            micros.map(MicroUsd).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<MicroUsd, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<MicroUsd, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<MicroUsd, E> {
            self.visit_str(&number.to_string())
        }
    }

    from.deserialize_any(Amount).map(Some)
}
