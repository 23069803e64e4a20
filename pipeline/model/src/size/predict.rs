//! Tick to order out of costs, load and CPUs.

use super::Costs;
use crate::{Mode, PipelineParameters, ProcessRole};
use serde::{Deserialize, Serialize};

/// Approximate time that an adaptive process spins before it sleeps: one that gets records more often never does.
const ADAPTIVE_SPIN_S: f64 = 50e-6;

/// CPUs on which the processes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    /// All processes on the same CPUs, where the kernel puts them.
    Shared { cpus: u32 },
    /// md and td on a CPU each, strategies on others.
    Own { strategy_cpus: u32 },
}

/// A load to predict for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub strategies: u32,
    /// Quotes per second over all of them.
    pub rate_per_s: f64,
    pub mode: Mode,
    pub cores: Cores,
}

impl Load {
    /// The load of a run on a host of so many CPUs.
    pub fn of(parameters: &PipelineParameters, cpus: u32) -> Self {
        let is_pinned =
            [ProcessRole::Md, ProcessRole::Td].iter().all(|role| parameters.pins.contains_key(role));
        let strategies_pinned = parameters.pins.get(&ProcessRole::Strategies).map(|cpus| {
            let distinct: std::collections::BTreeSet<_> = cpus.iter().collect();
            u32::try_from(distinct.len()).unwrap_or(u32::MAX)
        });
        let own = strategies_pinned.or(parameters.host_core.map(|_| 1));
        let cores = match own {
            Some(strategy_cpus) if is_pinned => Cores::Own { strategy_cpus },
            // Strategies that are not pinned run on the platform's CPUs too.
            _ => Cores::Shared { cpus },
        };
        let PipelineParameters { strategies, rate_per_s, mode, .. } = *parameters;
        Self { strategies, rate_per_s, mode, cores }
    }
}

/// Prediction of tick to order.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Prediction {
    /// Mean of tick to order, ns.
    pub mean_ns: f64,
    pub p50_ns: f64,
    /// 99th percentile of tick to order, rather too high than too low.
    pub p99_ns: f64,
    /// The share of time that the busiest CPU, or set of CPUs, is busy with work.
    pub utilisation: f64,
}

/// Predicts tick to order; none when some CPU has more work than time.
pub fn predict(costs: &Costs, load: &Load) -> Option<Prediction> {
    let per_ns = load.rate_per_s / 1e9;
    let queues = match load.cores {
        Cores::Shared { cpus } => {
            // Three pieces of work for a tick come to the same CPUs; two of them lie on the way to the order.
            let work_ns = (costs.md_cpu_ns + costs.strategy_cpu_ns + costs.td_cpu_ns) / 3.0;
            let queue = Queue::of(cpus, per_ns * 3.0, work_ns)?;
            [queue, queue]
        }
        Cores::Own { strategy_cpus } => {
            // md's own queue delays ticks against their schedule, not orders against ticks; it only has to keep up.
            let md = Queue::of(1, per_ns, costs.md_cpu_ns)?;
            let [strategies, td] = [(strategy_cpus, costs.strategy_cpu_ns), (1, costs.td_cpu_ns)]
                .map(|(cpus, work_ns)| Queue::of(cpus, per_ns, work_ns));
            let (strategies, td) = (strategies?, td?);
            [
                strategies,
                if md.utilisation > td.utilisation {
                    Queue { utilisation: md.utilisation, ..td }
                } else {
                    td
                },
            ]
        }
    };
    let each_s = f64::from(load.strategies.max(1)) / load.rate_per_s;
    let hop = |is_asleep: bool| costs.transfer_ns + if is_asleep { costs.wake_ns } else { 0.0 };
    let (strategy_sleeps, td_sleeps) = match load.mode {
        Mode::Fast => (false, false),
        // A spinning md changes when a quote is published, not the time from the quote to its order.
        Mode::Parked | Mode::Mixed => (true, true),
        Mode::PlatformFast => (true, false),
        Mode::Adaptive => (each_s > ADAPTIVE_SPIN_S, 1.0 / load.rate_per_s > ADAPTIVE_SPIN_S),
    };
    let base_ns = hop(strategy_sleeps) + costs.decide_ns + hop(td_sleeps);
    let sum = |of: &dyn Fn(&Queue) -> f64| queues.iter().map(of).sum::<f64>();
    Some(Prediction {
        mean_ns: base_ns + sum(&Queue::mean_ns),
        p50_ns: base_ns + sum(&|queue| queue.quantile_ns(0.5)),
        p99_ns: base_ns + costs.tail_ns + sum(&|queue| queue.quantile_ns(0.99)),
        utilisation: queues.iter().map(|queue| queue.utilisation).fold(0.0, f64::max),
    })
}

/// An M/M/c queue: arrivals that wait do so for an exponentially distributed time.
#[derive(Debug, Clone, Copy)]
struct Queue {
    /// The share of arrivals that wait (Erlang C).
    waiting: f64,
    /// Mean wait of those arrivals, ns.
    wait_ns: f64,
    utilisation: f64,
}

impl Queue {
    fn of(servers: u32, per_ns: f64, work_ns: f64) -> Option<Self> {
        let offered = per_ns * work_ns;
        let servers_f = f64::from(servers);
        if servers == 0 || !offered.is_finite() || offered >= servers_f {
            return None;
        }
        // Erlang B by its recurrence, then C.
        let blocked =
            (1..=servers).fold(1.0, |blocked, n| offered * blocked / (f64::from(n) + offered * blocked));
        let utilisation = offered / servers_f;
        let waiting = blocked / (1.0 - utilisation * (1.0 - blocked));
        Some(Self { waiting, wait_ns: work_ns / (servers_f - offered), utilisation })
    }

    fn mean_ns(&self) -> f64 {
        self.waiting * self.wait_ns
    }

    fn quantile_ns(&self, quantile: f64) -> f64 {
        let beyond = 1.0 - quantile;
        if self.waiting <= beyond { 0.0 } else { self.wait_ns * (self.waiting / beyond).ln() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COSTS: Costs = Costs {
        transfer_ns: 300.0,
        wake_ns: 8_000.0,
        tail_ns: 20_000.0,
        is_tail_from_max: false,
        decide_ns: 1_000.0,
        md_cpu_ns: 6_000.0,
        strategy_cpu_ns: 12_000.0,
        td_cpu_ns: 8_000.0,
    };

    fn load(strategies: u32, rate_per_s: f64, mode: Mode) -> Load {
        Load { strategies, rate_per_s, mode, cores: Cores::Own { strategy_cpus: 2 } }
    }

    #[test]
    fn one_server_is_the_textbook_s_queue() {
        let queue = Queue::of(1, 0.5 / 1_000.0, 1_000.0).unwrap();
        assert!((queue.waiting - 0.5).abs() < 1e-12 && (queue.mean_ns() - 1_000.0).abs() < 1e-9);
        // Two servers at an offered load of one: Erlang C is a third.
        let queue = Queue::of(2, 1.0 / 1_000.0, 1_000.0).unwrap();
        assert!((queue.waiting - 1.0 / 3.0).abs() < 1e-12);
        assert!(Queue::of(1, 1.0 / 1_000.0, 1_000.0).is_none() && Queue::of(0, 0.0, 1.0).is_none());
    }

    #[test]
    fn a_quiet_host_gives_the_measured_way_back() {
        let parked = predict(&COSTS, &load(1, 0.001, Mode::Parked)).unwrap();
        assert!((parked.p50_ns - 17_600.0).abs() < 1.0, "{parked:?}");
        assert!((parked.p99_ns - 37_600.0).abs() < 1.0);
        let of = |mode| predict(&COSTS, &load(1, 0.001, mode)).unwrap().p50_ns;
        assert!(of(Mode::Fast) < of(Mode::Mixed) && of(Mode::Mixed) <= of(Mode::Parked));
    }

    #[test]
    fn pins_make_a_load() {
        let mut parameters = crate::testing::run(1, 1).parameters;
        assert_eq!(Load::of(&parameters, 12).cores, Cores::Shared { cpus: 12 });
        parameters.pins = [
            (ProcessRole::Md, vec![1]),
            (ProcessRole::Td, vec![2]),
            (ProcessRole::Strategies, vec![3, 4, 3, 4]),
        ]
        .into();
        assert_eq!(Load::of(&parameters, 12).cores, Cores::Own { strategy_cpus: 2 });
    }

    proptest! {
        #[test]
        fn more_load_is_never_faster(rate in 1.0_f64..60_000.0, more in 1.0_f64..2.0, shared: bool) {
            let cores = if shared { Cores::Shared { cpus: 3 } } else { Cores::Own { strategy_cpus: 2 } };
            let of = |rate_per_s| predict(&COSTS, &Load { cores, ..load(80, rate_per_s, Mode::Parked) });
            match (of(rate), of(rate * more)) {
                (Some(less), Some(more)) => prop_assert!(less.p99_ns <= more.p99_ns + 1e-6 && less.mean_ns <= more.mean_ns + 1e-6),
                (less, more) => prop_assert!(less.is_some() || more.is_none()),
            }
        }
    }
}
