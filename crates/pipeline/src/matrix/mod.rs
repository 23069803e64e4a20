//! The matrix: the four groups and twelve scenarios of the Kungfu report, and what it measured beside them, as rows.

mod budget;
mod document;
mod pins;
mod summary;

pub use budget::{Budget, BudgetError, PlannedRun, RUN_S_MIN, RowPlan, Share};
pub use document::{MatrixDocument, MatrixRow};
pub use pins::{PlatformPins, platform_pins};
pub use summary::{RowFigures, StageRange};

use super::{Mode, PipelineParameters};

/// Strategies of every group but the one of a single strategy.
pub const STRATEGIES: u32 = 80;

/// One load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario {
    /// The report's number, from 1.
    pub number: u8,
    /// Quotes per second over all instruments.
    pub rate_per_s: f64,
}

/// The loads of the report.
pub const SCENARIOS: [Scenario; 12] = [
    Scenario { number: 1, rate_per_s: 0.2 },
    Scenario { number: 2, rate_per_s: 1.0 / 3.0 },
    Scenario { number: 3, rate_per_s: 0.5 },
    Scenario { number: 4, rate_per_s: 1.0 },
    Scenario { number: 5, rate_per_s: 2.0 },
    Scenario { number: 6, rate_per_s: 4.0 },
    Scenario { number: 7, rate_per_s: 8.0 },
    Scenario { number: 8, rate_per_s: 16.0 },
    Scenario { number: 9, rate_per_s: 32.0 },
    Scenario { number: 10, rate_per_s: 80.0 },
    Scenario { number: 11, rate_per_s: 800.0 },
    Scenario { number: 12, rate_per_s: 8000.0 },
];

/// A set-up in which scenarios are run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Group {
    /// The letter that its rows begin with.
    pub letter: char,
    /// What it is, in a few words.
    pub name: &'static str,
    /// How many strategies.
    pub strategies: u32,
    /// How processes wait.
    pub mode: Mode,
    /// Whether master, cached, md and td have a CPU each ([`platform_pins`]).
    pub is_pinned: bool,
    /// Whether memory comes from the pool of huge pages.
    pub needs_huge_pages: bool,
    /// Whether one process runs all strategies, on a CPU of its own.
    pub has_host: bool,
    /// Whether md and td are one process.
    pub is_colocated: bool,
    /// Whether the report has a table of it.
    pub is_in_report: bool,
    /// Numbers of its scenarios.
    pub scenarios: &'static [u8],
}

const ALL: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const SOME: &[u8] = &[4, 7, 10, 11, 12];
const BASE: Group = Group {
    letter: 'A',
    name: "parked, not pinned, usual pages",
    strategies: STRATEGIES,
    mode: Mode::Parked,
    is_pinned: false,
    needs_huge_pages: false,
    has_host: false,
    is_colocated: false,
    is_in_report: true,
    scenarios: ALL,
};
const BESIDE: Group = Group { is_pinned: true, is_in_report: false, scenarios: SOME, ..BASE };

/// Every group. A new one is a line here.
pub const GROUPS: &[Group] = &[
    BASE,
    Group { letter: 'B', name: "parked, not pinned, huge pages", needs_huge_pages: true, ..BASE },
    Group { letter: 'C', name: "parked, platform pinned, usual pages", is_pinned: true, ..BASE },
    Group {
        letter: 'D',
        name: "parked, platform pinned, huge pages",
        is_pinned: true,
        needs_huge_pages: true,
        ..BASE
    },
    Group { letter: 'S', name: "one strategy, parked, platform pinned", strategies: 1, ..BESIDE },
    Group { letter: 'F', name: "every process fast, platform pinned", mode: Mode::Fast, ..BESIDE },
    Group { letter: 'M', name: "md fast, td and strategies parked", mode: Mode::Mixed, ..BESIDE },
    Group { letter: 'H', name: "platform parked, one strategy host that spins", has_host: true, ..BESIDE },
    Group {
        letter: 'P',
        name: "md and td in one process, which spins beside one strategy host",
        mode: Mode::Fast,
        has_host: true,
        is_colocated: true,
        ..BESIDE
    },
];

/// A scenario in a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The set-up.
    pub group: &'static Group,
    /// The load.
    pub scenario: Scenario,
}

/// Every row, group after group.
pub fn rows() -> impl Iterator<Item = Row> {
    GROUPS.iter().flat_map(|group| {
        let is_in = |of: &&Scenario| group.scenarios.contains(&of.number);
        SCENARIOS.iter().filter(is_in).map(move |scenario| Row { group, scenario: *scenario })
    })
}

impl Row {
    /// `A1`, `H12`.
    pub fn id(&self) -> String {
        format!("{}{}", self.group.letter, self.scenario.number)
    }

    /// Processes that a run starts: master, cached, md, td, and the strategies or their host.
    pub fn processes(&self) -> u32 {
        let platform = if self.group.is_colocated { 3 } else { 4 };
        platform + if self.group.has_host { 1 } else { self.group.strategies }
    }

    /// What a run of so many seconds is asked to do; `pins` are those of the host.
    pub fn parameters(&self, duration_s: f64, pins: &PlatformPins) -> PipelineParameters {
        let group = self.group;
        let mut platform = if group.has_host { pins.host_pins.clone() } else { pins.pins.clone() };
        if group.is_colocated {
            platform.remove("td");
            // Where there are no pins it is one process all the same.
            let cpus = platform.remove("md").unwrap_or_default();
            platform.insert(PipelineParameters::PLATFORM.to_owned(), cpus);
        }
        PipelineParameters {
            strategies: group.strategies,
            rate_per_s: self.scenario.rate_per_s,
            mode: group.mode,
            duration_s,
            pins: if group.is_pinned { platform } else { std::collections::BTreeMap::new() },
            host_core: group.has_host.then_some(pins.host_core),
            may_use_huge_pages: group.needs_huge_pages,
        }
    }
}

/// The rows that a user names: ids (`C10`), or letters of whole groups (`C`). All when nothing is named.
///
/// # Errors
/// Names what is no row, with what there is.
pub fn choose(names: &[String]) -> Result<Vec<Row>, String> {
    let is_named = |row: &Row, name: &str| {
        row.id().eq_ignore_ascii_case(name) || row.group.letter.to_string().eq_ignore_ascii_case(name)
    };
    if let Some(unknown) = names.iter().find(|name| !rows().any(|row| is_named(&row, name))) {
        let groups: Vec<String> = GROUPS
            .iter()
            .map(|group| {
                let numbers: Vec<String> = group.scenarios.iter().map(u8::to_string).collect();
                let numbers = if group.scenarios == ALL { "1 to 12".to_owned() } else { numbers.join(", ") };
                format!("  {} ({numbers}): {}", group.letter, group.name)
            })
            .collect();
        return Err(format!(
            "\"{unknown}\" is no row of the matrix; name a group, or a group and a scenario such as C10\n{}",
            groups.join("\n")
        ));
    }
    Ok(rows().filter(|row| names.is_empty() || names.iter().any(|name| is_named(row, name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_have_one_name_each_and_scenarios_that_exist() {
        let ids: BTreeSet<String> = rows().map(|row| row.id()).collect();
        assert_eq!(ids.len(), rows().count());
        assert_eq!(rows().count(), GROUPS.iter().map(|group| group.scenarios.len()).sum::<usize>());
        assert!(SCENARIOS.windows(2).all(|pair| pair[0].rate_per_s < pair[1].rate_per_s));
    }

    #[test]
    fn rows_are_chosen_by_name_or_by_group() {
        let chosen = |names: &[&str]| {
            choose(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .map(|rows| rows.iter().map(Row::id).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(chosen(&["c10", "S"]).unwrap(), "C10 S4 S7 S10 S11 S12");
        assert_eq!(choose(&[]).unwrap().len(), rows().count());
        let error = chosen(&["C13"]).unwrap_err();
        assert!(error.starts_with("\"C13\" is no row") && error.contains("H (4, 7, 10, 11, 12)"), "{error}");
    }

    #[test]
    fn a_row_becomes_parameters() {
        let pins = platform_pins(&lowlat_host::CpuSet::first(12)).unwrap();
        let of = |id: &str| rows().find(|row| row.id() == id).unwrap().parameters(2.0, &pins);
        let (a, d, host) = (of("A10"), of("D11"), of("H12"));
        assert!(a.pins.is_empty() && !a.may_use_huge_pages && a.host_core.is_none());
        assert_eq!(
            (d.pins["md"].as_slice(), d.may_use_huge_pages, d.rate_per_s),
            ([6].as_slice(), true, 800.0)
        );
        assert!(host.host_core.is_some_and(|cpu| !host.pins.values().flatten().any(|pinned| *pinned == cpu)));
    }
}
