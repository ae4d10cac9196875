//! What an election takes of a machine and of a database.

use std::{fmt, fs};

use crate::{kind::Need, stage::Stage};

/// What one candidate takes, which was there from the beginning, and what all of them take together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Footprint {
    memory_kib: u64,
    threads: u64,
    files: u64,
    /// Of all candidates that are there, for each of them.
    sessions_each: u64,
    /// Of the table, file or bucket.
    store_bytes: u64,
}

/// What an allocator may keep for itself.
const SLACK_KIB: u64 = 4 * 1024;
/// Dead rows of a table, until they are cleaned up.
const SLACK_BYTES: u64 = 512 * 1024;

impl Footprint {
    pub(crate) fn of(stage: &Stage) -> Self {
        let pid = stage.replicas[0].participant.pid();
        let count = |directory: &str| {
            let entries = fs::read_dir(format!("/proc/{pid}/{directory}"));
            entries.map(Iterator::count).unwrap_or_default() as u64
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|memory| memory.trim().trim_end_matches(" kB").parse().ok());
        let candidates = stage.present().count().max(1) as u64;
        let has_sessions = stage.ground.kind.has(Need::Users);
        let sessions = if has_sessions { stage.ground.sessions() } else { 0 };
        Self {
            memory_kib: memory.unwrap_or_default(),
            threads: count("task"),
            files: count("fd"),
            sessions_each: sessions.div_ceil(candidates),
            store_bytes: stage.ground.store_bytes(),
        }
    }

    /// The most of everything.
    pub(crate) fn largest(all: &[Self]) -> Option<Self> {
        all.iter().copied().reduce(|one, other| Self {
            memory_kib: one.memory_kib.max(other.memory_kib),
            threads: one.threads.max(other.threads),
            files: one.files.max(other.files),
            sessions_each: one.sessions_each.max(other.sessions_each),
            store_bytes: one.store_bytes.max(other.store_bytes),
        })
    }

    /// What is more than it was `before`, and more than comes and goes.
    pub(crate) fn grown_from(&self, before: &Self) -> Vec<String> {
        let rows = [
            ("memory of a candidate, KiB", before.memory_kib, self.memory_kib, SLACK_KIB),
            ("threads of a candidate", before.threads, self.threads, 2),
            ("files of a candidate", before.files, self.files, 2),
            ("sessions of each candidate", before.sessions_each, self.sessions_each, 1),
            ("bytes of the store", before.store_bytes, self.store_bytes, SLACK_BYTES),
        ];
        let grown = rows.into_iter().filter(|(_, before, after, slack)| *after > before + slack);
        grown.map(|(what, before, after, _)| format!("{what}: {before}, then {after}")).collect()
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory_kib, threads, files, sessions_each, store_bytes } = self;
        write!(
            f,
            "{memory_kib} KiB, {threads} threads, {files} files, {sessions_each} sessions each, {store_bytes} bytes stored"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_named_and_what_comes_and_goes_is_not() {
        let before = Footprint { memory_kib: 20_000, threads: 9, ..Footprint::default() };
        let after = Footprint { memory_kib: 30_000, threads: 10, ..before };
        let grown = after.grown_from(&before);
        assert_eq!(grown, ["memory of a candidate, KiB: 20000, then 30000"]);
        assert!(before.grown_from(&after).is_empty());
    }
}
