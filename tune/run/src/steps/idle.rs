//! Idle states, by name on each CPU: their numbers differ between CPUs, drivers and boots.

use super::Gathering;
use lowlat_host::CpuSet;
use lowlat_undo::{Comparison, State, TargetSpec, UndoError};

/// Maximum number of states checked on one CPU; the kernel has at most ten (CPUIDLE_STATE_MAX).
const STATES_MAX: u32 = 16;

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    name: &str,
    cpus: &CpuSet,
) -> Result<(), UndoError> {
    let disable = match gathering.after(change) {
        "disabled" => "1",
        "enabled" => "0",
        other => {
            gathering
                .leave(change, format!("the plan contains {other:?}, expected \"enabled\" or \"disabled\""));
            return Ok(());
        }
    };
    let mut without = CpuSet::new();
    for cpu in cpus.iter() {
        let mut is_found = false;
        for number in 0..STATES_MAX {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
            let named = TargetSpec::value(format!("{folder}/name"), Comparison::Exact);
            match gathering.present(change, &named)? {
                Some(State::Value(text)) if text.trim() == name => {
                    is_found = true;
                    let spec = TargetSpec::value(format!("{folder}/disable"), Comparison::Number);
                    gathering.value(change, spec, disable)?;
                }
                Some(State::Value(_)) => {}
                Some(_) => break,
                None => {
                    // Unreadable, which is already reported.
                    is_found = true;
                    break;
                }
            }
        }
        if !is_found {
            without.insert(cpu);
        }
    }
    if !without.is_empty() {
        let cpus = without.to_list();
        gathering.leave(
            change,
            format!("CPUs {cpus} have no idle state {name}: they are offline, or use another driver"),
        );
    }
    Ok(())
}
