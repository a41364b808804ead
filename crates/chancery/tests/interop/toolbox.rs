//! Starts the programs of `tests/interop` with what `cargo xtask interop` fetched for them. Nothing is installed here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// One build at a time: Cargo locks the folder it builds in anyway.
static BUILDING: Mutex<()> = Mutex::new(());

pub(crate) struct Toolbox {
    sources: PathBuf,
    made: PathBuf,
    /// Of what Cargo builds.
    profile: &'static str,
}

impl Toolbox {
    /// For tests.
    pub(crate) fn new() -> Self {
        let sources = repository().join("tests/interop");
        let temporary = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        Self::at(sources, temporary.join("interop"), "dev")
    }

    /// `made` is the folder that `cargo xtask interop` fills: `tmp/interop` in Cargo's target folder.
    pub(crate) fn at(sources: PathBuf, made: PathBuf, profile: &'static str) -> Self {
        Self { sources, made, profile }
    }

    /// A script in `tests/interop/NAME`, run by an interpreter that has its requirements.
    pub(crate) fn python(&self, name: &str, script: &str) -> Result<Command, String> {
        self.fetched(name, "requirements.txt")?;
        let mut command = Command::new(self.made.join(name).join("bin/python"));
        // Compiled modules go here and not beside the sources.
        let compiled = self.made.join("pycache");
        command.arg("-X").arg(format!("pycache_prefix={}", compiled.display())).arg(self.sources.join(name).join(script));
        Ok(command)
    }

    /// A script in `tests/interop/NAME`, copied next to the modules it imports because that is where node looks.
    pub(crate) fn node(&self, name: &str, script: &str) -> Result<Command, String> {
        self.fetched(name, "package.json")?;
        let made = self.made.join(name).join(script);
        for shared in ["checks.mjs", "directives.mjs"] {
            copy(&self.sources.join(shared), &self.made.join(shared))?;
        }
        copy(&self.sources.join(name).join(script), &made)?;
        let mut command = Command::new("node");
        command.arg(made);
        Ok(command)
    }

    /// A binary of the Cargo workspace in `tests/interop/NAME`. Cargo itself knows what is up to date.
    pub(crate) fn cargo(&self, name: &str, binary: &str) -> Result<Command, String> {
        let _alone = BUILDING.lock();
        let target = self.made.join("cargo");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--offline", "--profile", self.profile, "--manifest-path"]);
        build.arg(self.sources.join(name).join("Cargo.toml")).arg("--target-dir").arg(&target);
        let output = build.output().map_err(|error| format!("{build:?}: {error}"))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "tests/interop/{name} does not build; without its sources, run `cargo xtask interop`: {complaint}"
            ));
        }
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        Ok(Command::new(target.join(folder).join(binary)))
    }

    /// Where the server of that name writes its log.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.made.join(format!("server-{name}.log"))
    }

    /// An error unless the folder NAME was made from the versions that its pins name today.
    fn fetched(&self, name: &str, pins: &str) -> Result<(), String> {
        let pins = self.sources.join(name).join(pins);
        let wanted = fs::read_to_string(&pins).map_err(|error| format!("{}: {error}", pins.display()))?;
        if fs::read_to_string(self.made.join(name).join("made-from")).is_ok_and(|made_from| made_from == wanted) {
            return Ok(());
        }
        let command = match name.strip_prefix("frameworks/") {
            Some(framework) => format!("cargo xtask interop frameworks {framework} --fetch-only"),
            None => "cargo xtask interop".to_owned(),
        };
        Err(format!("the packages of tests/interop/{name} are not installed in the versions it pins: run `{command}`"))
    }
}

/// The folder of the repository that the tests run in. A package of the crate alone has none of the programs.
pub(crate) fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().find(|folder| folder.join("tests/interop/README.md").is_file()).unwrap_or(package)
}

/// A script replaces its copy in one step, because tests that run at once start the same scripts.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let fault = |error| format!("{} to {}: {error}", from.display(), to.display());
    let unfinished = to.with_added_extension(format!("{:?}", std::thread::current().id()));
    fs::copy(from, &unfinished).map_err(fault)?;
    fs::rename(&unfinished, to).map_err(fault)
}
