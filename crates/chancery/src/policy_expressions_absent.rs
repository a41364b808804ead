//! Stands in for the conditions of `[[policy.rules]]` in a build without the feature `policy-cel`: rules with conditions are refused.

use chancery_rules::policy::{RuleConfig, Rules};

/// Reads no condition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions(());

impl Conditions {
    /// A config without rules has nothing to be read. Every other config is refused.
    pub(crate) fn rules(&self, configs: &[RuleConfig]) -> Result<Rules, Vec<String>> {
        if configs.is_empty() {
            return Ok(Rules::default());
        }
        Err(vec!["this build does not have the feature `policy-cel`".to_owned()])
    }
}

/// No condition was read, so no fault has a place in one.
pub(crate) fn place_in_condition(_: &str) -> Option<(usize, usize)> {
    None
}
