//! Finds the key inside a value that a fault is about, by its place in the text.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

/// The path from a value to the innermost key whose value has the place, as `.caller.planner` or `[0].name`.
pub(super) fn inner_path(value: &Spanned<DeValue<'_>>, place: &Range<usize>) -> String {
    path_to(value, place).unwrap_or_default()
}

fn path_to(value: &Spanned<DeValue<'_>>, place: &Range<usize>) -> Option<String> {
    let inside = match value.get_ref() {
        // The message about an unknown key has the key itself.
        DeValue::Table(table) => table.iter().find_map(|(key, value)| match key.span() == *place {
            true => Some(String::new()),
            false => path_to(value, place).map(|rest| format!(".{}{rest}", key.get_ref())),
        }),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| match item.get_ref() {
            DeValue::Table(_) => path_to(item, place).map(|rest| format!("[{index}]{rest}")),
            _ => None,
        }),
        _ => None,
    };
    let span = value.span();
    inside.or_else(|| (span.start <= place.start && place.end <= span.end).then(String::new))
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[test]
    fn a_fault_names_the_whole_path_of_its_key() {
        for (text, fault) in [
            (
                "[budget.tree]\nmax_usd = 'ten'\n",
                "2:11: budget.tree.max_usd: an amount of USD is a decimal number such as \"0.05\"",
            ),
            (
                "[limits]\n[budget.caller.a]\nmax_usd = 1\nwindow = '1h'\n[budget.caller.b]\nmax_usd = 1\n",
                "5:1: budget.caller.b: needs `window`",
            ),
            ("[policy.caller.x]\nmax_concurrency = 'three'\n", "2:19: policy.caller.x.max_concurrency: expected"),
            ("[policy.caller.x]\nmax_concurency = 3\n", "2:1: policy.caller.x: unknown key `max_concurency`"),
            ("[[policy.rules]]\nname = 'r'\ndeny_wen = 'depth > 3'\n", "3:1: policy.rules[0]: unknown key `deny_wen`"),
        ] {
            let faults = Config::parse(text).unwrap_err();
            assert!(faults.iter().any(|found| found.to_string().starts_with(fault)), "{text}{faults:#?}");
        }
    }
}
