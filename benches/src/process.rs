//! What the kernel knows of a process: processor time used and memory held.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Processor time of all threads, the ended ones too.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The second field is the name in brackets and may hold spaces: count from behind it.
    let (_, fields) = stat.rsplit_once(')').context("stat has no name")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = 0;
    for _ in 0..2 {
        ticks += fields.next().context("stat is short")?.parse::<u64>()?;
    }
    // The kernel reports these to programs in hundredths of a second whatever its own tick is.
    Ok(Duration::from_millis(ticks * 10))
}

/// Bytes of memory resident now.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim_end().parse().context("VmRSS")?;
    Ok(kib * 1024)
}

/// Bytes that a process has written to its disk so far.
pub(crate) fn written_to_disk(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/io");
    let io = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:")).context("no write_bytes")?;
    line.trim().parse().context("write_bytes")
}

/// How many files this process may hold open at most.
pub(crate) fn open_files_limit() -> Result<u64> {
    let limits = fs::read_to_string("/proc/self/limits").context("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).context("no limit of open files")?;
    let hard = line.split_ascii_whitespace().nth(1).context("no hard limit")?;
    Ok(hard.parse().unwrap_or(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_this_process() {
        let me = std::process::id();
        cpu_time(me).expect("cpu time");
        assert!(resident(me).expect("resident") > 100_000);
        written_to_disk(me).expect("bytes written");
        assert!(open_files_limit().expect("limit") > 0);
    }
}
