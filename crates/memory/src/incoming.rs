//! Vectors on their way into a tier: bounded, checked and digested as they arrive.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use crate::digest::Digesting;
use crate::ruvec::{Checking, HEADER_BYTES};
use crate::{Digest, MemoryError, VectorShape};

/// A `ruvec1` file that comes in pieces of any size. Left unfinished, nothing stays of it.
pub struct Incoming {
    path: Option<PathBuf>,
    file: BufWriter<File>,
    limit: u64,
    bytes: u64,
    header: Vec<u8>,
    checking: Option<(VectorShape, Checking)>,
    digesting: Digesting,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Incoming {
    pub(crate) fn new(path: PathBuf, limit: u64) -> Result<Self, MemoryError> {
        let file = File::create_new(&path).map_err(|error| MemoryError::io("begin a file", error))?;
        Ok(Self {
            path: Some(path),
            file: BufWriter::with_capacity(1 << 18, file),
            limit,
            bytes: 0,
            header: Vec::with_capacity(HEADER_BYTES),
            checking: None,
            digesting: Digesting::new(),
        })
    }

    pub fn take(&mut self, bytes: &[u8]) -> Result<(), MemoryError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limit {
            return Err(MemoryError::TooLarge { what: "vectors", bytes: self.bytes, limit: self.limit });
        }
        self.digesting.update(bytes);
        self.file.write_all(bytes).map_err(|error| MemoryError::io("write a file", error))?;
        let missing = HEADER_BYTES - self.header.len();
        let (header, records) = bytes.split_at(missing.min(bytes.len()));
        self.header.extend_from_slice(header);
        if let (None, Some(header)) = (&self.checking, self.header.first_chunk::<HEADER_BYTES>()) {
            let shape = VectorShape::read(header)?;
            if shape.bytes() > self.limit {
                return Err(MemoryError::TooLarge { what: "vectors", bytes: shape.bytes(), limit: self.limit });
            }
            self.checking = Some((shape, Checking::new(shape)));
        }
        match &mut self.checking {
            Some((_, checking)) => checking.take(records),
            None => Ok(()),
        }
    }

    /// The whole file, durable on this machine, with the digest of its content.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, VectorShape, Digest), MemoryError> {
        let Some((shape, _)) = self.checking else { return Err(MemoryError::NotVectors("the header is short")) };
        if shape.bytes() != self.bytes {
            return Err(MemoryError::NotVectors("the number of vectors differs from the header"));
        }
        if shape.count == 0 {
            return Err(MemoryError::NotVectors("the file has no vectors"));
        }
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|error| MemoryError::io("flush a file", error))?;
        let path = self.path.take().ok_or_else(|| MemoryError::Tier("a file without a place".into(), None))?;
        let digesting = std::mem::replace(&mut self.digesting, Digesting::new());
        Ok((path, shape, digesting.finish()))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed here lies in the folder for incoming files and is never read.
            let _ = fs::remove_file(path);
        }
    }
}
