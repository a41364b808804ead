//! Access to the callers: through the running node, or through their file in the data folder.

use std::time::Duration;

use chancery::CallerRegistryError;
use chancery::cli_support::{CallerRegistry, show_caller};
use chancery::protocol::MayCall;
use chancery_core::{Clock as _, SystemClock};
use chancery_identity::credentials::CallerRecord;
use chancery_outbound::{Admin, CallError};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::super::nearby::FolderHolder;
use super::super::{Failure, remark, show};

pub(super) enum CallersAccess {
    Node(Box<Admin>),
    Book(CallerRegistry),
}

impl CallersAccess {
    pub(super) fn find(holder: FolderHolder) -> Result<Self, Failure> {
        let folder = match holder {
            FolderHolder::Node(admin) => return Ok(Self::Node(admin)),
            FolderHolder::Us(folder) => Some(folder),
            FolderHolder::Nobody => None,
        };
        CallerRegistry::open(folder, Vec::new()).map(Self::Book).map_err(book_failure)
    }

    pub(super) async fn list(&self) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.callers().await.map_err(failure),
            Self::Book(book) => {
                let callers: Vec<_> = book.list().iter().map(|(record, configured)| show_caller(record, *configured)).collect();
                Ok(json!({ "callers": callers }))
            }
        }
    }

    pub(super) async fn add(&self, record: CallerRecord) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.add_caller(&record).await.map_err(failure),
            Self::Book(book) => {
                let name = record.name.clone();
                let named_agents = record.agent.is_some() || record.may_call != MayCall::Everything;
                let relies = !record.tokens.is_empty() || !record.certificates.is_empty();
                let key = book.add(record, SystemClock.now()).map_err(book_failure)?;
                if relies {
                    remark(
                        "no node runs here, so the issuer was not checked: the node does not start if its config lacks that issuer, or \
                         [tls] client_ca_file",
                    );
                }
                if named_agents {
                    remark(
                        "no node runs here, so the agent names were not checked: a setting applies once the node has an agent of that name",
                    );
                }
                Ok(given(&name, key.as_ref()))
            }
        }
    }

    pub(super) async fn rotate(&self, name: &str, overlap: Duration) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.rotate_caller(name, overlap).await.map_err(failure),
            Self::Book(book) => {
                let key = book.rotate(name, overlap, SystemClock.now()).map_err(book_failure)?;
                Ok(given(name, Some(&key)))
            }
        }
    }

    pub(super) async fn revoke(&self, name: &str) -> Result<Value, Failure> {
        match self {
            Self::Node(admin) => admin.revoke_caller(name).await.map_err(failure),
            Self::Book(book) => {
                book.revoke(name).map_err(book_failure)?;
                Ok(given(name, None))
            }
        }
    }
}

fn given(name: &str, key: Option<&SecretString>) -> Value {
    json!({ "name": name, "key": key.map(|key| key.expose_secret()) })
}

const SEE_LIST: &str = "`chancery callers ls` lists the callers";

fn book_failure(fault: CallerRegistryError) -> Failure {
    match fault {
        CallerRegistryError::Faulty(_) => Failure::Usage(fault.to_string()),
        // Without a folder there is nobody to change.
        CallerRegistryError::NoFolder => {
            Failure::Refused("there are no callers here yet; add one with `chancery callers add NAME`".to_owned())
        }
        CallerRegistryError::Unknown(_) => Failure::Refused(format!("{fault}; {SEE_LIST}")),
        fault => Failure::Refused(fault.to_string()),
    }
}

/// What the node says, which is the same.
fn failure(error: CallError) -> Failure {
    match error {
        CallError::Refused { code: 400 | 422, message } => Failure::Usage(show::safe(&message)),
        CallError::Refused { code: 404, message } => Failure::Refused(format!("{}; {SEE_LIST}", show::safe(&message))),
        CallError::Refused { message, .. } => Failure::Refused(show::safe(&message)),
        error => error.into(),
    }
}
