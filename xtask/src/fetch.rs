//! Fetches programs of others: Python and node packages by their pins, crates by their lock files, and PostgreSQL from Debian.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::costs::{CostMeter, show};
use crate::{cargo, packages};

/// Holds the pins a folder was made from; `crates/chancery/tests/interop/toolbox.rs` compares it.
const STAMP: &str = "made-from";

/// The folders of the SDK clients that call every framework.
const FRAMEWORK_CLIENTS: [&str; 2] = ["python_0_3", "python_1_3"];

/// Cargo workspaces beside ours whose tests run from ours.
const ADAPTERS: [&str; 2] = ["adapters/a2a-sdk", "adapters/rvagent"];

pub(crate) struct Fetcher {
    root: PathBuf,
    sources: PathBuf,
    made: PathBuf,
}

impl Fetcher {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        // Where integration tests find it as CARGO_TARGET_TMPDIR.
        let made = packages::read(root)?.target_directory.join("tmp/interop");
        Ok(Self { root: root.to_path_buf(), sources: root.join("tests/interop"), made })
    }

    /// Every folder of `tests/interop` that has pins, and the sources of the adapters; what Cargo builds is built too.
    pub(crate) fn everything_but_frameworks(&self) -> Result<()> {
        for name in folders(&self.sources)? {
            self.packages(&name)?;
            if self.sources.join(&name).join("Cargo.toml").exists() {
                self.workspace(&format!("tests/interop/{name}"), &["build"])?;
            }
        }
        ADAPTERS.iter().try_for_each(|folder| self.workspace(folder, &["test", "--no-run"]))
    }

    pub(crate) fn clients_of_frameworks(&self) -> Result<()> {
        FRAMEWORK_CLIENTS.iter().try_for_each(|name| self.packages(name))
    }

    /// The frameworks of these names; all of them without a name.
    pub(crate) fn frameworks(&self, names: &[&str]) -> Result<()> {
        let known: Vec<String> = folders(&self.sources.join("frameworks"))?;
        let with_pins = |name: &&String| self.sources.join("frameworks").join(name).join("requirements.txt").exists();
        let known: Vec<&str> = known.iter().filter(with_pins).map(String::as_str).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            bail!("no framework is called {unknown}; there are: {}", known.join(", "));
        }
        let chosen = if names.is_empty() { &known } else { names };
        chosen.iter().try_for_each(|name| self.packages(&format!("frameworks/{name}")))
    }

    /// The Python or node packages of a folder, if it pins some.
    fn packages(&self, name: &str) -> Result<()> {
        let requirements = self.sources.join(name).join("requirements.txt");
        if requirements.exists() {
            self.once(name, &requirements, |folder| install_python(folder, &requirements))?;
        }
        let manifest = self.sources.join(name).join("package.json");
        if manifest.exists() {
            self.once(name, &manifest, |folder| install_node(folder, &manifest))?;
        }
        Ok(())
    }

    /// Fetches the crates of a Cargo workspace and builds it in the folder that the tests use.
    fn workspace(&self, folder: &str, build: &[&str]) -> Result<()> {
        // Some of the clients link OpenSSL.
        has_or_installs("pkg-config", &["--exists", "openssl"], &["pkg-config", "libssl-dev"])?;
        let meter = CostMeter::start();
        let workspace = self.root.join(folder);
        succeed(cargo::command(&workspace).args(["fetch", "--quiet", "--locked"]))
            .with_context(|| format!("if its Cargo.lock is out of date, run `cargo fetch` in {folder} and commit it"))?;
        let target = self.made.join("cargo");
        let mut command = cargo::command(&workspace);
        command.args(build).args(["--quiet", "--locked", "--offline", "--target-dir"]).arg(target);
        succeed(&mut command)?;
        println!("{folder}: built in {}", show(meter.stop(folder).wall));
        Ok(())
    }

    /// Runs `make` on the folder NAME unless it was made from the same pins before.
    fn once(&self, name: &str, pins: &Path, make: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let folder = self.made.join(name);
        let stamp = folder.join(STAMP);
        let wanted = fs::read_to_string(pins).with_context(|| pins.display().to_string())?;
        if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
            println!("{name}: installed already");
            return Ok(());
        }
        let meter = CostMeter::start();
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        make(&folder).with_context(|| format!("cannot install the packages of {name}"))?;
        fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())?;
        println!("{name}: installed in {}", show(meter.stop(name).wall));
        Ok(())
    }
}

/// PostgreSQL for the tests of the store, unless `CHANCERY_TEST_PG` names the folder of one.
pub(crate) fn postgresql() -> Result<()> {
    if std::env::var_os("CHANCERY_TEST_PG").is_some() {
        return Ok(());
    }
    has_or_installs("sh", &["-c", "ls /usr/lib/postgresql/*/bin/initdb"], &["postgresql"])
}

/// The names of the folders in a folder, sorted.
fn folders(of: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(of).with_context(|| of.display().to_string())?;
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

fn install_python(folder: &Path, requirements: &Path) -> Result<()> {
    has_or_installs("python3", &["-c", "import ensurepip, venv"], &["python3", "python3-venv"])?;
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    // Compiling every module of every package takes longer than installing them; those that are imported are compiled then.
    let install = ["-m", "pip", "install", "--quiet", "--no-compile", "-r"];
    succeed(Command::new(folder.join("bin/python")).args(install).arg(requirements))
}

fn install_node(folder: &Path, manifest: &Path) -> Result<()> {
    has_or_installs("npm", &["--version"], &["nodejs", "npm"])?;
    fs::copy(manifest, folder.join("package.json")).with_context(|| manifest.display().to_string())?;
    succeed(Command::new("npm").args(["install", "--no-audit", "--no-fund", "--no-package-lock"]).current_dir(folder))
}

/// Installs Debian packages when the probe fails and we may.
fn has_or_installs(probe: &str, arguments: &[&str], packages: &[&str]) -> Result<()> {
    let present = || Command::new(probe).args(arguments).output().is_ok_and(|output| output.status.success());
    if present() {
        return Ok(());
    }
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        bail!("{} are missing, and only root can install them", packages.join(" and "));
    }
    let apt =
        |arguments: &[&str]| succeed(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(arguments));
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())?;
    if present() { Ok(()) } else { bail!("{} were installed, yet {probe} does not work", packages.join(" and ")) }
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn fetcher(folder: &Path) -> Fetcher {
        Fetcher { root: folder.to_path_buf(), sources: folder.join("tests/interop"), made: folder.join("made") }
    }

    #[test]
    fn packages_are_installed_once_for_each_state_of_their_pins() {
        let folder = tempfile::tempdir().unwrap();
        let fetcher = fetcher(folder.path());
        let pins = folder.path().join("requirements.txt");
        let installed = Cell::new(0);
        let count = |_: &Path| {
            installed.set(installed.get() + 1);
            Ok(())
        };
        let install = || fetcher.once("a", &pins, count);
        assert!(install().is_err(), "there are no pins");
        for (text, times) in [("a==1", 1), ("a==1", 1), ("a==2", 2), ("a==1", 3)] {
            fs::write(&pins, text).unwrap();
            install().unwrap();
            assert_eq!(installed.get(), times, "{text}");
            assert_eq!(fs::read_to_string(folder.path().join("made/a").join(STAMP)).unwrap(), text);
        }
    }

    #[test]
    fn what_could_not_be_installed_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let fetcher = fetcher(folder.path());
        let pins = folder.path().join("requirements.txt");
        fs::write(&pins, "a==1").unwrap();
        let fault = fetcher.once("a", &pins, |_| succeed(Command::new("sh").args(["-c", "echo no network >&2; false"])));
        assert!(format!("{:#}", fault.unwrap_err()).contains("no network"));
        assert!(!folder.path().join("made/a").join(STAMP).exists());
    }

    #[test]
    fn a_framework_that_does_not_exist_is_an_error_that_names_those_that_do() {
        let folder = tempfile::tempdir().unwrap();
        let fetcher = fetcher(folder.path());
        for name in ["one", "two", "common"] {
            fs::create_dir_all(fetcher.sources.join("frameworks").join(name)).unwrap();
        }
        for name in ["one", "two"] {
            fs::write(fetcher.sources.join("frameworks").join(name).join("requirements.txt"), "").unwrap();
        }
        let fault = fetcher.frameworks(&["three"]).unwrap_err().to_string();
        assert_eq!(fault, "no framework is called three; there are: one, two");
    }
}
