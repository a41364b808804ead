//! How often: a reduced count for every day, the full one for `cargo xtask soak`.

pub(crate) fn full_counts(reduced: usize, full: usize) -> usize {
    let soak = std::env::var_os("CHANCERY_SOAK").is_some_and(|set| set == "1");
    if soak { full } else { reduced }
}
