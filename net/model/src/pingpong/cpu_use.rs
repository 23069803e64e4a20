//! CPU time of the threads that pass messages.

use serde::{Deserialize, Serialize};

/// CPU time of one end during the measured batches of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// CPU time of the thread that passes messages. The client's excludes the time in which it spins until a scheduled
    /// message is due: an application does not.
    pub cpu_ns: u64,
    /// Total length of the measured batches.
    pub elapsed_ns: u64,
}

impl CpuUse {
    /// Share of one CPU, 0 to 1; `None` without time.
    pub fn share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| (self.cpu_ns as f64 / self.elapsed_ns as f64).min(1.0))
    }

    pub fn add(&mut self, batch: Self) {
        // The server's numbers come over the network.
        self.cpu_ns = self.cpu_ns.saturating_add(batch.cpu_ns);
        self.elapsed_ns = self.elapsed_ns.saturating_add(batch.elapsed_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_needs_time_and_is_at_most_one_cpu() {
        let mut all = CpuUse::default();
        assert_eq!(all.share(), None);
        all.add(CpuUse { cpu_ns: 10, elapsed_ns: 40 });
        all.add(CpuUse { cpu_ns: 30, elapsed_ns: 40 });
        assert_eq!(all.share(), Some(0.5));
        all.add(CpuUse { cpu_ns: u64::MAX, elapsed_ns: 1 });
        assert_eq!(all.share(), Some(1.0));
    }
}
