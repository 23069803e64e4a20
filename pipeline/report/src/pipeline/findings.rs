//! Findings of the report on this host.

use super::MeasuredRow;
use lowlat_host::CpuSet;
use lowlat_pipeline::{
    PipelineParameters, ProcessRole,
    matrix::{FINDINGS, ReportFinding, SpeedVerdict, compare},
};

/// A finding with the rows of its groups.
pub struct MeasuredFinding<'r, 'a> {
    pub finding: &'static ReportFinding,
    /// Its rows by scenario, and within it in the order of the finding's groups.
    pub rows: Vec<&'r MeasuredRow<'a>>,
}

impl<'r, 'a> MeasuredFinding<'r, 'a> {
    /// Every finding of which rows were asked for.
    pub fn all(rows: &'r [MeasuredRow<'a>]) -> Vec<Self> {
        let of = |finding: &'static ReportFinding| {
            let place =
                |row: &MeasuredRow<'_>| finding.groups.iter().position(|letter| *letter == row.row.group);
            let mut rows: Vec<&MeasuredRow<'a>> = rows.iter().filter(|row| place(row).is_some()).collect();
            rows.sort_by_key(|row| (row.row.scenario, place(row)));
            Self { finding, rows }
        };
        FINDINGS.iter().map(of).filter(|of| !of.rows.is_empty()).collect()
    }

    /// "Finding 6 of the report: strategies off the platform's CPUs".
    pub fn title(&self) -> String {
        format!("Finding {} of the report: {}", self.finding.number, self.finding.title)
    }

    /// Its rows that were measured.
    pub fn measured(&self) -> Vec<&'r MeasuredRow<'a>> {
        self.rows.iter().copied().filter(|row| row.figures.runs > 0).collect()
    }

    /// The first measured row of each of its groups.
    pub fn groups(&self) -> Vec<&'r MeasuredRow<'a>> {
        let measured = self.measured();
        let first = |letter: &char| measured.iter().copied().find(|row| row.row.group == *letter);
        self.finding.groups.iter().filter_map(first).collect()
    }

    /// Compares the rows at each load: a sentence for each group beside the first.
    pub fn sentences(&self) -> Vec<String> {
        let [first, others @ ..] = self.finding.groups else { return Vec::new() };
        let measured = self.measured();
        let of = |letter: char| measured.iter().filter(move |row| row.row.group == letter);
        let mut said = Vec::new();
        for row in of(*first) {
            let is_beside = |other: &&&MeasuredRow<'_>| other.row.scenario == row.row.scenario;
            let beside = others.iter().filter_map(|letter| of(*letter).find(is_beside));
            said.extend(beside.map(|other| sentence(row, other)));
        }
        said
    }
}

fn sentence(one: &MeasuredRow<'_>, other: &MeasuredRow<'_>) -> String {
    let (one_id, other_id) = (&one.row.id, &other.row.id);
    match compare((&one.figures.t2o, one.figures.runs), (&other.figures.t2o, other.figures.runs)) {
        Some(SpeedVerdict::Faster(factor)) => {
            format!("{other_id} takes {factor:.2} times as long as {one_id}.")
        }
        Some(SpeedVerdict::Slower(factor)) => {
            format!("{one_id} takes {factor:.2} times as long as {other_id}, unlike in the report.")
        }
        Some(SpeedVerdict::NoDifference) => {
            format!("{one_id} and {other_id}: no difference shown, the means of their runs overlap.")
        }
        None => format!("{one_id} and {other_id}: fewer than two runs of each, which compare nothing."),
    }
}

/// The CPUs of what lies on the way from a quote to its order, such as " (md on CPU 0, td on CPU 1)"; empty if nothing
/// is pinned.
pub fn cpus(parameters: &PipelineParameters) -> String {
    let name = |role: ProcessRole| match role {
        ProcessRole::Strategies if parameters.strategies == 1 => "strategy",
        _ => role.name(),
    };
    let of = |role: ProcessRole| {
        let cpus: CpuSet = parameters.pins.get(&role)?.iter().copied().collect();
        (!cpus.is_empty()).then(|| format!("{} on {cpus:#}", name(role)))
    };
    let roles = [ProcessRole::Md, ProcessRole::Td, ProcessRole::Platform, ProcessRole::Strategies];
    let said: Vec<String> = roles.into_iter().filter_map(of).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}
