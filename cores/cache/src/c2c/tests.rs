//! Surveys of machines that do not exist, with noise.

use super::{C2cRecord, Missed, Sample, SurveyLimits, differences, survey};
use fastrand::Rng;
use lowlat_host::{
    CpuId, CpuSet, Reading,
    topology::{Cache, CacheKind, Group, Topology},
};

/// Groups of each level, finest first, with the latency inside.
struct SyntheticMachine {
    levels: Vec<(f64, Vec<CpuSet>)>,
    across_ns: f64,
}

impl SyntheticMachine {
    /// A machine of `sizes` CPUs per group, finest first; numbers run through the groups in order.
    fn regular(cpus: u32, sizes: &[(u32, f64)], across_ns: f64) -> Self {
        let groups = |size: u32| (0..cpus / size).map(|n| (n * size..(n + 1) * size).collect()).collect();
        Self { levels: sizes.iter().map(|(size, ns)| (*ns, groups(*size))).collect(), across_ns }
    }

    /// SMT siblings are far apart in number, as on most servers.
    fn with_far_siblings(mut self, cpus: u32) -> Self {
        let moved = |cpu: CpuId| cpu / 2 + (cpu % 2) * (cpus / 2);
        for (_, groups) in &mut self.levels {
            for group in groups {
                *group = group.iter().map(moved).collect();
            }
        }
        self
    }

    fn cpus(&self) -> CpuSet {
        self.levels.last().unwrap().1.iter().flat_map(CpuSet::iter).collect()
    }

    fn ns(&self, a: CpuId, b: CpuId) -> f64 {
        let inside = |(_, groups): &&(f64, Vec<CpuSet>)| {
            groups.iter().any(|group| group.contains(a) && group.contains(b))
        };
        self.levels.iter().find(inside).map_or(self.across_ns, |(ns, _)| *ns)
    }

    /// The topology as a kernel that knows `kinds` reports it: the place of the level for cores, clusters, caches and packages.
    fn topology(&self, kinds: [Option<usize>; 4]) -> Topology {
        let groups = |kind: usize| -> Vec<CpuSet> {
            kinds[kind].map_or_else(Vec::new, |place| self.levels[place].1.clone())
        };
        let named = |kind| groups(kind).into_iter().map(|cpus| Group { id: 0, cpus }).collect();
        let cache = |cpus| Cache {
            level: 3,
            kind: CacheKind::Unified,
            size_bytes: Reading::Absent,
            line_bytes: Reading::Absent,
            cpus,
        };
        Topology {
            online: self.cpus(),
            cores: named(0),
            clusters: named(1),
            caches: groups(2).into_iter().map(cache).collect(),
            packages: named(3),
            ..Topology::default()
        }
    }

    /// A survey in which every time is off by a tenth, and each fifth one up to three times too long.
    fn survey(&self, topology: &Topology, seed: u64) -> C2cRecord {
        let mut rng = Rng::with_seed(seed);
        let mut measure = |a, b| {
            let noise = if rng.u8(0..5) == 0 { 1.0 + 2.0 * rng.f64() } else { 0.95 + 0.1 * rng.f64() };
            let median_ns = self.ns(a, b) * noise;
            Ok(Sample { median_ns, low_ns: median_ns, high_ns: median_ns })
        };
        survey(&self.cpus(), topology, SurveyLimits { seed, ..SurveyLimits::default() }, &mut measure)
    }

    /// Share of all pairs whose predicted time is nearest to the true level.
    fn right(&self, record: &C2cRecord) -> f64 {
        let levels: Vec<f64> = self.levels.iter().map(|(ns, _)| *ns).chain([self.across_ns]).collect();
        let nearest = |ns: f64| {
            let off = |place: &usize| (levels[*place].ln() - ns.ln()).abs();
            (0..levels.len()).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap()
        };
        let (mut right, mut all) = (0_u64, 0_u64);
        let prediction = record.prediction();
        let cpus: Vec<CpuId> = record.cpus.iter().collect();
        for (place, a) in cpus.iter().enumerate() {
            for b in &cpus[place + 1..] {
                let truth = self.ns(*a, *b);
                let shown = prediction.predicted(*a, *b);
                all += 1;
                right += u64::from(shown.is_some_and(|ns| nearest(ns) == nearest(truth)));
            }
        }
        right as f64 / all as f64
    }

    fn check(&self, what: &str, topology: &Topology, share_max: f64) {
        for seed in 1..=3 {
            let record = self.survey(topology, seed);
            let share = record.pairs.len() as f64 / record.pair_count() as f64;
            let right = self.right(&record);
            eprintln!(
                "{what}, seed {seed}: {:.2} % measured, {:.2} % right, {:?}",
                share * 100.0,
                right * 100.0,
                record.check
            );
            assert!(share <= share_max, "{what}, seed {seed}: {share}");
            assert!(right >= 0.99, "{what}, seed {seed}: {right}");
            let levels: Vec<usize> = record.levels.iter().map(|level| level.groups.len()).collect();
            assert_eq!(levels.len(), self.levels.len() + 1, "{what}, seed {seed}: {levels:?}");
        }
    }
}

/// Two packages of 16 chiplets of 8 cores of 2 threads.
fn chiplets() -> SyntheticMachine {
    SyntheticMachine::regular(512, &[(2, 8.0), (16, 28.0), (256, 110.0)], 230.0).with_far_siblings(512)
}

#[test]
fn chiplets_with_smt_are_found_from_a_twentieth_of_the_pairs() {
    let machine = chiplets();
    machine.check("chiplets", &machine.topology([Some(0), None, Some(1), Some(2)]), 0.05);
}

#[test]
fn clusters_of_four_are_found_from_a_twentieth_of_the_pairs() {
    let machine = SyntheticMachine::regular(512, &[(4, 25.0), (128, 60.0), (256, 120.0)], 260.0);
    machine.check("clusters", &machine.topology([None, Some(0), Some(1), Some(2)]), 0.05);
}

#[test]
fn a_kernel_that_reports_nothing_costs_pairs_but_no_truth() {
    let machine = chiplets();
    machine.check("flat", &machine.topology([None; 4]), 0.05);
}

#[test]
fn a_hybrid_processor_is_measured_pair_by_pair() {
    // Eight cores of two threads, four clusters of four.
    let pairs = (0..8).map(|n| (2 * n..2 * n + 2).collect());
    let fours = (0..4).map(|n| (16 + 4 * n..20 + 4 * n).collect());
    let machine = SyntheticMachine {
        levels: vec![(7.0, pairs.collect()), (24.0, fours.collect()), (48.0, vec![(0..32).collect()])],
        across_ns: 48.0,
    };
    let topology = machine.topology([Some(0), Some(1), Some(2), Some(2)]);
    for seed in 1..=3 {
        let record = machine.survey(&topology, seed);
        assert_eq!(record.pairs.len() as u64, record.pair_count());
        assert!(machine.right(&record) >= 0.99, "{:?}", record.levels);
        assert_eq!(record.levels.len(), 3, "{:?}", record.levels);
        assert_eq!(differences(&record, &topology), [""; 0]);
    }
}

#[test]
fn a_topology_that_is_true_has_no_differences() {
    let machine = chiplets();
    let topology = machine.topology([Some(0), None, Some(1), Some(2)]);
    let record = machine.survey(&topology, 3);
    assert_eq!(differences(&record, &topology), [""; 0]);
    let kinds: Vec<_> = (0..4).map(|level| record.kind_of(level, &topology).map(|kind| kind.one)).collect();
    assert_eq!(kinds, [Some("core"), Some("last-level cache"), Some("package"), None]);
}

#[test]
fn a_split_cache_and_invented_packages_are_named() {
    // The kernel reports one cache of 32 CPUs where there are two.
    let machine = SyntheticMachine::regular(64, &[(16, 30.0), (32, 110.0)], 230.0);
    let mut topology = machine.topology([None, None, Some(1), Some(1)]);
    topology.packages.clear();
    let record = machine.survey(&topology, 1);
    let said = differences(&record, &topology);
    assert!(said.iter().any(|line| line.contains("no level of 0-15 | 16-31")), "{said:?}");
    // Eight packages by the hypervisor's word, one cache by measurement.
    let flat = SyntheticMachine::regular(32, &[(32, 40.0)], 40.0);
    let mut invented = flat.topology([None; 4]);
    invented.packages =
        (0..8_u32).map(|n| Group { id: i64::from(n), cpus: (4 * n..4 * n + 4).collect() }).collect();
    let said = differences(&flat.survey(&invented, 1), &invented);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("8 packages") && said[0].contains("as far apart as CPUs of different ones"),
        "{said:?}"
    );
    // Packages across the true groups.
    let mut crossed = machine.topology([None; 4]);
    crossed.packages = (0..2)
        .map(|n| Group { id: n, cpus: (0..64).filter(|cpu| i64::from(cpu % 2) == n).collect() })
        .collect();
    let said = differences(&machine.survey(&crossed, 1), &crossed);
    assert!(said[0].contains("2 packages") && said[0].contains("ns between them"), "{said:?}");
}

#[test]
fn an_early_end_leaves_what_was_measured() {
    let machine = chiplets();
    let mut left = 100;
    let mut measure = |a, b| {
        left -= 1;
        let median_ns = machine.ns(a, b);
        let sample = Sample { median_ns, low_ns: median_ns, high_ns: median_ns };
        if left >= 0 { Ok(sample) } else { Err(Missed::Stop) }
    };
    let record = survey(&machine.cpus(), &Topology::default(), SurveyLimits::default(), &mut measure);
    assert!(!record.pairs.is_empty() && record.pairs.len() <= 100, "{}", record.pairs.len());
    assert!(record.pairs.iter().all(|pair| pair.median_ns.is_finite()));
}

#[test]
fn a_cpu_that_goes_offline_is_left_out() {
    let machine = SyntheticMachine::regular(64, &[(16, 30.0), (32, 110.0)], 230.0);
    let mut left = 300;
    let mut measure = |a, b| {
        left -= 1;
        let median_ns = machine.ns(a, b);
        let sample = Sample { median_ns, low_ns: median_ns, high_ns: median_ns };
        let is_gone = left < 0 && (a == 7 || b == 7);
        if is_gone { Err(Missed::Cpu(7)) } else { Ok(sample) }
    };
    let record = survey(&machine.cpus(), &Topology::default(), SurveyLimits::default(), &mut measure);
    assert_eq!(record.cpus.to_string(), "0-6,8-63");
    let groups: Vec<String> = record.levels[0].groups.iter().map(ToString::to_string).collect();
    assert_eq!(groups, ["0-6,8-15", "16-31", "32-47", "48-63"]);
}
