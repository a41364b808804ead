//! The container: a gzipped tar with two members, always in this order.

use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

use super::fault::{BundleFault, BundleFaultCode};
use super::limits;

pub const MANIFEST: &str = "manifest.json";
pub const EVENTS: &str = "events.ndjson";

const BLOCK: usize = 512;

/// Two members become a bundle. The same members always become the same bytes.
pub fn pack(manifest: &[u8], events: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    for (name, content) in [(MANIFEST, manifest), (EVENTS, events)] {
        gzip.write_all(&header(name, content.len()))?;
        gzip.write_all(content)?;
        gzip.write_all(&vec![0; content.len().next_multiple_of(BLOCK) - content.len()])?;
    }
    gzip.write_all(&[0; 2 * BLOCK])?;
    gzip.finish()
}

/// A GNU header of a file without owner and age.
fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(257, b"ustar  \0");
    put(265, b"assay");
    put(297, b"assay");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
    header
}

/// The two members of a bundle.
pub fn unpack(bundle: &[u8]) -> Result<(Vec<u8>, Vec<u8>), BundleFault> {
    if bundle.len() as u64 > limits::BUNDLE_BYTES {
        return Err(BundleFault::new(
            BundleFaultCode::LimitBundleBytes,
            format!("a bundle has at most {} bytes", limits::BUNDLE_BYTES),
        ));
    }
    let mut decoded = Vec::new();
    let mut gzip = GzDecoder::new(bundle);
    let read = gzip.by_ref().take(limits::DECODED_BYTES + 1).read_to_end(&mut decoded);
    read.map_err(|fault| BundleFault::new(BundleFaultCode::IntegrityGzip, format!("not whole gzip: {fault}")))?;
    if decoded.len() as u64 > limits::DECODED_BYTES {
        return Err(BundleFault::new(
            BundleFaultCode::LimitDecodeBytes,
            format!("more than {} bytes unpacked", limits::DECODED_BYTES),
        ));
    }
    if !gzip.get_ref().is_empty() {
        return Err(BundleFault::new(BundleFaultCode::IntegrityGzip, "something follows the end of the gzip"));
    }
    let mut found: [Option<Vec<u8>>; 2] = [None, None];
    for (name, content) in members(&decoded)? {
        let place = match name.as_str() {
            MANIFEST => 0,
            EVENTS => 1,
            _ => return Err(not_expected(&name)),
        };
        let most = [limits::MANIFEST_BYTES, limits::EVENTS_BYTES][place];
        if content.len() as u64 > most {
            return Err(BundleFault::new(BundleFaultCode::LimitFileSize, format!("{name} has more than {most} bytes")));
        }
        if found[place].is_some() {
            return Err(BundleFault::new(BundleFaultCode::ContractDuplicateFile, format!("{name} is there twice")));
        }
        if place == 1 && found[0].is_none() {
            return Err(BundleFault::new(BundleFaultCode::ContractFileOrder, format!("{MANIFEST} does not come first")));
        }
        found[place] = Some(content.to_vec());
    }
    match found {
        [Some(manifest), Some(events)] => Ok((manifest, events)),
        [None, _] => Err(BundleFault::new(BundleFaultCode::ContractMissingFile, format!("there is no {MANIFEST}"))),
        [_, None] => Err(BundleFault::new(BundleFaultCode::ContractMissingFile, format!("there is no {EVENTS}"))),
    }
}

fn not_expected(name: &str) -> BundleFault {
    let code = match name {
        name if name.len() > limits::PATH_BYTES => BundleFaultCode::LimitPathLength,
        name if name.starts_with('/') => BundleFaultCode::SecurityAbsolutePath,
        name if name.split('/').any(|part| part == "..") => BundleFaultCode::SecurityPathTraversal,
        _ => BundleFaultCode::ContractUnexpectedFile,
    };
    let shown: String = name.chars().take(64).flat_map(char::escape_default).collect();
    BundleFault::new(code, format!("a bundle has no file {shown}"))
}

/// Plain files only; the checksum of each header is looked at.
fn members(tar: &[u8]) -> Result<Vec<(String, &[u8])>, BundleFault> {
    let broken = |why: &str| BundleFault::new(BundleFaultCode::IntegrityTar, format!("not a whole tar: {why}"));
    let mut members = Vec::new();
    let mut rest = tar;
    loop {
        let Some((header, after)) = rest.split_at_checked(BLOCK) else {
            return Err(broken("it ends without an end"));
        };
        if header.iter().all(|byte| *byte == 0) {
            return if after.iter().all(|byte| *byte == 0) { Ok(members) } else { Err(broken("something follows its end")) };
        }
        let sum: u64 =
            header.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum();
        if octal(&header[148..156]) != Some(sum) {
            return Err(broken("a header has another checksum"));
        }
        let text = |from: usize, to: usize| {
            let field = header[from..to].split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(field).into_owned()
        };
        let mut name = text(0, 100);
        let prefix = if &header[257..263] == b"ustar\0" { text(345, 500) } else { String::new() };
        if !prefix.is_empty() {
            name = format!("{prefix}/{name}");
        }
        if !matches!(header[156], 0 | b'0') {
            return Err(BundleFault::new(BundleFaultCode::ContractUnexpectedFile, "a bundle holds plain files only"));
        }
        let size = octal(&header[124..136]).and_then(|size| usize::try_from(size).ok());
        let size =
            size.filter(|size| *size <= after.len()).ok_or_else(|| broken("a file is longer than the rest of the archive"))?;
        members.push((name, &after[..size]));
        rest = &after[size.next_multiple_of(BLOCK).min(after.len())..];
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(|letter| letter == '\0' || letter == ' '), 8).ok()
}
