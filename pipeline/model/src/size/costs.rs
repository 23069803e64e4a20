//! Costs of the steps from quote to order, from runs of one strategy.

use crate::{Mode, PipelineRecord, StageFigures};
use serde::{Deserialize, Serialize};

/// Measured costs. Latencies are those of a host that does nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// A record from one spinning process to another, ns. 0 when no run could tell it apart from the wake.
    pub transfer_ns: f64,
    /// Extra time of a sleeping receiver, ns.
    pub wake_ns: f64,
    /// Excess of the 99th percentile of tick to order over its median, ns.
    pub tail_ns: f64,
    /// True if the run had too few orders for a 99th percentile, so that the longest one replaces it.
    pub is_tail_from_max: bool,
    /// From the quote read to the order written, ns.
    pub decide_ns: f64,
    /// CPU time of md for a tick, ns, including its wakes.
    pub md_cpu_ns: f64,
    /// CPU time of a strategy for a tick, ns, including its own sleep and wake.
    pub strategy_cpu_ns: f64,
    /// CPU time of td for an order, ns.
    pub td_cpu_ns: f64,
}

impl Costs {
    /// Costs out of a run of one strategy whose processes sleep, and out of one whose processes spin where the host has
    /// the CPUs for it.
    ///
    /// # Errors
    /// Names the figure that the sleeping run does not carry.
    pub fn of(parked: &PipelineRecord, fast: Option<&PipelineRecord>) -> Result<Self, String> {
        let stages = &parked.stages;
        let middle = |figures: &StageFigures, name: &str| {
            figures.p50_ns.map(|ns| ns as f64).ok_or_else(|| {
                format!(
                    "{} latencies of stage {name} carry no median; measure the costs longer",
                    figures.count
                )
            })
        };
        if parked.parameters.mode != Mode::Parked {
            return Err("the costs need a run whose processes sleep (mode parked)".to_owned());
        }
        let (md, order, t2o) =
            (middle(&stages.md, "md")?, middle(&stages.order, "order")?, middle(&stages.t2o, "t2o")?);
        let hop = f64::midpoint(md, order);
        let transfer_ns = fast
            .and_then(|run| {
                Some(f64::midpoint(run.stages.md.p50_ns? as f64, run.stages.order.p50_ns? as f64))
            })
            .unwrap_or(0.0)
            .min(hop);
        let p99 = stages.t2o.p99_ns.or(stages.t2o.max_ns).map_or(t2o, |ns| ns as f64);
        let decide_ns = (t2o - md - order).max(0.0);
        Ok(Self {
            transfer_ns,
            wake_ns: hop - transfer_ns,
            tail_ns: (p99 - t2o).max(0.0),
            is_tail_from_max: stages.t2o.p99_ns.is_none(),
            decide_ns,
            md_cpu_ns: cpu_ns(parked, "md", parked.ticks_published)?,
            strategy_cpu_ns: cpu_ns(parked, "strategies", parked.orders)?,
            td_cpu_ns: cpu_ns(parked, "td", parked.orders)?,
        })
    }
}

fn cpu_ns(run: &PipelineRecord, role: &str, by: u64) -> Result<f64, String> {
    let found = run.uses.iter().find(|of| of.role == role).filter(|of| by > 0 && of.cpu_s > 0.0);
    found
        .map(|of| of.cpu_s * 1e9 / by as f64)
        .ok_or_else(|| format!("the run does not tell what CPU time {role} took; measure the costs longer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PipelineParameters, testing};

    fn run(mode: Mode, t2o_ns: u64) -> PipelineRecord {
        let parameters = PipelineParameters { mode, strategies: 1, ..testing::run(1, 1).parameters };
        testing::run_of(parameters, 2_000, t2o_ns)
    }

    #[test]
    fn a_spinning_run_parts_the_transfer_from_the_wake() {
        let (parked, fast) = (run(Mode::Parked, 20_000), run(Mode::Fast, 1_000));
        let costs = Costs::of(&parked, Some(&fast)).unwrap();
        assert!(costs.transfer_ns > 100.0 && costs.wake_ns > costs.transfer_ns, "{costs:?}");
        let together = Costs::of(&parked, None).unwrap();
        assert!(together.transfer_ns == 0.0);
        assert!((together.wake_ns - costs.wake_ns - costs.transfer_ns).abs() < 1e-6);
        assert!(!together.is_tail_from_max);
        let mut short = parked.clone();
        short.stages.t2o.p99_ns = None;
        assert!(Costs::of(&short, None).unwrap().is_tail_from_max);
    }

    #[test]
    fn a_run_that_carries_nothing_is_refused() {
        let error = Costs::of(&testing::run(3, 20_000), None).unwrap_err();
        assert!(error.contains("3 latencies of stage md carry no median"), "{error}");
        assert!(Costs::of(&run(Mode::Fast, 1_000), None).unwrap_err().contains("parked"));
        let mut unused = run(Mode::Parked, 20_000);
        unused.uses.clear();
        assert!(Costs::of(&unused, None).unwrap_err().contains("CPU time md took"));
    }
}
