//! The agent frameworks of `tests/interop/frameworks`, how each is started, and which of them a run takes.

use std::process::Command;

use crate::toolbox::Toolbox;

/// Which frameworks run: names with commas between them, or `all`. Without it, those that CI has time for.
pub(crate) const CHOICE: &str = "CHANCERY_FRAMEWORKS";

/// The official SDK clients that call every agent, by the folder their probe is in.
pub(crate) const SDK_PROBES: &[&str] = &["python_1_3", "python_0_3"];

/// A framework with an A2A server and a client of its own.
#[derive(Debug)]
pub(crate) struct Framework {
    /// Its folder in `tests/interop/frameworks`.
    pub(crate) name: &'static str,
    /// The packages that are tested, as pip names and pins them.
    pub(crate) packages: &'static [&'static str],
    /// What its server is started with, once each.
    pub(crate) variants: &'static [&'static str],
    /// Operations that no client tries, with the reason.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
    pub(crate) in_ci: bool,
}

impl Framework {
    pub(crate) fn server(&self, tools: &Toolbox) -> Result<Command, String> {
        tools.python(&format!("frameworks/{}", self.name), "server.py")
    }

    pub(crate) fn client(&self, tools: &Toolbox) -> Result<Command, String> {
        tools.python(&format!("frameworks/{}", self.name), "client.py")
    }
}

/// After a cancel every later run of the same server ends with "Action has been aborted", and the cancel itself is never answered.
const BEEAI_CANCEL: (&str, &str) = ("cancel", "a BeeAI agent answers no cancel and works no more after one");

pub(crate) const FRAMEWORKS: &[Framework] = &[
    Framework { name: "google_adk", packages: &["google-adk==2.13.0"], variants: &["default"], left_out: &[], in_ci: true },
    Framework {
        name: "pydantic_ai",
        packages: &["fasta2a==2.1.1", "pydantic-ai-slim==2.66.0"],
        variants: &["default"],
        left_out: &[],
        in_ci: true,
    },
    Framework {
        name: "beeai",
        packages: &["beeai-framework==0.1.85"],
        variants: &["agent", "runnable", "rest"],
        left_out: &[BEEAI_CANCEL],
        in_ci: true,
    },
    Framework { name: "langgraph", packages: &["langgraph-api==0.16.7"], variants: &["default"], left_out: &[], in_ci: false },
    Framework {
        name: "agent_framework",
        packages: &["agent-framework-a2a==1.0.0b261022"],
        variants: &["default", "stream"],
        left_out: &[],
        in_ci: false,
    },
    Framework {
        name: "strands",
        packages: &["strands-agents==1.62.0"],
        variants: &["default", "compliant"],
        left_out: &[],
        in_ci: false,
    },
    Framework { name: "ag2", packages: &["ag2==1.2.1"], variants: &["default"], left_out: &[], in_ci: false },
    Framework { name: "crewai", packages: &["crewai==1.15.30"], variants: &["default"], left_out: &[], in_ci: false },
];

/// The frameworks that `choice` names. A name that nobody has is an error, so that a typing mistake does not pass as a run of nothing.
pub(crate) fn chosen(choice: Option<&str>) -> Result<Vec<&'static Framework>, String> {
    match choice {
        None => Ok(FRAMEWORKS.iter().filter(|framework| framework.in_ci).collect()),
        Some("all") => Ok(FRAMEWORKS.iter().collect()),
        Some(names) => names.split(',').map(named).collect(),
    }
}

fn named(name: &str) -> Result<&'static Framework, String> {
    FRAMEWORKS.iter().find(|framework| framework.name == name).ok_or_else(|| {
        let names: Vec<_> = FRAMEWORKS.iter().map(|framework| framework.name).collect();
        format!("{CHOICE}: there is no framework {name}; there are all, {}", names.join(", "))
    })
}
