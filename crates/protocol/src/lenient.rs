//! What ProtoJSON accepts beyond the plain form: null for unset, numbers in strings, two base64 alphabets.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// `null` means the default, as everywhere in ProtoJSON.
pub fn null_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Proto3 strings have no presence: an empty one is an absent one.
pub fn non_empty<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()).map(T::from))
}

/// Keeps an explicit `null` apart from an absent member, for the one place where null is a value.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// An int32 as a number or as a decimal string.
pub fn int32<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    struct Int32;

    impl<'de> Visitor<'de> for Int32 {
        type Value = Option<i32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a 32-bit integer")
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
            i32::try_from(value).map(Some).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
            i32::try_from(value).map(Some).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
            // ProtoJSON lets an integer be written as 5.0 or 5e0.
            if value.fract() == 0.0 && value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
                return Ok(Some(value as i32));
            }
            Err(E::invalid_value(de::Unexpected::Float(value), &self))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            text.parse().map(Some).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    from.deserialize_any(Int32)
}

const EITHER_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent).with_decode_allow_trailing_bits(false);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, EITHER_PADDING);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, EITHER_PADDING);

/// Reads either base64 alphabet, padded or not; both occur in the wild.
pub(crate) fn decode_base64(text: &str) -> Result<Bytes, base64::DecodeError> {
    let engine = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    engine.decode(text).map(Bytes::from)
}

/// Writes the one form every reader takes: standard alphabet, padded.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub(crate) mod base64_bytes {
    //! Serde form of a bytes field.
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        let Some(text) = Option::<std::borrow::Cow<'de, str>>::deserialize(from)? else {
            return Ok(None);
        };
        decode_base64(&text).map(Some).map_err(|fault| de::Error::custom(format_args!("not base64: {fault}")))
    }

    pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode_base64(bytes))
    }
}

/// A list of shared values, `null` for empty.
pub fn arcs<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<Arc<T>>, D::Error> {
    Ok(Option::<Vec<Arc<T>>>::deserialize(from)?.unwrap_or_default())
}
