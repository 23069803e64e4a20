//! Findings of the Kungfu report that groups of the matrix check on this host.

use super::StageRange;

/// A finding, and the groups that differ in nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportFinding {
    /// Its number in the report.
    pub number: u8,
    pub title: &'static str,
    /// Statement of the report, one sentence.
    pub says: &'static str,
    /// Letters of its groups, the one that the report calls faster first.
    pub groups: &'static [char],
}

/// Every finding that has groups, in the report's order.
pub const FINDINGS: &[ReportFinding] = &[
    ReportFinding {
        number: 3,
        title: "cache coherence",
        says: "a pinned writer keeps its cache lines, so readers fetch them from one place, and transfers get cheaper",
        groups: &['K', 'J', 'L'],
    },
    ReportFinding {
        number: 6,
        title: "strategies off the platform's CPUs",
        says: "latency gets much better where strategies no longer compete with md and td for CPUs",
        groups: &['O', 'Q'],
    },
    ReportFinding {
        number: 7,
        title: "NUMA nodes against contention",
        says: "reaching over NUMA nodes costs far less than strategies that compete for the CPUs of one",
        groups: &['X', 'Y'],
    },
];

/// The finding that a group belongs to; none for groups of the tables.
pub fn finding_of(letter: char) -> Option<&'static ReportFinding> {
    FINDINGS.iter().find(|finding| finding.groups.contains(&letter))
}

/// Comparison of one set-up with another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpeedVerdict {
    /// All its runs were faster; the other takes this multiple of its time.
    Faster(f64),
    /// All its runs were slower, by this factor.
    Slower(f64),
    /// The ranges of the runs' means overlap.
    NoDifference,
}

/// Compares two set-ups by the means of their runs; `None` with fewer than two runs of either, which have no range.
pub fn compare(one: (&StageRange, usize), other: (&StageRange, usize)) -> Option<SpeedVerdict> {
    let (one, other) = match (one, other) {
        ((one, 2..), (other, 2..)) => (one.means_ns?, other.means_ns?),
        _ => return None,
    };
    let middle = |(low, high): (f64, f64)| (low * high).sqrt();
    Some(if one.1 < other.0 {
        SpeedVerdict::Faster(middle(other) / middle(one))
    } else if other.1 < one.0 {
        SpeedVerdict::Slower(middle(one) / middle(other))
    } else {
        SpeedVerdict::NoDifference
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::GROUPS;

    #[test]
    fn a_finding_s_groups_share_all_but_their_pins() {
        for finding in FINDINGS {
            let group = |letter: &char| GROUPS.iter().find(|group| group.letter == *letter).unwrap();
            let first = group(&finding.groups[0]);
            for other in finding.groups.iter().map(group) {
                let alike = super::super::Group {
                    letter: first.letter,
                    name: first.name,
                    pinning: first.pinning,
                    ..*other
                };
                assert_eq!(alike, *first);
                assert_eq!(finding_of(other.letter), Some(finding));
            }
        }
        assert_eq!(finding_of('A'), None);
    }

    #[test]
    fn ranges_that_meet_show_no_difference() {
        let range = |low: f64, high: f64| StageRange { means_ns: Some((low, high)), ..StageRange::default() };
        let of = |one: &StageRange, other: &StageRange| compare((one, 2), (other, 3));
        let (fast, slow) = (range(10.0, 40.0), range(80.0, 320.0));
        assert_eq!(of(&fast, &slow), Some(SpeedVerdict::Faster(8.0)));
        assert_eq!(of(&slow, &fast), Some(SpeedVerdict::Slower(8.0)));
        assert_eq!(of(&fast, &range(40.0, 90.0)), Some(SpeedVerdict::NoDifference));
        assert_eq!(compare((&fast, 1), (&slow, 2)), None, "one run has no range");
        assert_eq!(of(&fast, &StageRange::default()), None);
    }
}
