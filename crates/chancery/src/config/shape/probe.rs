//! A deserializer that has nothing to give: it follows a path into a type and writes down what the type asks for there.

use std::cell::Cell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// One step on the way into a type.
#[derive(Clone, Copy)]
pub(super) enum ProbeStep {
    Field(&'static str),
    Variant(&'static str),
    /// To what a list or a table of any keys is made of.
    Inside,
    /// Where anything is taken: a value of this kind.
    As(Scalar),
    Number(i64),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Bool,
    Integer,
    Float,
    Text,
    List,
}

/// What a type asks for.
#[derive(Clone, Copy)]
pub(super) enum ProbedType {
    Bool,
    Integer { least: i64, most: i64 },
    Number,
    Text,
    List,
    Table,
    Struct(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    Anything,
    Nothing,
}

/// What the type asks for at the end of the way, if the way leads anywhere.
pub(super) fn ask<T: DeserializeOwned>(steps: &[ProbeStep]) -> Option<ProbedType> {
    let asked = Cell::new(None);
    let _ = T::deserialize(Probe { steps, asked: &asked });
    asked.get()
}

/// Whether the value at the end of the way is taken. What is missing beside it does not count.
pub(super) fn accepts<T: DeserializeOwned>(steps: &[ProbeStep]) -> bool {
    let asked = Cell::new(None);
    match T::deserialize(Probe { steps, asked: &asked }) {
        Ok(_) | Err(ProbeStop::Missing) => true,
        // A text that is refused for what it says is taken for a text.
        Err(ProbeStop::Refused) => matches!(steps.last(), Some(ProbeStep::As(_))),
        Err(ProbeStop::WrongKind) => false,
    }
}

/// Why a probe ended.
#[derive(Debug)]
pub(super) enum ProbeStop {
    WrongKind,
    Missing,
    Refused,
}

impl fmt::Display for ProbeStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only asking")
    }
}

impl std::error::Error for ProbeStop {}

impl de::Error for ProbeStop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Refused
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::WrongKind
    }

    fn missing_field(_: &'static str) -> Self {
        Self::Missing
    }
}

#[derive(Clone, Copy)]
struct Probe<'a> {
    steps: &'a [ProbeStep],
    asked: &'a Cell<Option<ProbedType>>,
}

impl Probe<'_> {
    /// Ends the probe with the type that the reader wants.
    fn found<T>(self, asked: ProbedType) -> Result<T, ProbeStop> {
        if self.steps.is_empty() {
            self.asked.set(Some(asked));
        }
        Err(ProbeStop::Refused)
    }

    fn integer<'de, V: Visitor<'de>>(self, visitor: V, least: i64, most: i64) -> Result<V::Value, ProbeStop> {
        match (self.steps, least) {
            ([ProbeStep::Number(number)], 0) => visitor.visit_u64(number.unsigned_abs()),
            ([ProbeStep::Number(number)], _) => visitor.visit_i64(*number),
            _ => self.found(ProbedType::Integer { least, most }),
        }
    }

    fn after(self) -> Self {
        Self { steps: self.steps.get(1..).unwrap_or_default(), ..self }
    }

    fn members<'de, V: Visitor<'de>>(self, visitor: V, asked: ProbedType) -> Result<V::Value, ProbeStop> {
        match self.steps.first() {
            Some(ProbeStep::Field(name)) => visitor.visit_map(One { key: name, probe: Some(self.after()) }),
            Some(ProbeStep::Inside) => visitor.visit_map(One { key: "name", probe: Some(self.after()) }),
            _ => self.found(asked),
        }
    }

    fn items<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        match self.steps.first() {
            Some(ProbeStep::Inside) => visitor.visit_seq(One { key: "", probe: Some(self.after()) }),
            _ => self.found(ProbedType::List),
        }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ProbeStop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        match self.steps.first() {
            Some(ProbeStep::As(Scalar::Bool)) => visitor.visit_bool(true),
            Some(ProbeStep::As(Scalar::Integer)) => visitor.visit_i64(1),
            Some(ProbeStep::As(Scalar::Float)) => visitor.visit_f64(0.5),
            Some(ProbeStep::As(Scalar::Text)) => visitor.visit_str(""),
            Some(ProbeStep::As(Scalar::List)) => visitor.visit_seq(One { key: "", probe: Some(self.after()) }),
            _ => self.found(ProbedType::Anything),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Bool)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, i8::MIN.into(), i8::MAX.into())
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, i16::MIN.into(), i16::MAX.into())
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, i32::MIN.into(), i32::MAX.into())
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, i64::MIN, i64::MAX)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, 0, u8::MAX.into())
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, 0, u16::MAX.into())
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, 0, u32::MAX.into())
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.integer(visitor, 0, i64::MAX)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Number)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Text)
    }

    fn deserialize_char<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbeStop> {
        self.found(ProbedType::Text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ProbeStop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.items(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeStop> {
        self.members(visitor, ProbedType::Table)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeStop> {
        self.members(visitor, ProbedType::Struct(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeStop> {
        match self.steps.first() {
            Some(ProbeStep::Variant(name)) => visitor.visit_enum(One { key: name, probe: Some(self.after()) }),
            _ => self.found(ProbedType::OneOf(variants)),
        }
    }

    forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any }
}

/// A list or a table with one thing in it, or a variant.
struct One<'a> {
    key: &'static str,
    probe: Option<Probe<'a>>,
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = ProbeStop;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ProbeStop> {
        self.probe.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = ProbeStop;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ProbeStop> {
        let key: StrDeserializer<'_, ProbeStop> = self.key.into_deserializer();
        self.probe.map(|_| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ProbeStop> {
        self.probe.take().ok_or(ProbeStop::Refused).and_then(|probe| seed.deserialize(probe))
    }
}

impl<'de> EnumAccess<'de> for One<'_> {
    type Error = ProbeStop;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), ProbeStop> {
        let name: StrDeserializer<'_, ProbeStop> = self.key.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for One<'_> {
    type Error = ProbeStop;

    fn unit_variant(self) -> Result<(), ProbeStop> {
        self.probe.map_or(Err(ProbeStop::Refused), |probe| probe.found(ProbedType::Nothing))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ProbeStop> {
        self.probe.ok_or(ProbeStop::Refused).and_then(|probe| seed.deserialize(probe))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ProbeStop> {
        self.probe.ok_or(ProbeStop::Refused).and_then(|probe| probe.items(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, ProbeStop> {
        self.probe.ok_or(ProbeStop::Refused).and_then(|probe| probe.members(visitor, ProbedType::Struct(fields)))
    }
}
