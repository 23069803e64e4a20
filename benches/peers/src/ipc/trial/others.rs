//! Activity of the machine during a trial, besides the trial.

use std::{fs, time::Instant};

/// CPUs that other processes may keep busy without a warning.
const BUSY_MAX: f64 = 0.1;
/// The unit of /proc/stat on every Linux that Rust runs on (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

/// CPU time of the whole host.
#[derive(Debug, Clone, Copy)]
pub struct HostTime {
    at: Instant,
    /// In user and kernel mode, interrupts included, seconds.
    busy_s: f64,
    /// Taken by a hypervisor, seconds.
    stolen_s: f64,
}

impl HostTime {
    /// Reads the present values; `None` if /proc/stat does not have them.
    pub fn now() -> Option<Self> {
        let (busy_s, stolen_s) = parse(&fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { at: Instant::now(), busy_s, stolen_s })
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
fn parse(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<f64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = fields.as_slice() else {
        return None;
    };
    Some(((user + nice + system + irq + softirq) / TICKS_PER_S, steal / TICKS_PER_S))
}

/// Returns reasons to doubt a trial that used `own_s` of CPU time between the two.
pub fn warnings(before: Option<HostTime>, after: Option<HostTime>, own_s: f64) -> Vec<String> {
    let (Some(before), Some(after)) = (before, after) else {
        return vec!["/proc/stat does not tell what else the machine did".to_owned()];
    };
    let length_s = (after.at - before.at).as_secs_f64().max(1e-3);
    let others = (after.busy_s - before.busy_s - own_s) / length_s;
    let stolen = (after.stolen_s - before.stolen_s) / length_s;
    let mut warnings = Vec::new();
    if others > BUSY_MAX {
        warnings.push(format!("other programs kept {others:.1} CPUs busy: latencies are theirs too"));
    }
    if stolen > BUSY_MAX {
        warnings.push(format!("the hypervisor took {stolen:.1} CPUs away"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_did_is_told() {
        assert_eq!(parse("cpu  100 50 30 900 7 15 5 40 0 0\ncpu0 1 1\n"), Some((2.0, 0.4)));
        assert_eq!(parse("cpu0 1 2 3"), None);
        let at = Instant::now();
        let before = HostTime { at, busy_s: 10.0, stolen_s: 0.0 };
        let after = HostTime { at: at + std::time::Duration::from_secs(2), busy_s: 13.0, stolen_s: 0.1 };
        assert_eq!(warnings(Some(before), Some(after), 2.9), Vec::<String>::new());
        let told = warnings(Some(before), Some(after), 1.0);
        assert!(told.len() == 1 && told[0].contains("1.0 CPUs"), "{told:?}");
    }
}
