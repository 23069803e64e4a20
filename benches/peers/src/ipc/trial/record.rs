//! Result of a trial, in the format of lowlat's own pipeline runs.

use super::{
    Scene,
    board::{Board, Count, Slot},
};
use lowlat_pipeline::{PipelineRecord, ProcessUse};
use std::collections::BTreeMap;

/// Builds the record from the board and the latencies.
pub fn of(scene: &Scene, board: &Board, measured_s: f64) -> anyhow::Result<PipelineRecord> {
    let orders = board.count(Count::Orders);
    let sum = |slot| (0..scene.roles.len()).map(|process| board.slot(process, slot)).sum::<u64>();
    let mut uses: Vec<ProcessUse> = Vec::new();
    for (process, role) in scene.roles.iter().enumerate() {
        let known = uses.iter().position(|known| known.role == role.name()).unwrap_or_else(|| {
            uses.push(ProcessUse { role: role.name().to_owned(), ..ProcessUse::default() });
            uses.len() - 1
        });
        let Some(row) = uses.get_mut(known) else { continue };
        row.processes += 1;
        row.cpu_s += board.slot(process, Slot::CpuNs) as f64 / 1e9;
        row.voluntary_switches += board.slot(process, Slot::Voluntary);
        row.involuntary_switches += board.slot(process, Slot::Involuntary);
        row.minor_faults += board.slot(process, Slot::MinorFaults);
        row.major_faults += board.slot(process, Slot::MajorFaults);
    }
    let published = board.count(Count::Published);
    let mut warnings = Vec::new();
    if published < scene.load.ticks {
        warnings.push(format!("md published {published} of {} quotes: it fell behind", scene.load.ticks));
    }
    if orders < published {
        warnings
            .push(format!("td read {orders} orders for {published} quotes: latencies are of those alone"));
    }
    let unreported =
        (0..scene.roles.len()).filter(|process| board.slot(*process, Slot::Reported) == 0).count();
    if unreported > 0 {
        warnings.push(format!("{unreported} processes did not tell what they used"));
    }
    let backing = scene.memory.backing().map(|backing| (backing.to_string(), scene.memory.bytes()));
    Ok(PipelineRecord {
        parameters: scene.parameters.clone(),
        measured_s,
        // The processes of every transport start before the clock does: the time is not compared.
        ready_s: 0.0,
        is_cut_short: false,
        ticks_scheduled: scene.load.ticks,
        ticks_published: published,
        orders,
        answers: board.count(Count::Answers),
        rejected: 0,
        lost: sum(Slot::Lost),
        wakes: 0,
        missed_wakes: 0,
        restarts: 0,
        stages: scene.samples().stages(orders)?,
        wire: None,
        uses,
        uses_s: measured_s,
        others_cpu_s: None,
        backing_bytes: backing.into_iter().collect::<BTreeMap<_, _>>(),
        runs_beside: Vec::new(),
        failed: Vec::new(),
        balance: lowlat_pipeline::Balance::default(),
        findings: Vec::new(),
        warnings,
    })
}
