//! Ends a process that xtask started, together with the processes that it started itself.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};

/// A test binary that hangs may have servers running, which nobody would end after it.
pub(crate) fn end_with_children(child: &mut Child) {
    let started = descendants(child.id(), &parents());
    let _ = child.kill();
    for process in started {
        // Some have ended with their parent by now.
        let _ = Command::new("kill").args(["-KILL", &process.to_string()]).output();
    }
    let _ = child.wait();
}

/// Every process of this machine with its parent; nothing where there is no `/proc`.
fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| Some((id, parent(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?))).collect()
}

fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(of: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(id, its)| **its == parent && **id != parent).map(|(id, _)| *id));
        next += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    #[test]
    fn the_descendants_of_a_process_are_its_children_and_theirs() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (0, 0)]);
        assert_eq!(descendants(2, &parents), [3, 4]);
        assert_eq!(descendants(4, &parents), Vec::<u32>::new());
        assert_eq!(parent("7 (a) b) S 41 7"), Some(41));
    }

    #[test]
    fn a_process_ends_with_what_it_started() {
        if parents().is_empty() {
            return;
        }
        let mut child = Command::new("sh").args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert!(line.trim().parse::<u32>().is_ok(), "{line}");
        end_with_children(&mut child);
        // The pipe is closed when the last process that holds it is gone.
        line.clear();
        assert_eq!(stdout.read_line(&mut line).unwrap(), 0);
    }
}
