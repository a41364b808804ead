//! The faults of conditions in the words of an operator, without the texts of the parser and the types of CEL.

use cel::objects::Value;
use cel::{ExecutionError, ParseError};

/// What stands between a fault and its line.
const LINE: &str = " (line ";
const OF_CONDITION: &str = " of the condition)";

/// A fault with its place in the condition.
pub(super) fn at((line, column): (usize, usize), what: &str) -> String {
    format!("{what}{LINE}{line} column {column}{OF_CONDITION}")
}

/// The line and column that [`at`] wrote.
pub(crate) fn place_in_condition(fault: &str) -> Option<(usize, usize)> {
    let (line, column) = fault.strip_suffix(OF_CONDITION)?.rsplit_once(LINE)?.1.split_once(" column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Where the parser stopped, and at what.
pub(super) fn of_parser(text: &str, fault: Option<&ParseError>) -> String {
    let place = fault.map_or((1, 1), |fault| fault.pos);
    let place = (usize::try_from(place.0).unwrap_or(1).max(1), usize::try_from(place.1).unwrap_or(1).max(1));
    let rest = text.lines().nth(place.0 - 1).and_then(|line| line.get(place.1 - 1..)).unwrap_or_default();
    let following: String = text.lines().skip(place.0).collect();
    let what = match token(rest) {
        _ if text.trim().is_empty() => "the condition is empty".to_owned(),
        "" if following.trim().is_empty() => "the condition ends too early: a value or a bracket is missing".to_owned(),
        "" => "a value or an operator is missing at the end of the line".to_owned(),
        "\"" | "'" => "a text has no closing quote, or an unknown escape".to_owned(),
        "=" => "`=` is no operator of CEL; compare with `==`".to_owned(),
        "and" => "`and` is no operator of CEL; write `&&`".to_owned(),
        "or" => "`or` is no operator of CEL; write `||`".to_owned(),
        token if fault.is_some_and(|fault| fault.msg.contains("reserved identifier")) => {
            format!("`{token}` is a reserved word of CEL")
        }
        token => format!("`{token}` is not expected here"),
    };
    at(place, &what)
}

/// The word, number or sign that a text begins with.
fn token(text: &str) -> &str {
    let text = text.trim_start();
    let is_word = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    match end {
        0 => text.chars().next().map_or("", |first| &text[..first.len_utf8()]),
        end => &text[..end],
    }
}

/// The value of a condition that is neither true nor false.
pub(super) fn no_condition(value: &Value) -> String {
    format!("its value is {}; a condition is true or false", kind(&value.type_of().to_string()))
}

/// Why a condition could not be evaluated.
pub(super) fn of_evaluation(fault: &ExecutionError) -> String {
    let name = |value: &Value| kind(&value.type_of().to_string());
    match fault {
        ExecutionError::NoSuchOverload(overload) => {
            let kinds: Vec<_> = overload.argument_types().iter().map(|name| kind(name)).collect();
            format!("`{}` does not apply to {}", sign(overload.function()), kinds.join(" and "))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("`{}` does not apply to {} and {}", sign(operator), name(left), name(right))
        }
        ExecutionError::ValuesNotComparable(left, right) => format!("{} and {} cannot be compared", name(left), name(right)),
        ExecutionError::UnexpectedType { got, want } => format!("it expected {}, got {}", kind(want), kind(got)),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, and got {actual}")
        }
        ExecutionError::NoSuchKey(key) => format!("there is no key `{key}`"),
        ExecutionError::UndeclaredReference(name) => format!("there is no name `{name}`"),
        ExecutionError::FunctionError { function, .. } => format!("`{function}` cannot convert its argument"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number does not fit into 64 bits".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "an index is outside of its list".to_owned(),
        _ => "it cannot be evaluated".to_owned(),
    }
}

/// An operator as it is written in a condition. CEL has them under names like `_>_` and `greater`.
fn sign(function: &str) -> &str {
    match function {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        other => other.trim_matches(['_', '@']),
    }
}

fn kind(name: &str) -> String {
    let plain = match name {
        "int" | "uint" => "a whole number",
        "double" => "a number",
        "string" => "a text",
        "bool" => "true or false",
        "list" => "a list",
        "map" => "a map",
        "null_type" | "null" => "null",
        other => return format!("a value of the type {other}"),
    };
    plain.to_owned()
}
