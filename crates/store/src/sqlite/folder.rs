//! The files of a store: who may open them, and that only one process does.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use chancery_core::StoreError;

const OWNER_ONLY: u32 = 0o600;

/// Held as long as the store is open. The system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct FolderLock {
    lock: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone would not do: a program that is being started at this moment holds a copy of every open file
        // until it runs, and with it the lock.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "cannot release the lock of the database; another node can open it once this process has ended");
        }
    }
}

/// Makes the files that are missing and takes the lock.
pub(super) fn claim(database: &Path) -> Result<FolderLock, StoreError> {
    let folder = match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|error| failed("making the folder", folder, error))?;

    let lock_path = beside(database, "-lock");
    let lock = open(&lock_path).map_err(|error| failed("opening the lock file", &lock_path, error))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            StoreError::new(format!("the database {} is in use by another running server", database.display()))
        }
        TryLockError::Error(error) => failed("locking", &lock_path, error),
    })?;

    // SQLite gives the files it makes beside the database the same mode.
    open(database).map_err(|error| failed("opening the database", database, error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed("syncing the folder", folder, error))?;
    Ok(FolderLock { lock })
}

fn open(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY).open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != OWNER_ONLY {
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    }
    Ok(file)
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn failed(what: &str, path: &Path, error: std::io::Error) -> StoreError {
    StoreError::caused_by(format!("{what} {} failed: {error}", path.display()), error)
}
