//! The words of the command line: one for each thing, with those of earlier versions still understood.

use clap::Command;

use super::command_line;

/// What is typed with the word of an earlier version, and with the one of today.
const EARLIER: [(&str, &str); 16] = [
    ("tasks list", "tasks ls"),
    ("tasks list --state working --limit 3", "tasks ls --state working --limit 3"),
    ("tasks get T", "tasks show T"),
    ("agents list", "agents ls"),
    ("agents remove A", "agents rm A"),
    ("callers list", "callers ls"),
    ("callers revoke C", "callers rm C"),
    ("freeze list", "freeze ls"),
    ("send-task hello", "send hello"),
    ("send-task --stream hello", "send --stream hello"),
    ("discover https://agent.example.org", "card https://agent.example.org"),
    // These take what their successors take, under a name of their own.
    ("keys show", "keys ls"),
    ("memory grants", "memory grants ls"),
    ("memory grant W --to ID", "memory grants add W --to ID"),
    ("memory grant --to ID --can read", "memory grants add --to ID --can read"),
    ("memory revoke G", "memory grants rm G"),
];

/// Words that another one stands for. Help, examples and documentation have none of them as a command.
const NOT_SHOWN: [&str; 11] = [
    "tasks list",
    "tasks get",
    "agents list",
    "agents remove",
    "callers list",
    "callers revoke",
    "freeze list",
    "memory grant ",
    "memory revoke",
    "chancery keys show`",
    "memory grants\n",
];

/// Names that a test of the ADR (`a2a_cli`) wants in the help beside ours.
const OF_THE_ADR: [(&str, &str); 2] = [("chancery send", "send-task"), ("chancery card", "discover")];

/// Names of subcommands for which there is a shorter word.
const OTHER_WORDS: [&str; 9] = ["list", "get", "remove", "delete", "create", "describe", "revoke", "view", "update"];

fn parse(line: &str) -> Result<(Vec<String>, clap::ArgMatches), clap::Error> {
    // An id that is one, where the argument is checked.
    let line = line.replace("ID", "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let matches = command_line().try_get_matches_from(std::iter::once("chancery").chain(line.split_whitespace()))?;
    let (mut names, mut last) = (Vec::new(), &matches);
    while let Some((name, inner)) = last.subcommand() {
        names.push(name.to_owned());
        last = inner;
    }
    let last = last.clone();
    Ok((names, last))
}

/// Every command with the words that lead to it.
fn every_command(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
    for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
        let path = format!("{path} {}", one.get_name());
        every_command(one, &path, into);
        into.push((path, one.clone()));
    }
}

fn all() -> Vec<(String, Command)> {
    let mut line = command_line();
    line.build();
    let mut found = Vec::new();
    every_command(&line, "chancery", &mut found);
    found
}

#[test]
fn words_of_earlier_versions_are_understood() {
    for (earlier, now) in EARLIER {
        let ((old_path, _), (new_path, _)) = match (parse(earlier), parse(now)) {
            (Ok(old), Ok(new)) => (old, new),
            (old, new) => {
                let agent_id_wanted = |read: &Result<_, clap::Error>| {
                    read.as_ref().err().is_some_and(|fault| fault.kind() == clap::error::ErrorKind::ValueValidation)
                };
                // Both got as far as the id, which is no key.
                assert!(agent_id_wanted(&old.map(drop)) && agent_id_wanted(&new.map(drop)), "{earlier}");
                continue;
            }
        };
        let same_name = old_path == new_path;
        let own_name = ["keys show", "memory grants", "memory revoke"].iter().any(|own| earlier.starts_with(own));
        assert!(same_name || own_name, "{earlier} is {old_path:?} and {now} is {new_path:?}");
    }
}

#[test]
fn help_shows_one_word_for_one_thing() {
    let visible = all().into_iter().filter(|(_, command)| !command.is_hide_set());
    for (path, mut command) in visible {
        let expected = OF_THE_ADR.iter().filter(|(of, _)| *of == path).map(|(_, name)| *name);
        assert_eq!(command.get_visible_aliases().collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{path}");
        assert!(!OTHER_WORDS.contains(&command.get_name()), "{path}: use ls, show, add, rm or set");
        let help = command.render_long_help().to_string();
        for word in NOT_SHOWN {
            assert!(!help.contains(word), "the help of {path} says {word:?}:\n{help}");
        }
    }
    let help = command_line().render_long_help().to_string();
    assert!(NOT_SHOWN.iter().all(|word| !help.contains(word)), "{help}");
}

#[test]
fn a_list_of_things_is_ls_and_one_of_them_is_show() {
    let paths: Vec<String> = all().into_iter().map(|(path, _)| path).collect();
    for group in
        ["tasks", "agents", "callers", "keys", "push", "push dead", "push keys", "push secrets", "push vault", "memory grants"]
    {
        assert!(paths.contains(&format!("chancery {group} ls")), "{group} has no ls");
    }
    for group in ["tasks", "agents", "keys", "push", "push dead"] {
        assert!(paths.contains(&format!("chancery {group} show")), "{group} has no show");
    }
}

#[test]
fn documentation_has_the_words_of_today() {
    let documents = [
        include_str!("../../README.md"),
        include_str!("../../docs/operating.md"),
        include_str!("../../docs/identity.md"),
        include_str!("../../docs/memory.md"),
        include_str!("../../docs/governance.md"),
        include_str!("../../docs/peers.md"),
        include_str!("../../docs/from-rvagent.md"),
        include_str!("../../docs/evidence.md"),
        include_str!("../../docs/push.md"),
        include_str!("../../docs/configuration.md"),
    ];
    for (number, text) in documents.iter().enumerate() {
        for word in NOT_SHOWN.iter().filter(|word| word.starts_with("chancery ") || word.contains(' ')) {
            let word = if word.starts_with("chancery") { (*word).to_owned() } else { format!("chancery {word}") };
            assert!(!text.contains(&word), "document {number} says {word:?}");
        }
    }
}
