//! Access to the agents: through the running node, or through the file of added agents in the data folder.

use chancery::AgentRegistryError;
use chancery::cli_support::{AgentRecord, AgentRegistry, show_added};
use chancery_outbound::{Admin, CallError};
use serde_json::{Value, json};

use super::super::nearby::FolderHolder;
use super::super::{Failure, show};

pub(super) enum AgentsAccess {
    Node(Box<Admin>),
    Book(AgentRegistry),
}

impl AgentsAccess {
    pub(super) fn find(holder: FolderHolder) -> Result<Self, Failure> {
        let folder = match holder {
            FolderHolder::Node(admin) => return Ok(Self::Node(admin)),
            FolderHolder::Us(folder) => Some(folder),
            FolderHolder::Nobody => None,
        };
        AgentRegistry::open(folder).map(Self::Book).map_err(|fault| Failure::Refused(fault.to_string()))
    }

    pub(super) async fn list(&self) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.agents().await.map_err(failure),
            Self::Book(book) => Ok(json!({ "agents": book.added().iter().map(show_added).collect::<Vec<_>>() })),
        }
    }

    pub(super) async fn add(&self, record: &AgentRecord) -> Result<Value, Failure> {
        self.node("added")?.add_agent(&json!(record)).await.map_err(failure)
    }

    pub(super) async fn remove(&self, name: &str) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.remove_agent(name).await.map_err(failure),
            Self::Book(book) => match book.remove(name) {
                Ok(()) => Ok(json!({ "name": name })),
                Err(fault @ AgentRegistryError::Unknown(_)) => {
                    Err(Failure::Refused(format!("{fault} that was added; {SEE_LIST}")))
                }
                Err(fault) => Err(Failure::Refused(fault.to_string())),
            },
        }
    }

    pub(super) async fn approve(&self, name: &str, anew: bool, digest: Option<&str>) -> Result<Value, Failure> {
        self.node("approved")?.approve_agent(name, anew, digest).await.map_err(failure)
    }

    pub(super) async fn show(&self, name: &str) -> Result<Value, Failure> {
        self.node("shown")?.agent(name).await.map_err(failure)
    }

    pub(super) async fn health(&self, name: &str) -> Result<Value, Failure> {
        self.node("asked for its health")?.agent_health(name).await.map_err(failure)
    }

    pub(super) async fn url(&self, name: &str, rotate: bool) -> Result<Value, Failure> {
        self.node("given an address")?.agent_url(name, rotate).await.map_err(failure)
    }

    /// What the folder alone cannot do.
    fn node(&self, done: &str) -> Result<&Admin, Failure> {
        match self {
            Self::Node(admin) => Ok(admin),
            Self::Book(_) => {
                let message =
                    format!("no node runs here, and without one no agent can be {done}; start it with `chancery serve`");
                Err(Failure::Unreachable(message))
            }
        }
    }
}

const SEE_LIST: &str = "`chancery agents ls` lists the agents";

fn failure(error: CallError) -> Failure {
    match error {
        CallError::Refused { code: 400 | 422, message } => Failure::Usage(show::safe(&message)),
        CallError::Refused { code: 404, message } => Failure::Refused(format!("{}; {SEE_LIST}", show::safe(&message))),
        CallError::Refused { message, .. } => Failure::Refused(show::safe(&message)),
        error => error.into(),
    }
}
