//! Structured field values (RFC 8941) as the signature headers have them, and how they are written.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Integer(i64),
    /// In thousandths: there are never more than three digits after the point.
    Decimal(i64),
    Text(String),
    Token(String),
    Bytes(Vec<u8>),
    Boolean(bool),
}

pub(super) type Parameters = Vec<(String, Bare)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub value: Bare,
    pub parameters: Parameters,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InnerList {
    pub items: Vec<Item>,
    pub parameters: Parameters,
}

impl InnerList {
    pub(super) fn parameter(&self, name: &str) -> Option<&Bare> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DictionaryMember {
    Item(Item),
    List(InnerList),
}

impl fmt::Display for Bare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Decimal(thousandths) => {
                let sign = if *thousandths < 0 { "-" } else { "" };
                let fraction = format!("{:03}", thousandths.abs() % 1_000);
                let fraction = fraction.trim_end_matches('0');
                write!(f, "{sign}{}.{}", thousandths.abs() / 1_000, if fraction.is_empty() { "0" } else { fraction })
            }
            Self::Text(text) => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            Self::Token(token) => f.write_str(token),
            Self::Bytes(bytes) => write!(f, ":{}:", STANDARD.encode(bytes)),
            Self::Boolean(value) => f.write_str(if *value { "?1" } else { "?0" }),
        }
    }
}

fn show_parameters(parameters: &Parameters, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    parameters.iter().try_for_each(|(key, value)| match value {
        Bare::Boolean(true) => write!(f, ";{key}"),
        value => write!(f, ";{key}={value}"),
    })
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        show_parameters(&self.parameters, f)
    }
}

impl fmt::Display for InnerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (at, item) in self.items.iter().enumerate() {
            write!(f, "{}{item}", if at == 0 { "" } else { " " })?;
        }
        f.write_str(")")?;
        show_parameters(&self.parameters, f)
    }
}
