//! Reads cpuidle.

use super::CPU;
use crate::Root;
use lowlat_host::{CPU_ID_MAX, CpuId, snapshot::IdleState};

/// Maximum number of idle states with different names. The kernel has at most ten per CPU
/// (CPUIDLE_STATE_MAX), and hosts have one or two kinds of CPU.
const STATES_MAX: usize = 64;
/// Place of the states in [`lowlat_host::HostSnapshot::unread`].
const PLACE: &str = "/sys/devices/system/cpu/cpu*/cpuidle";

/// The states by name, in the CPUs' order: lightest first.
pub(super) fn read(root: &Root) -> Vec<IdleState> {
    let mut states: Vec<IdleState> = Vec::new();
    for folder in root.glob(&format!("{CPU}/cpu*/cpuidle")) {
        root.or_unread(PLACE, root.list(&folder));
    }
    for folder in root.glob(&format!("{CPU}/cpu*/cpuidle/state*")) {
        let Some(cpu) = cpu_of(&folder) else { continue };
        let name = root.or_unread(PLACE, super::word(root, &format!("{folder}/name")));
        if name.is_empty() {
            continue;
        }
        let at = states.iter().position(|state| state.name == name).unwrap_or(states.len());
        if at == STATES_MAX {
            continue;
        }
        if at == states.len() {
            let exit_latency_us = root.read_as(&format!("{folder}/latency"), "a number of microseconds");
            states.push(IdleState { name, exit_latency_us, ..IdleState::default() });
        }
        if let Some(state) = states.get_mut(at) {
            state.cpus.insert(cpu);
            if may_be_entered(root, &folder) {
                state.cpus_enabled.insert(cpu);
            }
        }
    }
    states
}

fn cpu_of(folder: &str) -> Option<CpuId> {
    let name = folder.split('/').nth(5)?;
    name.strip_prefix("cpu")?.parse().ok().filter(|cpu| *cpu <= CPU_ID_MAX)
}

/// Kernels without the file (before 3.4) cannot disable a state.
fn may_be_entered(root: &Root, folder: &str) -> bool {
    let disable = root.read(&format!("{folder}/disable"));
    disable.is_absent() || disable.text() == "0"
}
