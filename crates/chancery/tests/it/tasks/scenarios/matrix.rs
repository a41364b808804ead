//! All stories told in all the ways somebody asks for, as a table.

use std::path::Path;

use futures::FutureExt as _;

use super::story::Story;
use super::teller::Teller;
use crate::support::wire_client::{Combination, WireClient};

pub(crate) struct Matrix {
    columns: Vec<Combination>,
    rows: Vec<(Story, Vec<Cell>)>,
}

enum Cell {
    Told,
    /// Why not.
    NotApplicable(String),
    Failed(String),
}

impl Matrix {
    /// Tells every story in `fixtures/scenarios` in these ways: all ways of telling a story at once, one story after the
    /// other. `except` may have a reason why one cannot be told.
    pub(crate) async fn tell(url: &str, columns: &[Combination], except: impl Fn(&str) -> Option<&'static str>) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/scenarios");
        let mut rows = Vec::new();
        for story in Story::all_in(&folder) {
            let cells = columns.iter().map(|&combination| tell(url, &story, combination, except(&story.name)));
            let cells = futures::future::join_all(cells).await;
            rows.push((story, cells));
        }
        Self { columns: columns.to_vec(), rows }
    }

    fn cells(&self) -> impl Iterator<Item = (&Story, Combination, &Cell)> {
        self.rows
            .iter()
            .flat_map(|(story, cells)| self.columns.iter().zip(cells).map(move |(&column, cell)| (story, column, cell)))
    }

    pub(crate) fn told(&self) -> usize {
        self.cells().filter(|(.., cell)| matches!(cell, Cell::Told)).count()
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        let faults = self.cells().filter_map(|(story, combination, cell)| match cell {
            Cell::Failed(fault) => Some(format!("{} over {}: {fault}", story.name, combination.name())),
            _ => None,
        });
        faults.collect()
    }

    /// The table, with the reasons for what was not told below it.
    pub(crate) fn table(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|combination| format!("{:>17}", combination.name())).collect();
        let mut table = format!("{:<28}{}\n", "", names.concat());
        for (story, cells) in &self.rows {
            let words = cells.iter().map(|cell| match cell {
                Cell::Told => "told",
                Cell::NotApplicable(_) => "not applicable",
                Cell::Failed(_) => "FAILED",
            });
            let words: String = words.map(|word| format!("{word:>17}")).collect();
            table += &format!("{:<28}{words}  {}\n", story.name, story.story);
        }
        for (story, combination, cell) in self.cells() {
            if let Cell::NotApplicable(reason) = cell {
                table += &format!("{} not over {}: {reason}\n", story.name, combination.name());
            }
        }
        table
    }
}

async fn tell(url: &str, story: &Story, combination: Combination, except: Option<&'static str>) -> Cell {
    if let Some(reason) = except.or(story.not_applicable(combination)) {
        return Cell::NotApplicable(reason.to_owned());
    }
    let telling = Teller::new(WireClient::new(url, combination), story).tell(story);
    match std::panic::AssertUnwindSafe(telling).catch_unwind().await {
        Ok(Ok(())) => Cell::Told,
        Ok(Err(fault)) => Cell::Failed(fault),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Cell::Failed(text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default())
        }
    }
}
