//! Running cyclictest and reading what it writes.

use super::Wakes;
use crate::tools;
use anyhow::Context;
use serde::Deserialize;
use std::{collections::BTreeMap, path::Path};

/// Priority of the threads of both programs.
pub const PRIORITY: u32 = 80;
/// Period of their timers.
pub const PERIOD_US: u32 = 1_000;

#[derive(Debug, Deserialize)]
struct Document {
    thread: BTreeMap<String, Thread>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    cycles: u64,
    max: u64,
    avg: f64,
}

/// One run on a CPU.
pub fn run(program: &Path, cpu: u32, seconds: u32) -> anyhow::Result<Wakes> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("cyclictest.json");
    let arguments = [
        "--quiet".into(),
        "--mlockall".into(),
        "--nsecs".into(),
        format!("--priority={PRIORITY}"),
        format!("--affinity={cpu}"),
        "--threads=1".into(),
        format!("--interval={PERIOD_US}"),
        format!("--duration={seconds}"),
        format!("--json={}", file.display()),
    ];
    tools::run(program, &arguments, &[0])?;
    let text = std::fs::read_to_string(&file).context("cyclictest wrote no document")?;
    parse(&text).context("cyclictest wrote what this program cannot read")
}

fn parse(text: &str) -> Option<Wakes> {
    let document: Document = serde_json::from_str(text).ok()?;
    let thread = document.thread.into_values().find(|thread| thread.cycles > 0)?;
    Some(Wakes { mean_ns: thread.avg, max_ns: thread.max as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_of_a_document_is_read() {
        let text = r#"{"file_version": 1, "num_threads": 1, "resolution_in_ns": 1, "thread": {"0": {"histogram": {},
            "cycles": 1998, "min": 4077, "max": 1623283, "avg": 12435.49, "cpu": 1, "node": 0}}}"#;
        let wakes = parse(text).unwrap();
        assert!((wakes.mean_ns - 12_435.49).abs() < 1e-9 && (wakes.max_ns - 1_623_283.0).abs() < 1e-9);
        assert!(parse(r#"{"thread": {"0": {"cycles": 0, "max": 0, "avg": 0.0}}}"#).is_none());
        assert!(parse("").is_none());
    }
}
