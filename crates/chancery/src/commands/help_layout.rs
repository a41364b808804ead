//! Lays the examples and remarks of help texts out for a terminal of 100 columns, so that none of their lines is broken by chance.

use clap::Command;

const WIDTH: usize = 100;
/// Longer commands have their remark on the next line, and do not move the remarks of the others.
const WIDEST_COMMAND: usize = 58;

/// The command with the texts below its options laid out, and those of its subcommands.
pub(super) fn laid_out(mut command: Command) -> Command {
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(fitted(&text));
    }
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, laid_out))
}

/// A paragraph of prose is one line, which clap breaks at the width of the terminal. Lists are aligned.
fn fitted(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| match paragraph.contains("\n  ") {
        true => list(paragraph),
        false => paragraph.split_whitespace().collect::<Vec<_>>().join(" "),
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The heading of a list, and its rows: what to type, and what it does.
fn list(paragraph: &str) -> String {
    let (heading, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
    let mut rows: Vec<(&str, String)> = Vec::new();
    for line in rest.lines() {
        match (line.strip_prefix("  ").filter(|row| !row.starts_with(' ')), rows.last_mut()) {
            (Some(row), _) => {
                let (typed, remark) = row.split_once("  ").unwrap_or((row, ""));
                rows.push((typed, remark.trim().to_owned()));
            }
            (None, Some((_, remark))) => *remark = format!("{remark} {}", line.trim()).trim().to_owned(),
            (None, None) => {}
        }
    }
    let length = |text: &str| text.chars().count();
    let commands = rows.iter().filter(|(_, remark)| !remark.is_empty()).map(|(typed, _)| length(typed));
    let column = commands.filter(|length| *length <= WIDEST_COMMAND).max().unwrap_or_default();
    let mut lines = vec![heading.to_owned()];
    for (typed, remark) in &rows {
        if remark.is_empty() {
            lines.push(format!("  {typed}"));
        } else if length(typed) <= column && 2 + column + 2 + length(remark) <= WIDTH {
            lines.push(format!("  {typed:column$}  {remark}"));
        } else {
            lines.push(format!("  {typed}\n      {remark}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::command_line;
    use super::*;

    #[test]
    fn remarks_stand_beside_their_commands_where_they_fit_and_below_them_otherwise() {
        let long = "word ".repeat(16);
        let text = format!("Examples:\n  a b   first\n  c     {long}\n        more\n  d\n\nProse over\ntwo lines.");
        let expected = format!("Examples:\n  a b  first\n  c    {} more\n  d\n\nProse over two lines.", long.trim());
        assert_eq!(fitted(&text), expected);
        let longer = "word ".repeat(20);
        assert_eq!(fitted(&format!("Examples:\n  a  {longer}")), format!("Examples:\n  a\n      {}", longer.trim()));
    }

    fn check(command: &Command, name: &str, checked: &mut usize) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("  ")) {
            *checked += 1;
            let is_command_alone = !line.trim_start().contains("  ");
            assert!(line.chars().count() <= WIDTH || is_command_alone, "{name}: {line}");
        }
        command.get_subcommands().for_each(|one| check(one, &format!("{name} {}", one.get_name()), checked));
    }

    #[test]
    fn no_remark_of_a_help_text_is_wider_than_a_terminal() {
        let mut checked = 0;
        check(&command_line(), "chancery", &mut checked);
        assert!(checked > 100, "only {checked} lines were found");
    }
}
