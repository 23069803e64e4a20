//! Many hosts by their documents: groups of hosts with the same verdicts, and how each group differs from most hosts.

use crate::ResultDocument;
use lowlat_host::statistics::RateInterval;
use lowlat_settings::{Checked, Verdict};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A host's interruptions stand out if they are surely this many times as frequent as those of the median host.
const NOISY_RATIO: f64 = 3.0;
/// Fewest measured hosts of which one can stand out.
const MEASURED_MIN: usize = 3;

/// Facts that a fleet needs from one document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetHost {
    /// Its name, usually that of its document's file.
    pub name: String,
    /// The product; empty if unknown.
    pub product: String,
    /// The kernel's release; empty if unknown.
    pub kernel: String,
    /// Start of the run, RFC 3339, UTC.
    pub started_at: String,
    /// The score of its settings, 0 to 100.
    pub score_percent: Option<u8>,
    /// The verdict on each setting that applies to it, by id.
    #[serde(skip)]
    pub verdicts: BTreeMap<String, Verdict>,
    /// The wanted value of each setting at fault, by id.
    #[serde(skip)]
    pub wanted: BTreeMap<String, String>,
    /// Interruptions per second and CPU; `None` if they were not measured.
    pub rate: Option<RateInterval>,
    /// Interruptions of at least this length count; `None` if they were not measured.
    pub threshold_ns: Option<u64>,
    /// Length of the longest interruption.
    pub length_ns_max: Option<u64>,
}

impl FleetHost {
    /// Takes from a document what the fleet needs; the document can then be dropped.
    pub fn of(name: &str, document: &ResultDocument) -> Self {
        let findings = document.audit.findings.iter();
        let study = document.jitter().and_then(|jitter| jitter.study.as_ref());
        let all = study.map(|study| &study.all);
        Self {
            name: name.to_owned(),
            product: document.snapshot.firmware.system_product.text().to_owned(),
            kernel: document.snapshot.kernel.release.text().to_owned(),
            started_at: document.started_at.clone(),
            score_percent: document.audit.score.percent,
            verdicts: findings
                .clone()
                .filter(|finding| finding.verdict != Verdict::NotApplicable)
                .map(|finding| (finding.id.clone(), finding.verdict))
                .collect(),
            wanted: findings
                .filter(|finding| finding.verdict.is_fault())
                .map(|finding| (finding.id.clone(), finding.wanted.clone()))
                .collect(),
            rate: all.and_then(|all| all.rate),
            threshold_ns: study.map(|study| study.threshold_ns),
            length_ns_max: all.and_then(|all| all.length_ns_max),
        }
    }
}

/// Hosts with the same verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetGroup {
    /// Their places in [`Fleet::hosts`], in the order of their names.
    pub hosts: Vec<usize>,
    /// Settings on which their verdict is not that of most hosts, by id.
    pub differs: BTreeMap<String, Verdict>,
    /// Settings at fault, by id.
    pub faults: BTreeMap<String, Verdict>,
}

/// A setting that is at fault on at least one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFinding {
    pub id: String,
    /// Hosts on which it is at fault.
    pub fault_count: usize,
    /// Hosts to which it applies.
    pub applies_count: usize,
    /// The wanted values on the hosts at fault, the most frequent first: hosts with other roles want others.
    pub wanted: Vec<FleetWanted>,
    /// The hosts at fault, as places in [`Fleet::hosts`].
    pub hosts: Vec<usize>,
}

/// Hosts that want the same value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetWanted {
    pub value: String,
    /// The hosts, as places in [`Fleet::hosts`].
    pub hosts: Vec<usize>,
}

/// Many hosts, those that differ from the others first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fleet {
    /// The hosts, in the given order.
    pub hosts: Vec<FleetHost>,
    /// Groups with the same verdicts: first the one that differs from most hosts in most settings.
    pub groups: Vec<FleetGroup>,
    /// Settings at fault: first those at fault on the fewest hosts.
    pub findings: Vec<FleetFinding>,
    /// Rates are compared between hosts with this threshold, the most frequent one.
    pub threshold_ns: Option<u64>,
    /// Measured hosts with another threshold, as places in `hosts`.
    pub other_threshold: Vec<usize>,
    /// The median rate of interruptions per second and CPU; `None` if fewer than three hosts measured it.
    pub rate_median: Option<RateInterval>,
    /// Hosts with a rate far above the median, the highest first, as places in `hosts`.
    pub noisy: Vec<usize>,
}

impl Fleet {
    pub fn of(hosts: Vec<FleetHost>) -> Self {
        let usual = usual(&hosts);
        let mut by_verdicts: BTreeMap<&BTreeMap<String, Verdict>, Vec<usize>> = BTreeMap::new();
        for (at, host) in hosts.iter().enumerate() {
            by_verdicts.entry(&host.verdicts).or_default().push(at);
        }
        let mut groups: Vec<FleetGroup> = by_verdicts
            .into_iter()
            .map(|(verdicts, mut places)| {
                places.sort_by_key(|at| hosts.get(*at).map(|host| host.name.clone()));
                let part = |keep: &dyn Fn(&str, Verdict) -> bool| {
                    let kept = verdicts.iter().filter(|(id, verdict)| keep(id, **verdict));
                    kept.map(|(id, verdict)| (id.clone(), *verdict)).collect()
                };
                let differs = part(&|id, verdict| usual.get(id).is_some_and(|usual| *usual != verdict));
                let faults = part(&|_, verdict| verdict.is_fault());
                FleetGroup { hosts: places, differs, faults }
            })
            .collect();
        groups.sort_by_key(|group| {
            (Reverse(group.differs.len()), Reverse(group.faults.len()), group.hosts.first().copied())
        });
        let findings = findings(&hosts);
        let threshold_ns = usual_threshold(&hosts);
        let is_other = |host: &FleetHost| host.rate.is_some() && host.threshold_ns != threshold_ns;
        let other_threshold =
            (0..).zip(&hosts).filter(|(_, host)| is_other(host)).map(|(at, _)| at).collect();
        let (rate_median, noisy) = noisy(&hosts, threshold_ns);
        Self { hosts, groups, findings, threshold_ns, other_threshold, rate_median, noisy }
    }

    /// The host whose document is the oldest; `None` if no document says when it was made.
    pub fn oldest(&self) -> Option<&FleetHost> {
        let dated = self.hosts.iter().filter(|host| !host.started_at.is_empty());
        dated.min_by(|x, y| x.started_at.cmp(&y.started_at))
    }

    /// Returns how many of the settings of all hosts were checked.
    pub fn checked(&self) -> Checked {
        let verdicts = || self.hosts.iter().flat_map(|host| host.verdicts.values());
        Checked {
            checked: verdicts().filter(|verdict| verdict.counts()).count(),
            unknown: verdicts().filter(|verdict| **verdict == Verdict::Unknown).count(),
        }
    }

    /// Hosts whose verdicts are those of most hosts.
    pub fn alike_count(&self) -> usize {
        self.groups.iter().filter(|group| group.differs.is_empty()).map(|group| group.hosts.len()).sum()
    }
}

/// The most frequent verdict on each setting; of equally frequent ones the best.
fn usual(hosts: &[FleetHost]) -> BTreeMap<&str, Verdict> {
    let mut counts: BTreeMap<&str, BTreeMap<Verdict, usize>> = BTreeMap::new();
    for (id, verdict) in hosts.iter().flat_map(|host| &host.verdicts) {
        *counts.entry(id).or_default().entry(*verdict).or_default() += 1;
    }
    let place = |verdict| Verdict::WORST_FIRST.iter().position(|other| *other == verdict);
    let most = |of: BTreeMap<Verdict, usize>| {
        of.into_iter().max_by_key(|(verdict, count)| (*count, place(*verdict)))
    };
    counts.into_iter().filter_map(|(id, of)| Some((id, most(of)?.0))).collect()
}

fn findings(hosts: &[FleetHost]) -> Vec<FleetFinding> {
    let ids: BTreeSet<&str> = hosts.iter().flat_map(|host| host.wanted.keys()).map(String::as_str).collect();
    let mut found: Vec<FleetFinding> = ids
        .into_iter()
        .map(|id| {
            let at_fault =
                |host: &&FleetHost| host.verdicts.get(id).is_some_and(|verdict| verdict.is_fault());
            let places: Vec<usize> =
                hosts.iter().enumerate().filter(|(_, host)| at_fault(host)).map(|(at, _)| at).collect();
            FleetFinding {
                id: id.to_owned(),
                fault_count: places.len(),
                applies_count: hosts.iter().filter(|host| host.verdicts.contains_key(id)).count(),
                wanted: wanted(hosts, id, &places),
                hosts: places,
            }
        })
        .collect();
    found.sort_by_key(|of| (of.fault_count, of.id.clone()));
    found
}

/// The values that the hosts at these places want for a setting.
fn wanted(hosts: &[FleetHost], id: &str, places: &[usize]) -> Vec<FleetWanted> {
    let mut by_value: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in places {
        if let Some(value) = hosts.get(*at).and_then(|host| host.wanted.get(id)) {
            by_value.entry(value).or_default().push(*at);
        }
    }
    let of = |(value, hosts): (&str, Vec<usize>)| FleetWanted { value: value.to_owned(), hosts };
    let mut all: Vec<FleetWanted> = by_value.into_iter().map(of).collect();
    all.sort_by_key(|of| (Reverse(of.hosts.len()), of.hosts.first().copied()));
    all
}

/// The most frequent threshold of measured hosts; of equally frequent ones the lowest.
fn usual_threshold(hosts: &[FleetHost]) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for threshold_ns in hosts.iter().filter(|host| host.rate.is_some()).filter_map(|host| host.threshold_ns) {
        *counts.entry(threshold_ns).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(threshold_ns, count)| (*count, Reverse(*threshold_ns))).map(|(ns, _)| ns)
}

/// The median rate, of an even number the lower one, and the hosts whose rates are surely far above it.
fn noisy(hosts: &[FleetHost], threshold_ns: Option<u64>) -> (Option<RateInterval>, Vec<usize>) {
    let compared = hosts.iter().enumerate().filter(|(_, host)| host.threshold_ns == threshold_ns);
    let mut rates: Vec<(RateInterval, usize)> =
        compared.filter_map(|(at, host)| Some((host.rate?, at))).collect();
    rates.sort_by(|x, y| y.0.per_s.total_cmp(&x.0.per_s).then(x.1.cmp(&y.1)));
    let Some((median, _)) = rates.get(rates.len() / 2).copied().filter(|_| rates.len() >= MEASURED_MIN)
    else {
        return (None, Vec::new());
    };
    // A median host without interruptions may have had some in a longer run.
    let far = |rate: &RateInterval| {
        rate.per_s_low > median.per_s * NOISY_RATIO && rate.per_s_low > median.per_s_high
    };
    (Some(median), rates.iter().filter(|(rate, _)| far(rate)).map(|(_, at)| *at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with this many interruptions in a thousand core-seconds.
    fn host(name: &str, verdicts: &[(&str, Verdict)], count: Option<u64>) -> FleetHost {
        let verdicts: BTreeMap<String, Verdict> =
            verdicts.iter().map(|(id, verdict)| ((*id).to_owned(), *verdict)).collect();
        let faults = verdicts.iter().filter(|(_, verdict)| verdict.is_fault());
        FleetHost {
            name: name.to_owned(),
            product: String::new(),
            kernel: String::new(),
            started_at: String::new(),
            score_percent: None,
            wanted: faults.map(|(id, _)| (id.clone(), "0".to_owned())).collect(),
            verdicts,
            rate: count.and_then(|count| RateInterval::of(count, 1_000.0)),
            threshold_ns: count.map(|_| 1_000),
            length_ns_max: None,
        }
    }

    #[test]
    fn hosts_that_differ_come_before_the_many() {
        use Verdict::{Good, Unknown, Wrong};
        let usual = [("a", Good), ("b", Wrong)];
        let mut hosts: Vec<FleetHost> =
            (0..8).map(|at| host(&format!("desk{at}"), &usual, Some(1_000))).collect();
        hosts.push(host("odd", &[("a", Wrong), ("b", Good)], Some(2_000)));
        hosts.push(host("half", &[("a", Unknown), ("b", Wrong)], Some(9_000)));
        let fleet = Fleet::of(hosts);
        let groups: Vec<(Vec<usize>, Vec<&str>)> = fleet
            .groups
            .iter()
            .map(|group| (group.hosts.clone(), group.differs.keys().map(String::as_str).collect()))
            .collect();
        assert_eq!(groups, [(vec![8], vec!["a", "b"]), (vec![9], vec!["a"]), ((0..8).collect(), vec![])]);
        assert_eq!(fleet.alike_count(), 8);
        let findings: Vec<(&str, usize, usize)> =
            fleet.findings.iter().map(|of| (of.id.as_str(), of.fault_count, of.applies_count)).collect();
        assert_eq!(findings, [("a", 1, 10), ("b", 9, 10)], "the rarest fault first");
        assert_eq!((fleet.rate_median.map(|rate| rate.per_s), fleet.noisy), (Some(1.0), vec![9]));
    }

    /// Hosts with other roles want other values.
    #[test]
    fn each_host_has_its_own_wanted_value() {
        let wanting = |name: &str, value: &str| FleetHost {
            wanted: BTreeMap::from([("a".to_owned(), value.to_owned())]),
            ..host(name, &[("a", Verdict::Wrong)], None)
        };
        let fleet = Fleet::of(vec![wanting("x", "1-7"), wanting("y", "2-7"), wanting("z", "2-7")]);
        let wanted: Vec<(&str, &[usize])> =
            fleet.findings[0].wanted.iter().map(|of| (of.value.as_str(), of.hosts.as_slice())).collect();
        assert_eq!(wanted, [("2-7", &[1, 2][..]), ("1-7", &[0])]);
    }

    /// A setting that does not apply to a host does not make it an outlier, and two hosts have no middle.
    #[test]
    fn absent_settings_and_too_few_hosts_judge_nothing() {
        use Verdict::{Good, Wrong};
        let hosts = vec![
            host("a", &[("x", Good), ("y", Wrong)], Some(1_000)),
            host("b", &[("x", Good)], Some(99_000)),
        ];
        let fleet = Fleet::of(hosts);
        assert!(fleet.groups.iter().all(|group| group.differs.is_empty()), "{:?}", fleet.groups);
        assert_eq!((fleet.alike_count(), fleet.rate_median, fleet.noisy.len()), (2, None, 0));
        assert_eq!(Fleet::of(Vec::new()), Fleet::default());
    }

    /// One interruption among hosts without any is chance, and a lower threshold counts more of them.
    #[test]
    fn noisy_hosts_are_those_that_surely_have_more_at_the_same_threshold() {
        let mut hosts: Vec<FleetHost> = (0..5).map(|at| host(&format!("desk{at}"), &[], Some(0))).collect();
        hosts.push(host("one", &[], Some(1)));
        hosts.push(host("many", &[], Some(50)));
        hosts.push(FleetHost { threshold_ns: Some(100), ..host("finer", &[], Some(90_000)) });
        hosts.push(host("unmeasured", &[], None));
        let fleet = Fleet::of(hosts);
        assert_eq!((fleet.threshold_ns, fleet.noisy, fleet.other_threshold), (Some(1_000), vec![6], vec![7]));
        assert_eq!(fleet.rate_median.map(|rate| rate.per_s), Some(0.0));
    }
}
