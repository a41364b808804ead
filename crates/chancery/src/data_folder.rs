//! The folder a node keeps its things in: database, keys, the admin token, and where the running node can be found.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chancery_identity::credentials::CertificateName;
use chancery_identity::{KeyError, SealKey};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read or written.
    #[error("{what} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another node uses the folder.
    #[error("the data folder {path} is in use by another running node{by}; --data takes another", path = path.display())]
    InUse {
        /// The path of the folder.
        path: PathBuf,
        /// Which process that is, where it is known.
        by: String,
    },
    /// A key file is damaged.
    #[error("{path} is damaged: {source}", path = path.display())]
    Key {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the key.
        #[source]
        source: KeyError,
    },
}

/// Where a running node answers, for commands on the same machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The URL of the node.
    pub url: String,
    /// Its process id.
    pub pid: u32,
    /// The certificate of the node, if it serves TLS. A process that can read this folder can trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateName>,
}

/// A data folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// The system lets go of it when the process ends, however it ends.
    lock: File,
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // Closing alone would not do: a program that is being started at this moment holds a copy of every open file
        // until it runs, and with it the lock.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, folder = %self.path.display(), "cannot unlock the data folder; the system unlocks it when the process ends");
        }
    }
}

impl DataFolder {
    /// The default folder: where the desktop standard keeps a user's data.
    pub fn default_path() -> Option<PathBuf> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data_home = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
        Some(data_home.join("chancery"))
    }

    /// Makes the folder if it is missing and takes it for this process.
    pub fn claim(path: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let path = path.into();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| FolderError::Io { what: "cannot make the data folder", path: path.clone(), source })?;
        let lock_path = path.join("node.lock");
        let fault = |source| FolderError::Io { what: "cannot lock", path: lock_path.clone(), source };
        let lock = owner_only().create(true).truncate(false).open(&lock_path).map_err(fault)?;
        match lock.try_lock() {
            Ok(()) => {
                // Whoever wrote it is gone: the lock would be theirs. Nobody is to look for them, and find somebody else.
                let _ = std::fs::remove_file(whereabouts_file(&path));
                Ok(Self { path, lock })
            }
            Err(TryLockError::WouldBlock) => {
                let by = Self::whereabouts(&path).map_or_else(String::new, |node| format!(" (pid {}, {})", node.pid, node.url));
                Err(FolderError::InUse { path, by })
            }
            Err(TryLockError::Error(source)) => Err(fault(source)),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.path.join("chancery.db")
    }

    /// The key of this node's seals, made on first use.
    pub fn seal_key(&self) -> Result<SealKey, FolderError> {
        let path = self.path.join("seal.key");
        let damaged = |source| FolderError::Key { path: path.clone(), source };
        let fresh = SealKey::random_bytes().map_err(damaged)?;
        let bytes = self.read_or_make(&path, &fresh)?;
        SealKey::new(&bytes).map_err(damaged)
    }

    /// The operator's token, made on first use.
    pub fn admin_token(&self) -> Result<SecretString, FolderError> {
        let path = Self::admin_token_file(&self.path);
        let fresh = SealKey::random_bytes().map_err(|source| FolderError::Key { path: path.clone(), source })?;
        let token: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = format!("{token}\n");
        let mut kept = self.read_or_make(&path, token.as_bytes())?;
        if kept.trim_ascii().is_empty() {
            // An empty token would be one that everybody knows.
            tracing::warn!(
                file = %path.display(),
                "the file is empty: the node wrote a new token to it. The admin API rejects programs with the old token"
            );
            write_whole(&path, token.as_bytes())?;
            kept = token.into_bytes();
        }
        Ok(String::from_utf8_lossy(&kept).trim().into())
    }

    /// Returns the path of the operator's token in a folder.
    pub fn admin_token_file(folder: &Path) -> PathBuf {
        folder.join("admin.token")
    }

    /// Writes down where this node answers, until the returned value is dropped.
    #[doc(hidden)]
    pub fn announce(&self, whereabouts: &Whereabouts) -> Result<Announced, FolderError> {
        let announced = Announced(whereabouts_file(&self.path));
        announced.change(whereabouts)?;
        Ok(announced)
    }

    /// What the last node in this folder wrote down. It may have ended without clearing up.
    #[doc(hidden)]
    pub fn whereabouts(folder: &Path) -> Option<Whereabouts> {
        serde_json::from_slice(&std::fs::read(whereabouts_file(folder)).ok()?).ok()
    }

    /// A file of the folder, if it is there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        let path = self.path.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(FolderError::Io { what: "cannot read", path, source }),
        }
    }

    /// Puts a file into the folder, for its owner alone, whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        write_whole(&self.path.join(name), bytes)
    }

    fn read_or_make(&self, path: &Path, fresh: &[u8]) -> Result<Vec<u8>, FolderError> {
        let fault = |what| move |source| FolderError::Io { what, path: path.to_owned(), source };
        match File::open(path) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(fault("cannot read"))?;
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_whole(path, fresh)?;
                Ok(fresh.to_vec())
            }
            Err(error) => Err(fault("cannot open")(error)),
        }
    }
}

/// Takes the node's whereabouts away when dropped.
#[derive(Debug)]
#[must_use]
pub struct Announced(PathBuf);

impl Announced {
    /// Writes down something else in its place, in one step: readers never see half a file.
    pub fn change(&self, whereabouts: &Whereabouts) -> Result<(), FolderError> {
        write_whole(&self.0, &serde_json::to_vec(whereabouts).unwrap_or_default())
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, file = %self.0.display(), "cannot remove the file with the address of the node");
        }
    }
}

fn whereabouts_file(folder: &Path) -> PathBuf {
    folder.join("node.json")
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Puts a file in place whole: a crash leaves the old one, the new one or none, never a part.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let fault = |source| FolderError::Io { what: "cannot write", path: path.to_owned(), source };
    let beside = path.with_extension("new");
    // A leftover could have another mode, so it is not written over.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
        _ => {}
    }
    let mut file = owner_only().create_new(true).open(&beside).map_err(fault)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fault)?;
    std::fs::rename(&beside, path).map_err(fault)?;
    let folder = path.parent().map(File::open);
    folder.map_or(Ok(()), |folder| folder.and_then(|folder| folder.sync_all())).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_what_is_in_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::claim(home.path().join("deep/data")).unwrap();
        folder.seal_key().unwrap();
        folder.admin_token().unwrap();
        assert_eq!(mode(folder.path()), 0o700);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }

    #[test]
    fn keys_and_token_are_made_once_and_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::claim(home.path()).unwrap();
        let (token, sealed) =
            (folder.admin_token().unwrap().expose_secret().to_owned(), folder.seal_key().unwrap().seal("p", b"x"));
        drop(folder);
        let again = DataFolder::claim(home.path()).unwrap();
        assert_eq!(again.admin_token().unwrap().expose_secret(), token);
        assert_eq!(token.len(), 64);
        assert_eq!(again.seal_key().unwrap().open("p", &sealed).as_deref(), Some(&b"x"[..]));
    }

    #[test]
    fn an_emptied_token_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::claim(home.path()).unwrap();
        let before = folder.admin_token().unwrap().expose_secret().to_owned();
        for emptied in ["", "\n \n"] {
            std::fs::write(DataFolder::admin_token_file(home.path()), emptied).unwrap();
            let after = folder.admin_token().unwrap().expose_secret().to_owned();
            assert!(after.len() == 64 && after != before, "{after}");
            assert_eq!(folder.admin_token().unwrap().expose_secret(), after, "and stays");
        }
    }

    #[test]
    fn a_folder_belongs_to_one_at_a_time_and_a_leftover_of_the_last_one_does_not_matter() {
        let home = tempfile::tempdir().unwrap();
        let stale = Whereabouts { url: "http://127.0.0.1:1".into(), pid: 1, certificate: None };
        std::fs::write(home.path().join("node.json"), serde_json::to_vec(&stale).unwrap()).unwrap();
        std::fs::write(home.path().join("node.lock"), "left over").unwrap();
        let folder = DataFolder::claim(home.path()).unwrap();
        assert_eq!(DataFolder::whereabouts(home.path()), None, "nobody is to be looked for there any more");
        let refused = DataFolder::claim(home.path()).unwrap_err();
        assert!(matches!(refused, FolderError::InUse { .. }), "{refused}");
        let mut here = Whereabouts { url: "http://127.0.0.1:2".into(), pid: 2, certificate: None };
        let announced = folder.announce(&here).unwrap();
        assert_eq!(DataFolder::whereabouts(home.path()), Some(here.clone()));
        here.certificate = Some(CertificateName::Sha256([7; 32]));
        announced.change(&here).unwrap();
        assert_eq!(DataFolder::whereabouts(home.path()), Some(here));
        drop(announced);
        assert_eq!(DataFolder::whereabouts(home.path()), None);
    }

    #[test]
    fn a_damaged_key_is_refused_by_its_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::claim(home.path()).unwrap();
        std::fs::write(home.path().join("seal.key"), "short").unwrap();
        let fault = folder.seal_key().unwrap_err().to_string();
        assert!(fault.contains("seal.key") && fault.contains("32"), "{fault}");
    }
}
