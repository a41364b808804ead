//! A tier in a bucket of Amazon S3, of Google Cloud Storage, or of an S3-compatible service.

use std::future::Future;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{Error, ListResult, ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart};
use ruvector_rulake::PulledBatch;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::ruvec::HEADER_BYTES;
use crate::storage_backend::{StorageBackend, vectors_name};
use crate::{Digest, MemoryError, VectorShape};

/// Of an upload, at once.
const PIECE: usize = 8 << 20;
/// Parts of an upload on their way at once.
const UPLOADS: usize = 4;

pub(crate) struct BucketTier {
    store: Arc<dyn ObjectStore>,
    url: String,
    prefix: Path,
    /// Everything here blocks, and the store does not: it works on a thread of its own.
    runtime: Option<Runtime>,
    spool: PathBuf,
}

impl std::fmt::Debug for BucketTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({})", self.url)
    }
}

impl Drop for BucketTier {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // May be dropped where nothing may block.
            runtime.shutdown_background();
        }
    }
}

fn fault(doing: &str, error: Error) -> MemoryError {
    MemoryError::Tier(format!("{doing}: {error}"), Some(Box::new(error)))
}

impl BucketTier {
    /// Whether a tier is a bucket.
    pub(crate) fn is(url: &str) -> bool {
        ["s3://", "gs://"].iter().any(|scheme| url.starts_with(scheme))
    }

    /// `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`. Credentials, region and endpoint come from the environment, by the names that the
    /// tools of each have for them.
    pub(crate) fn open(url: &str) -> Result<Self, MemoryError> {
        let unopened = |error| fault("open the bucket", error);
        let store: Arc<dyn ObjectStore> = if url.starts_with("gs://") {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url).build().map_err(unopened)?)
        } else {
            Arc::new(AmazonS3Builder::from_env().with_url(url).build().map_err(unopened)?)
        };
        let place = url.split_once("://").map_or("", |(_, place)| place);
        let prefix = Path::from(place.split_once('/').map_or("", |(_, prefix)| prefix));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("bucket").build();
        let runtime = runtime.map_err(|error| MemoryError::io("start a thread for the bucket", error))?;
        let spool = std::env::temp_dir();
        Ok(Self { store, url: format!("{}/", url.trim_end_matches('/')), prefix, runtime: Some(runtime), spool })
    }

    fn at(&self, name: &str) -> Path {
        Path::from_iter(self.prefix.parts().chain(Path::from(name).parts()))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(Error::NotImplemented { operation: "a bucket that is closed".into(), implementer: "Bucket".into() }),
        }
    }

    fn listed(&self, under: &str) -> Result<ListResult, MemoryError> {
        let place = self.at(under);
        self.wait(self.store.list_with_delimiter(Some(&place))).map_err(|error| fault("list", error))
    }

    /// A file of vectors, in parts.
    fn upload(&self, digest: &Digest, filled: &std::path::Path) -> Result<(), MemoryError> {
        let unread = |error| MemoryError::io("read a file back", error);
        let mut file = std::fs::File::open(filled).map_err(unread)?;
        let place = self.at(&vectors_name(digest));
        let uploading = self.wait(self.store.put_multipart(&place)).map_err(|error| fault("begin an upload", error))?;
        let mut upload = WriteMultipart::new_with_chunk_size(uploading, PIECE);
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).map_err(unread)?;
            if read == 0 {
                break;
            }
            // Inside, because parts are sent by tasks.
            let sent = self.wait(async {
                upload.wait_for_capacity(UPLOADS).await?;
                upload.write(&piece[..read]);
                Ok(())
            });
            sent.map_err(|error| fault("upload", error))?;
        }
        self.wait(upload.finish()).map(drop).map_err(|error| fault("finish an upload", error))
    }
}

fn found<T>(result: Result<T, Error>, doing: &str) -> Result<Option<T>, MemoryError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(fault(doing, error)),
    }
}

impl StorageBackend for BucketTier {
    fn url(&self) -> &str {
        &self.url
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, MemoryError> {
        match self.size(name)? {
            None => Ok(None),
            Some(bytes) if bytes > limit => Err(MemoryError::TooLarge { what: "a record", bytes, limit }),
            Some(0) => Ok(Some(Vec::new())),
            // No more than that, whatever it has become meanwhile.
            Some(bytes) => self.read_range(name, 0, bytes).map(Some),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), MemoryError> {
        let payload = PutPayload::from(content.to_vec());
        self.wait(self.store.put(&self.at(name), payload)).map(drop).map_err(|error| fault("write", error))
    }

    fn exists(&self, name: &str) -> Result<bool, MemoryError> {
        Ok(self.size(name)?.is_some())
    }

    fn size(&self, name: &str) -> Result<Option<u64>, MemoryError> {
        Ok(found(self.wait(self.store.head(&self.at(name))), "look")?.map(|meta| meta.size))
    }

    fn read_range(&self, name: &str, from: u64, most: u64) -> Result<Vec<u8>, MemoryError> {
        let place = self.at(name);
        let piece = self.wait(self.store.get_range(&place, from..from.saturating_add(most)));
        piece.map(Vec::from).map_err(|error| fault("read", error))
    }

    fn remove_all(&self, under: &str) -> Result<(), MemoryError> {
        let place = self.at(under);
        let gone = async {
            let all: Vec<_> = self.store.list(Some(&place)).try_collect().await?;
            for one in all {
                self.store.delete(&one.location).await?;
            }
            Ok(())
        };
        self.wait(gone).map_err(|error| fault("remove", error))
    }

    fn list(&self, under: &str) -> Result<Vec<String>, MemoryError> {
        let listed = self.listed(under)?;
        let objects = listed.objects.iter().filter_map(|object| object.location.filename());
        let folders = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
        let mut names: Vec<String> = objects.chain(folders).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn weight(&self, under: &str) -> Result<u64, MemoryError> {
        Ok(self.listed(under)?.objects.iter().map(|object| object.size).sum())
    }

    fn blank(&self) -> Result<PathBuf, MemoryError> {
        Ok(self.spool.join(format!("chancery-{}", Uuid::now_v7())))
    }

    fn take_vectors(&self, digest: &Digest, filled: PathBuf) -> Result<(), MemoryError> {
        let taken = self.upload(digest, &filled);
        // Whatever came of it. What cannot be removed lies in the folder for temporary files.
        let _ = std::fs::remove_file(filled);
        taken
    }

    fn vectors(&self, digest: &Digest, limit: u64) -> Result<PulledBatch, MemoryError> {
        let name = vectors_name(digest);
        let tampered = MemoryError::Tampered;
        let bytes = self.size(&name)?.ok_or(tampered("the vectors of the bundle are gone"))?;
        if bytes > limit {
            return Err(MemoryError::TooLarge { what: "vectors", bytes, limit });
        }
        if bytes < HEADER_BYTES as u64 {
            return Err(tampered("the vectors are cut short"));
        }
        let header = self.read_range(&name, 0, HEADER_BYTES as u64)?;
        let header = header.first_chunk().ok_or(tampered("the vectors are cut short"))?;
        let shape = VectorShape::read(header)?;
        // Before anything is made room for on the word of a header.
        if shape.bytes() != bytes {
            return Err(tampered("the vectors are not as many as their header says"));
        }
        let mut records = Records::new(shape);
        let place = self.at(&name);
        let pulled = self.wait(async {
            let mut pieces = self.store.get(&place).await?.into_stream();
            while let Some(piece) = pieces.next().await {
                // One that has grown since is read no further.
                if !records.take(&piece?) {
                    break;
                }
            }
            Ok(())
        });
        pulled.map_err(|error| fault("read", error))?;
        records.finish(digest.to_string())
    }
}

/// Records as they arrive in pieces of any size.
struct Records {
    shape: VectorShape,
    skipped: usize,
    open: Vec<u8>,
    ids: Vec<u64>,
    vectors: Vec<Vec<f32>>,
}

impl Records {
    fn new(shape: VectorShape) -> Self {
        let count = usize::try_from(shape.count).unwrap_or(0);
        Self { shape, skipped: 0, open: Vec::new(), ids: Vec::with_capacity(count), vectors: Vec::with_capacity(count) }
    }

    /// Whether more can be taken.
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        let header = (HEADER_BYTES - self.skipped).min(bytes.len());
        self.skipped += header;
        bytes = &bytes[header..];
        let record = usize::try_from(self.shape.record_bytes()).unwrap_or(usize::MAX);
        while !bytes.is_empty() && (self.ids.len() as u64) < self.shape.count {
            let step = bytes.len().min(record - self.open.len());
            self.open.extend_from_slice(&bytes[..step]);
            bytes = &bytes[step..];
            if self.open.len() == record
                && let Some((id, numbers)) = self.open.split_first_chunk::<8>()
            {
                self.ids.push(u64::from_le_bytes(*id));
                let (numbers, _) = numbers.as_chunks::<4>();
                self.vectors.push(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect());
                self.open.clear();
            }
        }
        bytes.is_empty()
    }

    fn finish(self, collection: String) -> Result<PulledBatch, MemoryError> {
        if self.ids.len() as u64 != self.shape.count {
            return Err(MemoryError::Tampered("the vectors are cut short"));
        }
        let dim = self.shape.dim as usize;
        Ok(PulledBatch { collection, ids: self.ids, vectors: self.vectors, dim, generation: 0 })
    }
}
