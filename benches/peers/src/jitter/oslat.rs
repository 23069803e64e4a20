//! Running oslat and reading what it prints.

use super::Run;
use crate::tools;
use anyhow::Context;
use std::path::Path;

/// One run on a CPU.
pub fn run(program: &Path, cpu: u32, seconds: u32) -> anyhow::Result<Run> {
    let other = u32::from(cpu == 0);
    let arguments = [
        "--cpu-list".into(),
        cpu.to_string(),
        "--cpu-main-thread".into(),
        other.to_string(),
        "--duration".into(),
        seconds.to_string(),
        "--quiet".into(),
    ];
    let output = tools::run(program, &arguments, &[0])?;
    parse(&String::from_utf8_lossy(&output.stdout)).context("oslat printed what this program cannot read")
}

/// Reads lines such as `002 (us):  361` and `Duration:  1.998 (sec)`.
fn parse(text: &str) -> Option<Run> {
    let (mut turns, mut long, mut duration_s) = (0_u64, 0_u64, None);
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let value = rest.split_whitespace().next();
        let bucket = name.trim().strip_suffix("(us)").and_then(|number| number.trim().parse::<u64>().ok());
        if let Some(bucket) = bucket {
            let count: u64 = value?.parse().ok()?;
            turns += count;
            // The bucket "003" holds turns from 2 us on.
            long += if bucket >= 3 { count } else { 0 };
        } else if name.trim() == "Duration" {
            duration_s = value?.parse::<f64>().ok();
        }
    }
    let duration_s = duration_s.filter(|duration_s| *duration_s > 0.0)?;
    (turns > 0).then(|| Run { turn_ns: duration_s * 1e9 / turns as f64, rate: long as f64 / duration_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_duration_are_read() {
        let text = "        Core:\t 1\n    001 (us):\t 70000000\n    002 (us):\t 361\n    003 (us):\t 274\n    \
                    032 (us):\t 26 (including overflows)\n     Minimum:\t 1 (us)\n    Duration:\t 2.000 (sec)\n";
        let run = parse(text).unwrap();
        assert!((run.rate - 150.0).abs() < 1e-9);
        assert!((run.turn_ns - 28.571).abs() < 0.01, "{run:?}");
        assert!(parse("nothing of the kind").is_none());
    }
}
