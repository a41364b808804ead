//! The vector files of ruLake's filesystem backend (`ruvec1`): a header of 24 bytes, then records of one size.

use ruvector_rulake::PulledBatch;

use crate::MemoryError;
use crate::digest::{Digest, Digesting};

const MAGIC: &[u8; 8] = b"ruvec1\0\0";
pub const HEADER_BYTES: usize = 24;
const ID_BYTES: u64 = 8;
/// As ruLake reads them.
const MAX_DIM: u32 = 8192;
const MAX_COUNT: u64 = 100_000_000;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorShape {
    pub count: u64,
    pub dim: u32,
}

impl VectorShape {
    pub fn read(header: &[u8; HEADER_BYTES]) -> Result<Self, MemoryError> {
        let wrong = MemoryError::NotVectors;
        let (magic, rest) = header.split_first_chunk::<8>().ok_or(wrong("the header is short"))?;
        let (count, rest) = rest.split_first_chunk::<8>().ok_or(wrong("the header is short"))?;
        let (dim, reserved) = rest.split_first_chunk::<4>().ok_or(wrong("the header is short"))?;
        if magic != MAGIC {
            return Err(wrong("the header does not begin with ruvec1"));
        }
        let shape = Self { count: u64::from_le_bytes(*count), dim: u32::from_le_bytes(*dim) };
        if reserved != [0; 4] || shape.dim == 0 || shape.dim > MAX_DIM || shape.count > MAX_COUNT {
            return Err(wrong("the header says something impossible"));
        }
        Ok(shape)
    }

    pub fn header(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.count.to_le_bytes());
        header[16..20].copy_from_slice(&self.dim.to_le_bytes());
        header
    }

    pub const fn record_bytes(self) -> u64 {
        ID_BYTES + 4 * self.dim as u64
    }

    /// Of the whole file. The bounds of a header keep it from overflowing.
    pub const fn bytes(self) -> u64 {
        HEADER_BYTES as u64 + self.count * self.record_bytes()
    }
}

/// The digest of the file that these vectors came from, made from what was read of it: nothing can change in between.
pub(crate) fn digest(batch: &PulledBatch) -> Result<Digest, MemoryError> {
    let dim = u32::try_from(batch.dim).map_err(|_| MemoryError::NotVectors("too many dimensions"))?;
    let shape = VectorShape { count: batch.ids.len() as u64, dim };
    let mut digesting = Digesting::new();
    digesting.update(&shape.header());
    let mut record = Vec::with_capacity(shape.record_bytes() as usize);
    for (id, vector) in batch.ids.iter().zip(&batch.vectors) {
        record.clear();
        record.extend_from_slice(&id.to_le_bytes());
        record.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        digesting.update(&record);
    }
    Ok(digesting.finish())
}

/// Reads records as they arrive in pieces of any size, and refuses what cannot be searched.
pub(crate) struct Checking {
    shape: VectorShape,
    /// Bytes of records seen.
    at: u64,
    /// The bytes of a number that came in two pieces.
    open: Vec<u8>,
}

impl Checking {
    pub(crate) fn new(shape: VectorShape) -> Self {
        Self { shape, at: 0, open: Vec::with_capacity(4) }
    }

    /// Infinities and what is no number have no neighbours.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<(), MemoryError> {
        let record = self.shape.record_bytes();
        while !bytes.is_empty() {
            let into = self.at % record;
            let step = if into < ID_BYTES {
                bytes.len().min((ID_BYTES - into) as usize)
            } else {
                let step = bytes.len().min((record - into) as usize);
                self.numbers(&bytes[..step])?;
                step
            };
            self.at += step as u64;
            bytes = &bytes[step..];
        }
        Ok(())
    }

    fn numbers(&mut self, mut bytes: &[u8]) -> Result<(), MemoryError> {
        let finite = |number: &[u8; 4]| {
            if f32::from_le_bytes(*number).is_finite() { Ok(()) } else { Err(MemoryError::NotVectors("a number is not finite")) }
        };
        while !self.open.is_empty() && !bytes.is_empty() {
            self.open.push(bytes[0]);
            bytes = &bytes[1..];
            if let Some(number) = self.open.first_chunk::<4>() {
                finite(number)?;
                self.open.clear();
            }
        }
        let (numbers, rest) = bytes.as_chunks::<4>();
        numbers.iter().try_for_each(finite)?;
        self.open.extend_from_slice(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_how_long_the_file_is() {
        let shape = VectorShape { count: 1_000_000, dim: 128 };
        assert_eq!(shape.bytes(), 24 + 1_000_000 * 520);
        assert_eq!(VectorShape::read(&shape.header()).unwrap(), shape);
        let mut reserved = shape.header();
        reserved[23] = 1;
        assert!(VectorShape::read(&reserved).is_err());
        assert!(VectorShape::read(&VectorShape { count: u64::MAX, dim: 1 }.header()).is_err());
        assert!(VectorShape::read(&VectorShape { count: 1, dim: 0 }.header()).is_err());
        assert!(VectorShape::read(b"not what it should be...").is_err());
    }

    #[test]
    fn what_is_no_number_is_seen_however_the_bytes_are_cut() {
        let shape = VectorShape { count: 2, dim: 3 };
        for bad in [None, Some(f32::NAN), Some(f32::INFINITY)] {
            let mut records = Vec::new();
            for id in 0..2u64 {
                // An id may have any bytes, also those of a NaN.
                records.extend(u64::MAX.to_le_bytes());
                let last = if id == 1 { bad.unwrap_or(0.5) } else { 0.5 };
                records.extend([1.0f32, -2.0, last].iter().flat_map(|number| number.to_le_bytes()));
            }
            for cut in 1..records.len() {
                let mut checking = Checking::new(shape);
                let seen = records.chunks(cut).try_for_each(|piece| checking.take(piece));
                assert_eq!(seen.is_err(), bad.is_some(), "{bad:?} in pieces of {cut}");
            }
        }
    }
}
