//! Transactions that a process has committed to its SQLite database, counted in the write-ahead log.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// How many there are in the log as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commits {
    /// Another one when the log was begun anew.
    salt: u64,
    count: u64,
}

impl Commits {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let path = write_ahead_log(pid)?;
        let log = fs::read(&path).with_context(|| path.display().to_string())?;
        Self::read(&log).context("not a write-ahead log")
    }

    /// Those that came since.
    pub(crate) fn since(self, before: Self) -> Result<u64> {
        ensure!(self.salt == before.salt, "the write-ahead log was begun anew");
        Ok(self.count - before.count)
    }

    fn read(log: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let salt_of = |bytes: &[u8], at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (page, salt) = (number(log, 8)? as usize, salt_of(log, 16)?);
        let frames = log.get(HEADER..)?.chunks_exact(FRAME_HEADER + page);
        // What is left of an earlier log has another salt. The last frame of a transaction has the size of the database.
        let written = frames.take_while(|frame| salt_of(frame, 8) == Some(salt));
        let count = written.filter(|frame| number(frame, 4) != Some(0)).count() as u64;
        Some(Self { salt, count })
    }
}

fn write_ahead_log(pid: u32) -> Result<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let mut paths = open.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    paths.find(|path| path.to_string_lossy().ends_with(".db-wal")).context("no write-ahead log is open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frames_of_transactions_are_counted_up_to_what_is_left_of_an_earlier_log() {
        let page = 512_u32;
        let frame = |size: u32, salt: u64| {
            let mut frame = [1_u32.to_be_bytes(), size.to_be_bytes()].concat();
            frame.extend(salt.to_be_bytes());
            frame.resize(FRAME_HEADER + page as usize, 0);
            frame
        };
        let mut log = vec![0; HEADER];
        log[8..12].copy_from_slice(&page.to_be_bytes());
        log[16..24].copy_from_slice(&7_u64.to_be_bytes());
        assert_eq!(Commits::read(&log), Some(Commits { salt: 7, count: 0 }));
        for (size, salt) in [(0, 7), (3, 7), (4, 7), (0, 7), (9, 6)] {
            log.extend(frame(size, salt));
        }
        let now = Commits::read(&log).expect("a log");
        assert_eq!(now, Commits { salt: 7, count: 2 });
        assert_eq!(now.since(Commits { salt: 7, count: 1 }).expect("the same log"), 1);
        assert!(now.since(Commits { salt: 6, count: 1 }).is_err());
    }
}
