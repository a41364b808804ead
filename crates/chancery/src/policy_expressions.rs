//! The conditions of `[[policy.rules]]`, written in CEL: understood and bounded when the config is read, worked out for each call.

mod facts;
mod faults;
mod inspect;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use cel::objects::Value;
use cel::{Context, Env, ExecutionError, Program};
use chancery_rules::policy::{CallFacts, Expression, RuleConfig, Rules};

use self::facts::Variables;
pub(crate) use self::faults::place_in_condition;

/// How many bytes a condition may have. What it costs to work one out grows with its text and with nothing else.
pub(crate) const MAX_EXPRESSION: usize = 2_048;
/// How deep a condition may be nested, for each level takes stack when it is worked out. A sum is nested as deep as it has terms;
/// `&&` and `||` may join as many as they like.
pub(crate) const MAX_NESTING: usize = 24;

/// What the parser gets to work on: it needs a third of this at most for what is left after the brackets were counted.
const PARSER_STACK: usize = 32 << 20;

/// Reads conditions. All of them share what they have in common.
#[derive(Clone)]
pub(crate) struct Conditions {
    env: Arc<Env>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { env: Arc::new(Env::stdlib()) }
    }
}

impl Conditions {
    /// The rules of a config, or every fault of them, each with its rule and place.
    pub(crate) fn rules(&self, configs: &[RuleConfig]) -> Result<Rules, Vec<String>> {
        if configs.is_empty() {
            return Ok(Rules::default());
        }
        Rules::new(configs, |text| self.read(text).map(|condition| Box::new(condition) as _))
    }

    pub(crate) fn read(&self, text: &str) -> Result<CelCondition, String> {
        if text.len() > MAX_EXPRESSION {
            return Err(format!("it has {} bytes, a condition has at most {MAX_EXPRESSION}", text.len()));
        }
        inspect::check_brackets(text)?;
        let program = std::thread::scope(|scope| {
            let parser = std::thread::Builder::new().name("policy parser".to_owned()).stack_size(PARSER_STACK);
            let parsed = parser
                .spawn_scoped(scope, || self.parse(text))
                .map_err(|fault| format!("no thread for its parser could be started: {fault}"))?;
            parsed.join().map_err(|_| "the parser failed on it".to_owned())?
        })?;
        let condition = CelCondition { text: text.into(), program, env: self.env.clone() };
        condition.try_out()?;
        Ok(condition)
    }

    /// What is too deep is not only found but also dropped in here.
    fn parse(&self, text: &str) -> Result<Program, String> {
        // Later faults of the parser are consequences of the first.
        let program = self.env.compile(text).map_err(|faults| faults::of_parser(text, faults.errors.first()))?;
        inspect::check(&program).map_err(|fault| faults::at(inspect::place(text, &program, fault.node), &fault.what))?;
        Ok(program)
    }
}

impl fmt::Debug for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Conditions")
    }
}

pub(crate) struct CelCondition {
    text: Box<str>,
    program: Program,
    env: Arc<Env>,
}

impl CelCondition {
    fn work_out(&self, facts: &CallFacts<'_>) -> Result<Value, ExecutionError> {
        let variables = Variables::of(facts);
        let mut context = Context::with_env(self.env.clone());
        context.set_variable_resolver(&variables);
        self.program.execute(&context)
    }

    /// There are no types before a call comes; with one made up, what can never work shows at once.
    fn try_out(&self) -> Result<(), String> {
        use ExecutionError::{NoSuchOverload, UnexpectedType, UnsupportedBinaryOperator, ValuesNotComparable};
        match self.work_out(&facts::made_up()) {
            Err(
                fault @ (NoSuchOverload(_) | UnexpectedType { .. } | UnsupportedBinaryOperator(..) | ValuesNotComparable(..)),
            ) => Err(faults::of_evaluation(&fault)),
            Ok(Value::Bool(_)) | Err(_) => Ok(()),
            Ok(other) => Err(faults::no_condition(&other)),
        }
    }
}

impl Expression for CelCondition {
    fn holds(&self, facts: &CallFacts<'_>) -> Result<bool, String> {
        match self.work_out(facts) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(faults::no_condition(&other)),
            Err(fault) => Err(faults::of_evaluation(&fault)),
        }
    }

    fn asks_for_money(&self) -> bool {
        // By its text: a mention that is none costs time and nothing else.
        self.text.contains(facts::MONEY)
    }
}

impl fmt::Debug for CelCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
