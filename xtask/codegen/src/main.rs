//! Compiles the schemas of crates/wire/proto into crates/wire/src/pb/generated, or checks that this was done.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod compile;
#[cfg(test)]
mod facts;
mod install;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const SCHEMAS: &str = "crates/wire/proto";
const GENERATED: &str = "crates/wire/src/pb/generated";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("codegen: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [only] if only == "--check" => true,
        other => bail!("cannot read {other:?}: the only argument is --check"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the package has no grandparent")?;
    let modules = compile::compile(&root.join(SCHEMAS))?;
    let folder = root.join(GENERATED);
    if check {
        let differences = install::differences(&folder, &modules)?;
        for difference in &differences {
            println!("{GENERATED}/{difference}");
        }
        if !differences.is_empty() {
            println!("codegen: run `cargo xtask codegen` and commit what it writes");
            return Ok(ExitCode::FAILURE);
        }
        println!("codegen: {} module(s) are what the schemas give", modules.len());
    } else {
        install::install(&folder, &modules)?;
        println!("codegen: wrote {} module(s) to {GENERATED}", modules.len());
    }
    Ok(ExitCode::SUCCESS)
}
