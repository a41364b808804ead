//! Finds the known name nearest to a misspelt one.

/// The name closest to `word`, if any is close enough to be a slip of the hand.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close_enough = (word.chars().count() / 3).max(2);
    let names: Vec<&str> = names.into_iter().collect();
    let distances = names.iter().map(|name| (distance(word, name), *name));
    let closest = distances.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance <= close_enough);
    closest.map(|(_, name)| name).or_else(|| only_longer(word, &names))
}

/// The only name that has every part of `word` between its underscores: `default_selector` for `selector`.
fn only_longer<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let has_all = |name: &&&str| word.split('_').all(|part| part.len() > 2 && name.split('_').any(|other| other == part));
    let mut longer = names.iter().filter(has_all);
    longer.next().filter(|_| longer.next().is_none()).copied()
}

/// How many characters to insert, remove or replace to turn one into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, here) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (column, there) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(here != *there);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let names = ["listen", "public_url", "json_depth", "json_nodes"];
        for (word, found) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("json_dept", Some("json_depth")),
            ("publicurl", Some("public_url")),
            ("url", Some("public_url")),
            ("json", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), found, "{word}");
        }
    }

    #[test]
    fn distance_counts_single_changes() {
        for (from, to, changes) in [("", "", 0), ("abc", "abc", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!(distance(from, to), changes);
            assert_eq!(distance(to, from), changes);
        }
    }
}
