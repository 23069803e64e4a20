//! Latencies between the cores of hand-made hosts.

use super::{Shape, document, host};
use lowlat_cache::c2c::{C2cMeasurement, Sample, SurveyLimits, survey};
use lowlat_host::CpuSet;
use lowlat_results::ResultDocument;

/// A survey of a host whose latencies follow its topology, with steady noise.
pub fn cores(shape: &Shape) -> ResultDocument {
    let mut document = document(host(shape), "0");
    document.command = C2cMeasurement::COMMAND.into();
    let topology = document.snapshot.topology.clone();
    let are_together =
        |groups: &[CpuSet], a, b| groups.iter().any(|group| group.contains(a) && group.contains(b));
    let of =
        |groups: &[lowlat_host::topology::Group]| groups.iter().map(|group| group.cpus.clone()).collect();
    let nodes: Vec<CpuSet> = topology.nodes.iter().map(|node| node.cpus.clone()).collect();
    let llcs: Vec<CpuSet> = topology.llcs().iter().map(|cache| cache.cpus.clone()).collect();
    let levels: [(Vec<CpuSet>, f64); 5] = [
        (of(&topology.cores), 8.0),
        (of(&topology.clusters), 24.0),
        (llcs, 46.0),
        (nodes, 110.0),
        (of(&topology.packages), 150.0),
    ];
    let mut measured: u32 = 0;
    let mut measure = |a, b| {
        measured += 1;
        let base = levels.iter().find(|(groups, _)| are_together(groups, a, b)).map_or(260.0, |(_, ns)| *ns);
        let median_ns = base * (1.0 + 0.01 * f64::from(measured % 7));
        Ok(Sample { median_ns, low_ns: 0.97 * median_ns, high_ns: 1.05 * median_ns })
    };
    let record = survey(&topology.online, &topology, SurveyLimits::default(), &mut measure);
    document.measurements = vec![C2cMeasurement::from(record).into()];
    document
}
