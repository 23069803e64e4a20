//! A published run to compare with.

/// A run of which only the totals are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceRun {
    pub name: &'static str,
    /// A gap of at least this long counted as an interruption.
    pub threshold_ns: u64,
    /// Isolated CPUs, all of which were measured.
    pub cpu_count: u32,
    pub duration_s: u32,
    /// Interruptions on all CPUs together.
    pub interruption_count: u32,
}

/// The run of AMD/HPE guide 57037, section 5.5: two EPYC 7F32 in a ProLiant DL385 Gen10 Plus, RHEL 8.1, sysjitter 1.4.
pub const GUIDE_RUN: ReferenceRun = ReferenceRun {
    name: "guide 57037",
    threshold_ns: 100,
    cpu_count: 14,
    duration_s: 610,
    interruption_count: 10,
};

impl ReferenceRun {
    /// Returns the interruptions per core-second.
    pub fn rate_per_s(&self) -> f64 {
        f64::from(self.interruption_count) / (f64::from(self.cpu_count) * f64::from(self.duration_s))
    }
}
