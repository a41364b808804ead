//! The node on this machine: where it answers and which token it takes, from its data folder.

use std::path::PathBuf;
use std::time::Duration;

use chancery::DataFolder;
use chancery_outbound::{Admin, Peer};

use super::{Failure, Shared};

/// How long the node may take to answer what it only has to look up.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(30);

/// The address of the node that runs in the data folder.
pub(super) fn url(shared: &Shared) -> Result<String, Failure> {
    let folder = folder(shared)?;
    let node = DataFolder::whereabouts(&folder).ok_or_else(|| {
        Failure::Unreachable(format!(
            "no node runs in {}; start one with `chancery serve`, or say where one is with --data or --url (a node with \
             --memory and no --data writes nothing down)",
            folder.display()
        ))
    })?;
    Ok(node.url)
}

/// The node's admin API.
pub(super) fn admin(shared: &Shared) -> Result<Admin, Failure> {
    let url = url(shared)?;
    let file = DataFolder::admin_token_file(&folder(shared)?);
    let token = std::fs::read_to_string(&file)
        .map_err(|error| Failure::Refused(format!("cannot read the admin token in {}: {error}", file.display())))?;
    Ok(Admin::new(Peer::new(&url, LOOK_UP_WITHIN)?, token.trim()))
}

fn folder(shared: &Shared) -> Result<PathBuf, Failure> {
    let folder = shared.data.clone().or_else(DataFolder::default_path);
    folder.ok_or_else(|| Failure::Usage("there is no HOME to look for a node in; say --data FOLDER".to_owned()))
}
