//! What ProtoJSON accepts beyond the plain form: null for unset, numbers in strings, two base64 alphabets.

use base64::Engine as _;
use base64::alphabet;
use base64::display::Base64Display;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
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
fn decode_base64(text: &str) -> Result<Bytes, base64::DecodeError> {
    let engine = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    engine.decode(text).map(Bytes::from)
}

/// Bytes that were read from base64 text. A type of its own, so that faults name the member it stands in.
#[derive(Debug)]
pub struct Base64(pub Bytes);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text")
            }

            // The text may be megabytes: it is read where it stands.
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
                decode_base64(text).map(Base64).map_err(|fault| E::custom(format_args!("not base64: {fault}")))
            }
        }

        from.deserialize_str(Text)
    }
}

/// Bytes to write as the one form of base64 that every reader takes: standard alphabet, padded. Written piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct AsBase64<'a>(pub &'a [u8]);

impl Serialize for AsBase64<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Base64Display::new(self.0, &base64::engine::general_purpose::STANDARD))
    }
}

/// A list of shared values, `null` for empty.
pub fn arcs<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<Arc<T>>, D::Error> {
    Ok(Option::<Vec<Arc<T>>>::deserialize(from)?.unwrap_or_default())
}
