//! Checks whether the host is quiet enough for a measurement, and waits until it is.
//!
//! A check takes a quarter of a second, nearly all of it asleep. Older kernels interrupt a CPU to read its
//! frequency, and a walk over /proc allocates and frees memory: nothing here may run during a measurement.

pub(super) mod threads;

use lowlat_host::{Allocation, CpuId, CpuSet, HostSnapshot, Reading};
use lowlat_host_run::{Root, pause, snapshot::load_average};
use lowlat_jitter::{
    FrequencyFacts, ProfileFacts, ReadinessFacts, ReadinessPoint, SwapFacts, judge_readiness,
};
use lowlat_settings::audit::Audit;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use threads::Threads;

/// Time between the two readings of a check.
const PAUSE: Duration = Duration::from_millis(250);
/// Interval of checks while waiting for quiet.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const VMSTAT: &str = "/proc/vmstat";
/// The file with a CPU's present frequency.
const NOW: &str = "scaling_cur_freq";

/// Checks a host before it is measured.
#[derive(Debug)]
pub struct QuietWatch<'a> {
    root: &'a Root,
    /// Facts that do not change during the wait.
    fixed: ReadinessFacts,
    has_no_swap: bool,
    pause: Duration,
}

impl<'a> QuietWatch<'a> {
    /// Checks of the CPUs to be measured. The snapshot and the audit are those of this host.
    pub fn new(
        root: &'a Root,
        measured: &CpuSet,
        host: &HostSnapshot,
        allocation: &Allocation,
        audit: &Audit,
    ) -> Self {
        let fixed = ReadinessFacts {
            measured: measured.clone(),
            housekeeping: housekeeping(measured, host, allocation),
            own_cpus: host.tasks.allowed_cpus.clone(),
            profile: ProfileFacts::of(audit),
            ..ReadinessFacts::default()
        };
        let has_no_swap = host.memory.swaps.known().is_some_and(Vec::is_empty);
        Self { root, fixed, has_no_swap, pause: PAUSE }
    }

    /// Reads the facts of one check.
    pub fn look(&self) -> ReadinessFacts {
        let root = self.root;
        let began = Instant::now();
        let swapped_before = self.swapped_pages();
        let khz_before: Vec<Reading<u64>> =
            self.fixed.measured.iter().map(|cpu| read_khz(root, cpu, NOW)).collect();
        let threads = Threads::of(root);
        thread::sleep(self.pause);
        let busy = threads.and_then(|threads| threads.busy_since(root, &self.fixed.measured));
        let swapped = self.swapped_pages();
        let clocks =
            self.fixed.measured.iter().zip(khz_before).filter_map(|(cpu, khz)| clock(root, cpu, khz));
        ReadinessFacts {
            load_average: load_average(root),
            swap: SwapFacts {
                in_pages: moved(&swapped_before.in_pages, &swapped.in_pages),
                out_pages: moved(&swapped_before.out_pages, &swapped.out_pages),
            },
            clocks: clocks.collect(),
            busy,
            look_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..self.fixed.clone()
        }
    }

    /// Checks about once a second until nothing delays the measurement, or `stop` is raised; each check is
    /// reported. Returns the last one.
    pub fn wait(&self, stop: &AtomicBool, on_look: &dyn Fn(&[ReadinessPoint])) -> Vec<ReadinessPoint> {
        wait_until_quiet(&mut || judge_readiness(&self.look()), LOOK_EVERY, stop, on_look)
    }

    /// Pages swapped since boot. If the kernel counts none and no swap area is in use, there are none.
    fn swapped_pages(&self) -> SwapFacts {
        let vmstat = self.root.read(VMSTAT);
        let count = |name: &str| {
            let counted = vmstat.clone().and_then(|text| {
                let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                let expected = format!("a number after {name}");
                value.map_or(Reading::Absent, |text| {
                    Reading::understood(text.trim().parse().ok(), VMSTAT, text, expected)
                })
            });
            if self.has_no_swap && vmstat.is_known() { counted.or(|| Reading::Known(0)) } else { counted }
        };
        SwapFacts { in_pages: count("pswpin"), out_pages: count("pswpout") }
    }
}

fn wait_until_quiet(
    look: &mut dyn FnMut() -> Vec<ReadinessPoint>,
    every: Duration,
    stop: &AtomicBool,
    on_look: &dyn Fn(&[ReadinessPoint]),
) -> Vec<ReadinessPoint> {
    loop {
        let began = Instant::now();
        let points = look();
        on_look(&points);
        if !points.iter().any(ReadinessPoint::blocks) {
            return points;
        }
        pause::sleep(every.saturating_sub(began.elapsed()), stop);
        // Relaxed: the flag orders nothing.
        if stop.load(Ordering::Relaxed) {
            return points;
        }
    }
}

/// The CPUs for everything else: those of the allocation, or the online CPUs that are not measured.
fn housekeeping(measured: &CpuSet, host: &HostSnapshot, allocation: &Allocation) -> CpuSet {
    let chosen = allocation.housekeeping.difference(measured);
    if chosen.is_empty() { host.topology.online.difference(measured) } else { chosen }
}

fn moved(before: &Reading<u64>, after: &Reading<u64>) -> Reading<u64> {
    before.as_ref().and_then(|before| after.as_ref().map(|after| after.saturating_sub(*before)))
}

fn read_khz(root: &Root, cpu: CpuId, name: &str) -> Reading<u64> {
    root.read_as(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"), "a frequency in kHz")
}

/// `None` if the CPU has no frequency scaling.
fn clock(root: &Root, cpu: CpuId, khz_before: Reading<u64>) -> Option<FrequencyFacts> {
    let governor = root.read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"));
    if governor.is_absent() {
        return None;
    }
    Some(FrequencyFacts {
        cpu,
        governor,
        khz: [khz_before, read_khz(root, cpu, NOW)],
        limits_khz: [read_khz(root, cpu, "scaling_min_freq"), read_khz(root, cpu, "scaling_max_freq")],
    })
}

#[cfg(test)]
mod tests;
