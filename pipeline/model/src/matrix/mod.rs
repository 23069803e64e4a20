//! The matrix: the four groups and twelve scenarios of the Kungfu report, what it measured beside them, and groups that
//! check its findings, as rows.

mod budget;
mod document;
mod finding;
mod groups;
mod pins;
mod summary;

pub use budget::{Budget, PlannedRun, RUN_S_MIN, RowPlan, Share};
pub use document::{MatrixDocument, MatrixRow};
pub use finding::{FINDINGS, ReportFinding, SpeedVerdict, compare, finding_of};
pub use groups::{FOLLOWERS, GROUPS, Group, PLATFORM_PROCESSES, Pinning, RATES_PER_S, STRATEGIES, Scenario};
pub use pins::{MatrixPins, PlatformPins, platform_pins};
pub use summary::{RowFigures, StageRange};

use super::{PipelineParameters, ProcessRole};

/// A scenario in a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub group: &'static Group,
    pub scenario: Scenario,
    pub strategies: u32,
}

/// Every row, group after group.
pub fn rows() -> impl Iterator<Item = Row> {
    GROUPS.iter().flat_map(|group| {
        let scenarios = (1..).zip(RATES_PER_S).map(|(number, rate_per_s)| Scenario { number, rate_per_s });
        let is_in = |of: &Scenario| group.scenarios.contains(&of.number);
        scenarios.filter(is_in).map(|scenario| Row { group, scenario, strategies: group.strategies })
    })
}

/// One row of each group for a scenario of so many instruments that a file describes.
pub fn rows_of_file(instruments: u32, rate_per_s: f64) -> impl Iterator<Item = Row> {
    let scenario = Scenario { number: 0, rate_per_s };
    GROUPS.iter().map(move |group| Row {
        group,
        scenario,
        strategies: if group.strategies == STRATEGIES { instruments } else { group.strategies },
    })
}

impl Row {
    /// `A1`, `H12`; `A` of a scenario from a file.
    pub fn id(&self) -> String {
        match self.scenario.number {
            0 => self.group.letter.to_string(),
            number => format!("{}{number}", self.group.letter),
        }
    }

    /// Processes that a run starts: the platform's, and the strategies or their host.
    pub fn processes(&self) -> u32 {
        PLATFORM_PROCESSES - u32::from(self.group.is_colocated)
            + if self.group.has_host { 1 } else { self.strategies }
    }

    /// Returns the parameters of a run of so many seconds. A group that cannot be pinned ([`MatrixPins::of`]) gets
    /// no pins.
    pub fn parameters(&self, duration_s: f64, pins: &MatrixPins<'_>) -> PipelineParameters {
        let group = self.group;
        let mut of_group = pins.of(group).unwrap_or_default();
        if group.is_colocated && !of_group.contains_key(&ProcessRole::Platform) {
            of_group.remove(&ProcessRole::Td);
            // Without pins it is one process too.
            let cpus = of_group.remove(&ProcessRole::Md).unwrap_or_default();
            of_group.insert(ProcessRole::Platform, cpus);
        }
        PipelineParameters {
            strategies: self.strategies,
            rate_per_s: self.scenario.rate_per_s,
            mode: group.mode,
            duration_s,
            pins: of_group,
            host_core: group.has_host.then(|| pins.host_core()),
            may_use_huge_pages: group.needs_huge_pages,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }
}

/// The rows among `all` that a user names: ids (`C10`), or letters of whole groups (`C`). All when nothing is named.
///
/// # Errors
/// Names the row that does not exist, with the groups that do.
pub fn choose(names: &[String], all: impl Iterator<Item = Row>) -> Result<Vec<Row>, String> {
    let all: Vec<Row> = all.collect();
    let is_named = |row: &Row, name: &str| {
        row.id().eq_ignore_ascii_case(name) || row.group.letter.to_string().eq_ignore_ascii_case(name)
    };
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|row| is_named(row, name))) {
        let groups: Vec<String> = GROUPS
            .iter()
            .map(|group| {
                let numbers: Vec<String> = group.scenarios.iter().map(u8::to_string).collect();
                let numbers =
                    if group.scenarios == groups::ALL { "1 to 12".to_owned() } else { numbers.join(", ") };
                let finding = finding_of(group.letter)
                    .map_or_else(String::new, |finding| format!("finding {}: ", finding.number));
                format!("  {} ({numbers}): {finding}{}", group.letter, group.name)
            })
            .collect();
        return Err(format!(
            "cannot run row \"{unknown}\": the matrix has no such row\n{}\nhint: name a group, or a group and a scenario such as C10",
            groups.join("\n")
        ));
    }
    Ok(all
        .into_iter()
        .filter(|row| names.is_empty() || names.iter().any(|name| is_named(row, name)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::{CpuSet, Topology};
    use std::collections::BTreeSet;

    #[test]
    fn rows_have_one_name_each_and_scenarios_that_exist() {
        let ids: BTreeSet<String> = rows().map(|row| row.id()).collect();
        assert_eq!(ids.len(), rows().count());
        assert_eq!(rows().count(), GROUPS.iter().map(|group| group.scenarios.len()).sum::<usize>());
        assert!(RATES_PER_S.is_sorted());
    }

    #[test]
    fn rows_are_chosen_by_name_or_by_group() {
        let chosen = |names: &[&str]| {
            choose(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), rows())
                .map(|rows| rows.iter().map(Row::id).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(chosen(&["c10", "R"]).unwrap(), "C10 R4 R7 R10 R11 R12");
        assert_eq!(choose(&[], rows()).unwrap().len(), rows().count());
        let error = chosen(&["C13"]).unwrap_err();
        assert!(
            error.starts_with("cannot run row \"C13\": ") && error.contains("H (4, 7, 10, 11, 12)"),
            "{error}"
        );
        assert!(error.contains("O (10, 11, 12): finding 6: strategies off"), "{error}");
        let of_file = choose(&["a".to_owned()], rows_of_file(20, 40.0)).unwrap();
        assert_eq!((of_file[0].id().as_str(), of_file[0].strategies), ("A", 20));
    }

    #[test]
    fn a_run_has_as_many_processes_as_in_the_report() {
        let of = |id: &str| rows().find(|row| row.id() == id).unwrap().processes();
        assert_eq!([of("A10"), of("S10"), of("H10"), of("P10"), of("K10")], [86, 7, 7, 6, 6]);
    }

    #[test]
    fn a_row_becomes_parameters() {
        let (cpus, topology) = (CpuSet::first(12), Topology::default());
        let pins = MatrixPins::new(&cpus, &topology);
        let of = |id: &str| rows().find(|row| row.id() == id).unwrap().parameters(2.0, &pins);
        let (a, d, host) = (of("A10"), of("D11"), of("H12"));
        assert!(a.pins.is_empty() && !a.may_use_huge_pages && a.host_core.is_none());
        assert_eq!(
            (d.pins[&ProcessRole::Md].as_slice(), d.may_use_huge_pages, d.rate_per_s),
            ([6].as_slice(), true, 800.0)
        );
        assert!(host.host_core.is_some_and(|cpu| !host.pins.values().flatten().any(|pinned| *pinned == cpu)));
        let (near, loose) = (of("K10"), of("J10"));
        assert!(
            near.pins[&ProcessRole::Platform] != near.pins[&ProcessRole::Strategies]
                && near.pins[&ProcessRole::Strategies].len() == 1
        );
        assert_eq!(loose.pins, [(ProcessRole::Platform, Vec::new())].into(), "one process without a CPU");
    }
}
