//! The whole run: builds the server, measures each row on both sides, prints the report.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::contestant::{self, Contestant, Sizes};
use crate::ground::Ground;
use crate::report::{self, RowOutcome};
use crate::rows::{self, Effort, Match, ROWS};

#[derive(Debug, Clone, Args)]
pub(crate) struct Compare {
    /// Short rounds: a first look, noisier
    #[arg(long)]
    quick: bool,
    /// Only rows whose name holds this; may be given again
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Print the rows' names and stop
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a target is missed
    #[arg(long)]
    strict: bool,
    /// Rounds of each row
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of each round on each side
    #[arg(long)]
    seconds: Option<f64>,
    /// A built chancery, instead of building one
    #[arg(long, value_name = "FILE")]
    chancery: Option<PathBuf>,
    /// Measure the yardstick against itself: shows how far ratios can be trusted on this machine
    #[arg(long)]
    self_check: bool,
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    /// Where data folders go; must be on a real disk [default: beside this program]
    #[arg(long)]
    scratch: Option<PathBuf>,
}

pub(crate) fn compare(options: &Compare) -> Result<ExitCode> {
    let wanted: Vec<_> = ROWS
        .iter()
        .filter(|row| options.only.is_empty() || options.only.iter().any(|only| row.name.contains(only.as_str())))
        .collect();
    if options.list {
        wanted.iter().for_each(|row| println!("{:<16} {}", row.name, row.title));
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(!wanted.is_empty(), "no row has such a name; --list prints them");
    let ground = Ground::new(options.server_core, options.load_core, options.scratch.as_deref())?;
    let subject = subject(options, &ground)?;
    let probe = rows::probe(&ground, &subject).context("asking the server once for each answer")?;
    let yardstick = Contestant::Yardstick(probe.sizes);
    let mut effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    effort.rounds = options.rounds.unwrap_or(effort.rounds).max(1);
    effort.seconds = options.seconds.unwrap_or(effort.seconds);
    let described = describe(&ground, &effort, probe.sizes)?;
    eprintln!("{described}\n");
    let this = Match { ground: &ground, yardstick: &yardstick, subject: &subject, effort, probe };
    let mut outcomes = Vec::new();
    for row in wanted {
        eprintln!("measuring {} …", row.title);
        outcomes.push(RowOutcome::of(row.name, row.measure(&this)));
    }
    eprintln!();
    if options.json {
        let whole = serde_json::json!({ "ground": described, "rows": outcomes });
        println!("{whole}");
    } else {
        print!("{}", report::table(&outcomes));
    }
    let missed = outcomes.iter().filter(|outcome| outcome.is_missed()).count();
    eprintln!("{missed} of {} rows missed", outcomes.len());
    Ok(if options.strict && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn subject(options: &Compare, ground: &Ground) -> Result<Contestant> {
    if options.self_check {
        return Ok(Contestant::Yardstick(Sizes::default()));
    }
    if let Some(program) = &options.chancery {
        let program = program.canonicalize().with_context(|| program.display().to_string())?;
        return Ok(Contestant::Chancery(program));
    }
    // Built by itself, not beside this package: features of other packages must not change what is measured.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--profile", "dist", "--quiet", "--package", "chancery"];
    let status = Command::new(cargo).args(arguments).status().context("cargo")?;
    if !status.success() {
        bail!("chancery does not build");
    }
    Ok(Contestant::Chancery(contestant::beside(ground.own_program())))
}

fn describe(ground: &Ground, effort: &Effort, sizes: Sizes) -> Result<String> {
    Ok(format!(
        "{}\n{} rounds of {} s on each side in turn; ratio: median of the rounds' ratios\n\
         bodies of both sides: answer {} bytes, card {} bytes, stream {} bytes",
        ground.describe()?,
        effort.rounds,
        effort.seconds,
        sizes.answer,
        sizes.card,
        sizes.stream
    ))
}
