//! Tools that print sysjitter's summary: sysjitter itself, and lowlat in its format.

use super::{Run, Wakes, cyclictest};
use crate::tools;
use anyhow::Context;
use lowlat_jitter::{JitterCpu, sysjitter};
use lowlat_results::ResultDocument;
use std::path::PathBuf;

/// So many "interruptions" a second are turns of the loop itself.
const FLOOD_PER_S: f64 = 1e6;
/// Exit code of sysjitter when its buffer is full, and of lowlat when it refuses a threshold that its own loop reaches.
const BUFFER_FULL: i32 = 2;
/// What lowlat says then.
const OWN_LOOP: &str = "cannot tell interruptions";
/// Runs after one whose buffer was full, before that is believed to be a flood.
const BUFFER_TRIALS: u32 = 2;
/// Range of thresholds in which the turn is searched for, ns.
const TURN_NS: std::ops::Range<u64> = 1..4_096;

/// One such tool on one CPU.
#[derive(Debug)]
pub struct SummaryTool {
    program: PathBuf,
    cpu: u32,
    is_lowlat: bool,
}

impl SummaryTool {
    /// lowlat, with no tracing: the loop alone.
    pub fn lowlat(program: PathBuf, cpu: u32) -> Self {
        Self { program, cpu, is_lowlat: true }
    }

    pub fn sysjitter(program: PathBuf, cpu: u32) -> Self {
        Self { program, cpu, is_lowlat: false }
    }

    /// The lowest threshold at which the loop's own turns are not found, in nanoseconds.
    pub fn turn_ns(&self) -> anyhow::Result<f64> {
        let (mut flooded, mut quiet) = (TURN_NS.start, TURN_NS.end);
        while quiet - flooded > 1 {
            let middle = u64::midpoint(flooded, quiet);
            if self.rate(middle, 1)? > FLOOD_PER_S {
                flooded = middle;
            } else {
                quiet = middle;
            }
        }
        Ok(quiet as f64)
    }

    /// Interruptions a second at a threshold; infinite when the tool gave up for their number.
    pub fn rate(&self, threshold_ns: u64, seconds: u32) -> anyhow::Result<f64> {
        let arguments: Vec<String> = if self.is_lowlat {
            self.lowlat_arguments(threshold_ns, seconds, "sysjitter")
        } else {
            let arguments = [
                "--runtime",
                &seconds.to_string(),
                "--cores",
                &self.cpu.to_string(),
                &threshold_ns.to_string(),
            ];
            arguments.map(str::to_owned).to_vec()
        };
        let mut output = tools::run(&self.program, &arguments, &[0, BUFFER_FULL])?;
        // sysjitter sizes its buffer by a second of trial, so that a burst after a quiet second fills it too.
        for _ in 0..BUFFER_TRIALS {
            if output.status.code() != Some(BUFFER_FULL) {
                break;
            }
            if self.is_lowlat {
                let said = String::from_utf8_lossy(&output.stderr);
                anyhow::ensure!(said.contains(OWN_LOOP), "{said}");
                break;
            }
            output = tools::run(&self.program, &arguments, &[0, BUFFER_FULL])?;
        }
        if output.status.code() == Some(BUFFER_FULL) {
            return Ok(f64::INFINITY);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = sysjitter::testing::parse_summary(&text)
            .with_context(|| format!("{} printed what this program cannot read", self.program.display()))?;
        let core = summary.cores.first().context("no core in the summary")?;
        anyhow::ensure!(core.runtime_ns > 0, "a run of no length");
        Ok(core.interruption_count as f64 * 1e9 / core.runtime_ns as f64)
    }

    /// A run of lowlat by its own document.
    pub fn document(&self, threshold_ns: u64, seconds: u32) -> anyhow::Result<Run> {
        let cpu = self.measured(&self.lowlat_arguments(threshold_ns, seconds, "json"))?;
        anyhow::ensure!(cpu.loop_count > 0 && cpu.runtime_ns > 0, "a run of no length");
        Ok(Run {
            turn_ns: cpu.runtime_ns as f64 / cpu.loop_count as f64,
            rate: cpu.interruption_count as f64 * 1e9 / cpu.runtime_ns as f64,
        })
    }

    /// Wake-ups of lowlat's real-time thread by a timer, as cyclictest has them.
    pub fn wakes(&self, seconds: u32) -> anyhow::Result<Wakes> {
        let mut arguments = self.lowlat_arguments(1, seconds, "json");
        // Each wake-up counts, however short.
        arguments.truncate(arguments.len() - 4);
        let wakes = [
            format!("--fifo={}", cyclictest::PRIORITY),
            format!("--wake-every={}us", cyclictest::PERIOD_US),
            "--format=json".to_owned(),
        ];
        arguments.extend(wakes);
        let cpu = self.measured(&arguments)?;
        anyhow::ensure!(cpu.interruption_count > 0, "lowlat's thread was never woken");
        Ok(Wakes {
            mean_ns: cpu.interruption_ns_total as f64 / cpu.interruption_count as f64,
            max_ns: cpu.interruption_ns_max as f64,
        })
    }

    /// The CPU of a run of lowlat.
    fn measured(&self, arguments: &[String]) -> anyhow::Result<JitterCpu> {
        let output = tools::run(&self.program, arguments, &[0])?;
        let document: ResultDocument =
            serde_json::from_slice(&output.stdout).context("lowlat's document cannot be read")?;
        let record = &document.jitter().context("lowlat measured nothing")?.record;
        record.cpus.first().cloned().context("lowlat measured no CPU")
    }

    fn lowlat_arguments(&self, threshold_ns: u64, seconds: u32, format: &str) -> Vec<String> {
        let (threshold, duration, cpu) =
            (format!("{threshold_ns}ns"), format!("{seconds}s"), self.cpu.to_string());
        let arguments = [
            "jitter",
            "--no-causes",
            "--force",
            "--cpus",
            &cpu,
            "--duration",
            &duration,
            "--threshold",
            &threshold,
            "--format",
            format,
        ];
        arguments.map(str::to_owned).to_vec()
    }
}
