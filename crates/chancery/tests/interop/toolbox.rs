//! Gets the drivers ready: virtual environments, node modules and the separate Cargo workspace, each made once per pinned version.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// One installation at a time: the package manager and the caches take locks of their own and fail instead of waiting.
static INSTALLING: Mutex<()> = Mutex::new(());

pub(crate) struct Toolbox {
    sources: PathBuf,
    made: PathBuf,
    /// Of what Cargo builds.
    profile: &'static str,
}

impl Toolbox {
    /// For tests: beside whatever else they leave behind.
    pub(crate) fn new() -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop");
        let made = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from).join("interop");
        Self::at(sources, made, "dev")
    }

    pub(crate) fn at(sources: PathBuf, made: PathBuf, profile: &'static str) -> Self {
        Self { sources, made, profile }
    }

    /// A script in `tests/interop/NAME`, run by an interpreter that has its requirements.
    pub(crate) fn python(&self, name: &str, script: &str) -> Result<Command, String> {
        let _alone = INSTALLING.lock();
        let python = self.made.join(name).join("bin/python");
        let requirements = self.sources.join(name).join("requirements.txt");
        self.once(name, &requirements, |venv| {
            has_or_installs("python3", &["-c", "import ensurepip, venv"], &["python3", "python3-venv"])?;
            succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
            // Compiling every module of every package takes longer than installing them; those that are imported are compiled then.
            let install = ["-m", "pip", "install", "--quiet", "--no-compile", "-r"];
            succeed(Command::new(&python).args(install).arg(&requirements))
        })?;
        let mut command = Command::new(python);
        // What is compiled goes here and not beside the sources.
        let compiled = self.made.join("pycache");
        command.arg("-X").arg(format!("pycache_prefix={}", compiled.display())).arg(self.sources.join(name).join(script));
        Ok(command)
    }

    /// A script in `tests/interop/NAME`, copied next to the modules it imports because that is where node looks.
    pub(crate) fn node(&self, name: &str, script: &str) -> Result<Command, String> {
        let _alone = INSTALLING.lock();
        let manifest = self.sources.join(name).join("package.json");
        self.once(name, &manifest, |folder| {
            has_or_installs("npm", &["--version"], &["nodejs", "npm"])?;
            copy(&manifest, &folder.join("package.json"))?;
            succeed(Command::new("npm").args(["install", "--no-audit", "--no-fund", "--no-package-lock"]).current_dir(folder))
        })?;
        let made = self.made.join(name).join(script);
        for shared in ["checks.mjs", "directives.mjs"] {
            copy(&self.sources.join(shared), &self.made.join(shared))?;
        }
        copy(&self.sources.join(name).join(script), &made)?;
        let mut command = Command::new("node");
        command.arg(made);
        Ok(command)
    }

    /// A binary of the Cargo workspace in `tests/interop/NAME`. Cargo itself knows what is up to date; once its sources are here, a build
    /// that fails is our fault and nothing to skip for.
    pub(crate) fn cargo(&self, name: &str, binary: &str) -> Result<Command, String> {
        let _alone = INSTALLING.lock();
        // Some of these clients link OpenSSL.
        has_or_installs("pkg-config", &["--exists", "openssl"], &["pkg-config", "libssl-dev"])?;
        let target = self.made.join("cargo");
        let manifest = self.sources.join(name).join("Cargo.toml");
        succeed(Command::new(env!("CARGO")).args(["fetch", "--quiet", "--locked", "--manifest-path"]).arg(&manifest))?;
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "--profile", self.profile, "--manifest-path"]).arg(manifest);
        build.arg("--target-dir").arg(&target);
        succeed(&mut build).expect("the driver compiles");
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        Ok(Command::new(target.join(folder).join(binary)))
    }

    /// Where the server of that name writes its log.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.made.join(format!("server-{name}.log"))
    }

    /// Runs `make` on the folder NAME unless it was made from the same pins before.
    fn once(&self, name: &str, pins: &Path, make: impl Fn(&Path) -> Result<(), String>) -> Result<(), String> {
        let folder = self.made.join(name);
        let stamp = folder.join("made-from");
        let wanted = fs::read_to_string(pins).map_err(|error| format!("{}: {error}", pins.display()))?;
        if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        make(&folder)?;
        fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
    }
}

/// Installs Debian packages when the probe fails and we may.
fn has_or_installs(probe: &str, arguments: &[&str], packages: &[&str]) -> Result<(), String> {
    let present = || Command::new(probe).args(arguments).output().is_ok_and(|output| output.status.success());
    if present() {
        return Ok(());
    }
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !root {
        return Err(format!("{} are missing, and only root can install them", packages.join(" and ")));
    }
    let apt =
        |arguments: &[&str]| succeed(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(arguments));
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())?;
    if present() { Ok(()) } else { Err(format!("{} were installed, yet {probe} does not work", packages.join(" and "))) }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
