//! A tier in a folder, its vectors read by ruLake's filesystem backend.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use ruvector_rulake::{BackendAdapter as _, FsBackend, PulledBatch};
use uuid::Uuid;

use crate::ruvec::HEADER_BYTES;
use crate::storage_backend::{StorageBackend, vectors_name};
use crate::{Digest, MemoryError, VectorShape};

pub(crate) struct Folder {
    root: PathBuf,
    url: String,
    lake_side: FsBackend,
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Folder({})", self.url)
    }
}

impl Folder {
    /// Makes the folder if it is not there.
    pub(crate) fn open(root: &Path) -> Result<Self, MemoryError> {
        for name in ["vectors", "bundles", "grants", "revoked", "incoming", "offload"] {
            fs::create_dir_all(root.join(name)).map_err(|error| MemoryError::io("make its folders", error))?;
        }
        // All that is read later is held against this, so that it has to be the real place.
        let root = root.canonicalize().map_err(|error| MemoryError::io("find its folder", error))?;
        let path = root.to_str().ok_or_else(|| MemoryError::Tier("its path is not UTF-8".into(), None))?;
        let url = format!("file://{path}/");
        let lake_side = FsBackend::new("files", root.join("vectors"))?;
        Ok(Self { root, url, lake_side })
    }

    /// An ordinary file of the tier and its length. Links lead out of the tier, and devices and pipes never
    /// end.
    fn look(&self, name: &str) -> Result<Option<(PathBuf, u64)>, MemoryError> {
        let path = self.root.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => Ok(Some((path, found.len()))),
            Ok(_) => Err(MemoryError::Tampered("something else lies where a file should be")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(MemoryError::io("look for a file", error)),
        }
    }

    /// What is directly under a name, which need not be there.
    fn entries(&self, under: &str) -> Result<Vec<fs::DirEntry>, MemoryError> {
        let fault = |error| MemoryError::io("list a folder", error);
        match fs::read_dir(self.root.join(under)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            entries => entries.map_err(fault)?.collect::<Result<_, _>>().map_err(fault),
        }
    }

    fn settle(&self, filled: &Path, name: &str) -> Result<(), MemoryError> {
        let to = self.root.join(name);
        let folder = to.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(|error| MemoryError::io("make a folder", error))?;
        fs::rename(filled, &to).map_err(|error| MemoryError::io("put a file in place", error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| MemoryError::io("flush a folder", error))
    }
}

/// A file that did not get to its place, on a full disk for instance, takes no more of it.
fn left_over<T>(done: Result<T, MemoryError>, file: &Path) -> Result<T, MemoryError> {
    if done.is_err() {
        let _ = fs::remove_file(file);
    }
    done
}

impl StorageBackend for Folder {
    fn url(&self) -> &str {
        &self.url
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, MemoryError> {
        let Some((path, bytes)) = self.look(name)? else { return Ok(None) };
        let file = File::open(path).map_err(|error| MemoryError::io("open a file", error))?;
        let mut content = Vec::with_capacity(usize::try_from(bytes.min(limit) + 1).unwrap_or(0));
        file.take(limit + 1).read_to_end(&mut content).map_err(|error| MemoryError::io("read a file", error))?;
        match content.len() as u64 {
            bytes if bytes > limit => Err(MemoryError::TooLarge { what: "a record", bytes, limit }),
            _ => Ok(Some(content)),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), MemoryError> {
        let blank = self.blank()?;
        let written = File::create(&blank).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        let settled = written.map_err(|error| MemoryError::io("write a file", error)).and_then(|()| self.settle(&blank, name));
        left_over(settled, &blank)
    }

    fn exists(&self, name: &str) -> Result<bool, MemoryError> {
        // Whatever lies there counts: a revocation must not be undone by turning it into something else.
        match fs::symlink_metadata(self.root.join(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(MemoryError::io("look for a file", error)),
        }
    }

    fn size(&self, name: &str) -> Result<Option<u64>, MemoryError> {
        Ok(self.look(name)?.map(|(_, bytes)| bytes))
    }

    fn read_range(&self, name: &str, from: u64, most: u64) -> Result<Vec<u8>, MemoryError> {
        let Some((path, _)) = self.look(name)? else { return Err(MemoryError::Unknown(name.to_owned())) };
        let mut content = Vec::new();
        let read = File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(most).read_to_end(&mut content)
        });
        read.map(|_| content).map_err(|error| MemoryError::io("read a file", error))
    }

    fn remove_all(&self, under: &str) -> Result<(), MemoryError> {
        match fs::remove_dir_all(self.root.join(under)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(MemoryError::io("remove a folder", error)),
            _ => Ok(()),
        }
    }

    fn list(&self, under: &str) -> Result<Vec<String>, MemoryError> {
        let mut names: Vec<_> = self.entries(under)?.into_iter().flat_map(|entry| entry.file_name().into_string()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn weight(&self, under: &str) -> Result<u64, MemoryError> {
        let sizes = self.entries(under)?.into_iter().map(|entry| entry.metadata().map(|about| about.len()));
        sizes.sum::<Result<_, _>>().map_err(|error| MemoryError::io("look into a folder", error))
    }

    fn blank(&self) -> Result<PathBuf, MemoryError> {
        Ok(self.root.join("incoming").join(Uuid::now_v7().to_string()))
    }

    fn take_vectors(&self, digest: &Digest, filled: PathBuf) -> Result<(), MemoryError> {
        left_over(self.settle(&filled, &vectors_name(digest)), &filled)
    }

    fn vectors(&self, digest: &Digest, limit: u64) -> Result<PulledBatch, MemoryError> {
        let name = vectors_name(digest);
        let Some((path, bytes)) = self.look(&name)? else {
            return Err(MemoryError::Tampered("the vectors of the bundle are gone"));
        };
        if bytes > limit {
            return Err(MemoryError::TooLarge { what: "vectors", bytes, limit });
        }
        let mut header = [0; HEADER_BYTES];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
        read.map_err(|_| MemoryError::Tampered("the vectors are cut short"))?;
        // Before anything is made room for on the word of a header.
        if VectorShape::read(&header)?.bytes() != bytes {
            return Err(MemoryError::Tampered("the vectors are not as many as their header says"));
        }
        let collection = digest.to_string();
        self.lake_side.register(&collection, format!("{digest}.ruvec"))?;
        Ok(self.lake_side.pull_vectors(&collection)?)
    }
}
