//! Looks through a condition before it is ever worked out: what it names, how deep it goes, and that it loops in no loop.

use cel::Program;
use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::MAX_NESTING;
use super::facts::{MONEY, NAMES};
use crate::config::nearest;

/// How many brackets may be open at once: each takes the parser a few hundred kilobytes of stack.
pub(super) const MAX_BRACKETS: usize = 32;

/// What the standard library has for the types there are. Operators have names no function can have.
const FUNCTIONS: [&str; 9] = ["size", "contains", "startsWith", "endsWith", "int", "double", "string", "bool", "type"];

pub(super) struct ExpressionFault {
    pub(super) node: u64,
    pub(super) what: String,
}

/// The parser calls itself for every open bracket, so they are counted before it sees them; those in texts, too.
pub(super) fn check_brackets(text: &str) -> Result<(), String> {
    let mut open = 0_usize;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_BRACKETS {
            let (line, column) = line_and_column(text, offset);
            return Err(format!("more than {MAX_BRACKETS} brackets are open at line {line} column {column} of the condition"));
        }
    }
    Ok(())
}

pub(super) fn check(program: &Program) -> Result<(), ExpressionFault> {
    Walk::default().visit(program.expression(), 0)
}

/// Where a node was written: line and column, from 1.
pub(super) fn place(text: &str, program: &Program, node: u64) -> (usize, usize) {
    let offset = program.source_info().offset_for(node).map_or(0, |(start, _)| start as usize);
    line_and_column(text, offset)
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let meant = nearest(name, known.iter().copied()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("there is no {kind} {name:?}, only {}{meant}", known.join(", "))
}

/// The fault of a comparison of a name with a value of another type: its result is the same for every call.
fn never_equal(call: &CallExpr) -> Option<String> {
    let [left, right] = call.args.as_slice() else { return None };
    if !matches!(call.func_name.as_str(), "_==_" | "_!=_") {
        return None;
    }
    let (name, literal) = match (&left.expr, &right.expr) {
        (Expr::Ident(name), Expr::Literal(literal)) | (Expr::Literal(literal), Expr::Ident(name)) => (name.as_str(), literal),
        _ => return None,
    };
    let (number, text) = (["a whole number", "a number"], "a text");
    let kind = match name {
        "depth" => number[0],
        MONEY => number[1],
        name if NAMES.contains(&name) => text,
        _ => return None,
    };
    let other = match literal {
        LiteralValue::Boolean(_) => "true or false",
        LiteralValue::Int(_) | LiteralValue::UInt(_) => number[0],
        LiteralValue::Double(_) => number[1],
        LiteralValue::String(_) => text,
        LiteralValue::Bytes(_) | LiteralValue::Null => return None,
    };
    let is_same = kind == other || number.contains(&kind) && number.contains(&other);
    (!is_same).then(|| format!("`{name}` is {kind} and never equals {other}"))
}

#[derive(Default)]
struct Walk<'a> {
    /// What the loop around here gives names to.
    bound: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, node: &'a IdedExpr, depth: usize) -> Result<(), ExpressionFault> {
        let fault = |what: String| Err(ExpressionFault { node: node.id, what });
        if depth > MAX_NESTING {
            return fault(format!("it is nested more than {MAX_NESTING} deep"));
        }
        let below = depth + 1;
        match &node.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) if self.bound.contains(&name.as_str()) || NAMES.contains(&name.as_str()) => Ok(()),
            Expr::Ident(name) => fault(unknown("name", name, &NAMES)),
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                let operator = !name.starts_with(|first: char| first.is_ascii_alphabetic());
                if !operator && !FUNCTIONS.contains(&name) {
                    return fault(unknown("function", name, &FUNCTIONS));
                }
                if let Some(what) = never_equal(call) {
                    return fault(what);
                }
                call.target.iter().try_for_each(|target| self.visit(target, below))?;
                call.args.iter().try_for_each(|argument| self.visit(argument, below))
            }
            Expr::Select(select) => self.visit(&select.operand, below),
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.visit(element, below)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self.visit(&entry.key, below).and_then(|()| self.visit(&entry.value, below)),
                EntryExpr::StructField(field) => self.visit(&field.value, below),
            }),
            Expr::Comprehension(looped) => {
                if !self.bound.is_empty() {
                    return fault("a loop in a loop takes too long".to_owned());
                }
                self.visit(&looped.iter_range, below)?;
                self.visit(&looped.accu_init, below)?;
                self.bound.extend([looped.iter_var.as_str(), looped.accu_var.as_str()]);
                self.bound.extend(looped.iter_var2.as_deref());
                let parts = [&looped.loop_cond, &looped.loop_step, &looped.result];
                let checked = parts.into_iter().try_for_each(|part| self.visit(part, below));
                self.bound.clear();
                checked
            }
            Expr::Struct(_) => fault("there are no messages to make".to_owned()),
            Expr::Unspecified => fault("it is empty".to_owned()),
        }
    }
}
