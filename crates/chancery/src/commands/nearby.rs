//! The node on this machine: where it answers and which token it takes, from its data folder; or the folder itself, if no
//! node runs in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use chancery::{DataFolder, FolderError};
use chancery_identity::credentials::CertificateName;
use chancery_outbound::{Admin, ConnectionTerms, TrustedRoots, TypedUrl};

use super::credentials::OwnCertificate;
use super::node_args::NodeArgs;
use super::{Failure, Shared};

/// How long the node may take to answer what it only has to look up.
pub(super) const LOOK_UP_WITHIN: Duration = Duration::from_secs(30);
/// How often, and how long in all, to look for a node that has taken the folder and does not say yet where it is.
const LOOK_AGAIN: (Duration, u32) = (Duration::from_millis(50), 100);

/// Where the node is, and what it has to show for being the one.
pub(super) struct NodeLocation {
    pub(super) url: String,
    pub(super) trust: TrustedRoots,
}

/// Who has the data folder.
pub(super) enum FolderHolder {
    /// A node that runs.
    Node(Box<Admin>),
    /// This command, now.
    Us(Arc<DataFolder>),
    /// There is no folder.
    Nobody,
}

/// Where the node that runs in the data folder is.
pub(super) fn place(shared: &Shared) -> Result<NodeLocation, Failure> {
    let folder = folder(shared)?;
    written(&folder).ok_or_else(|| {
        Failure::Unreachable(format!(
            "no node runs in {}; start one with `chancery serve`, or name its folder with --data or its address with --url (a \
             node with --memory and no --data writes no address)",
            folder.display()
        ))
    })
}

/// The admin API of the node at the URL that was typed, or of the one in the data folder.
pub(super) fn admin(shared: &Shared, node: &NodeArgs) -> Result<Admin, Failure> {
    match node.at_url()? {
        Some(admin) => Ok(admin),
        None => admin_at(shared, place(shared)?, &node.own),
    }
}

/// The node at the given URL, or the node that runs in the data folder. Otherwise the folder itself, locked
/// until the command ends. With `make` it creates a folder that does not exist.
pub(super) async fn holder(shared: &Shared, node: &NodeArgs, make: bool) -> Result<FolderHolder, Failure> {
    if let Some(admin) = node.at_url()? {
        return Ok(FolderHolder::Node(Box::new(admin)));
    }
    let folder = folder(shared)?;
    if !make && !folder.exists() {
        return Ok(FolderHolder::Nobody);
    }
    let (pause, times) = LOOK_AGAIN;
    for _ in 0..times {
        // The lock tells whether a node runs, not what an earlier one wrote down.
        match DataFolder::claim(&folder) {
            Ok(folder) => return Ok(FolderHolder::Us(Arc::new(folder))),
            Err(FolderError::InUse { .. }) => {}
            Err(fault) => return Err(anyhow!(fault).into()),
        }
        if let Some(place) = written(&folder) {
            return admin_at(shared, place, &node.own).map(|admin| FolderHolder::Node(Box::new(admin)));
        }
        tokio::time::sleep(pause).await;
    }
    Err(Failure::Unreachable(format!(
        "{} is in use, but the node of this folder has not written its address: it may be starting or stopping. Try again",
        folder.display()
    )))
}

fn written(folder: &std::path::Path) -> Option<NodeLocation> {
    let node = DataFolder::whereabouts(folder)?;
    let trust = match node.certificate {
        Some(CertificateName::Sha256(pinned)) => TrustedRoots::Exactly(pinned),
        _ => TrustedRoots::System,
    };
    Some(NodeLocation { url: node.url, trust })
}

fn admin_at(shared: &Shared, place: NodeLocation, own: &OwnCertificate) -> Result<Admin, Failure> {
    let file = DataFolder::admin_token_file(&folder(shared)?);
    let token = std::fs::read_to_string(&file)
        .map_err(|error| Failure::Refused(format!("cannot read the admin token in {}: {error}", file.display())))?;
    let terms = ConnectionTerms { certificate: own.load()?, trust: place.trust, ..ConnectionTerms::default() };
    Ok(Admin::new(TypedUrl::new(&place.url, terms)?, LOOK_UP_WITHIN, token.trim()))
}

pub(super) fn folder(shared: &Shared) -> Result<PathBuf, Failure> {
    let folder = shared.data.clone().or_else(DataFolder::default_path);
    folder.ok_or_else(|| Failure::Usage("HOME is not set, so the default data folder is unknown; use --data FOLDER".to_owned()))
}
