//! The cost of time-stamping sockets for all CPUs.

use super::NIC;
use lowlat_host::kernel_version::KernelVersion;
use lowlat_settings::{
    Context, Judgement, Setting, Want,
    judge::{
        self,
        each::{isolated, none_isolated},
    },
};

/// Since this kernel the switch does not affect CPUs of nohz_full=.
const FIXED: KernelVersion = KernelVersion::new(6, 10);

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "nic.timestamp_static_key",
    not_planned: "let one program hold a socket with SO_TIMESTAMPING open for the whole session, or isolate by \
                  nohz_full= on Linux 6.10 or later",
    name: "SO_TIMESTAMPING",
    reason: "The first socket with time stamps that opens, and the last one that closes, patch the kernel's code, and each \
             patch interrupts every CPU. Monitoring and PTP programs do that at any moment.",
    effective: "opening and closing such a socket leaves the CAL row of /proc/interrupts unchanged on isolated CPUs.",
    trading: Want::State("isolated CPUs are left alone"),
    judge: static_key,
    sources: &["kernel commit 2f3c7195a702 (2024-04)", "TuneD 2.28 plugin rtentsk"],
    ..NIC
}];

fn static_key(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let nohz_full = context.host.topology.nohz_full.known().cloned().unwrap_or_default();
    match judge::kernel_at_least(context.host, FIXED) {
        Some(true) if isolated.difference(&nohz_full).is_empty() => {
            Judgement::good("isolated CPUs are in nohz_full=")
        }
        Some(true) => Judgement::wrong(
            "not all isolated CPUs are in nohz_full=",
            "only these CPUs are left alone; boot.nohz_full covers them",
        ),
        Some(false) => {
            Judgement::wrong("kernel before 6.10", "unless a program holds such a socket open all the time")
        }
        None => Judgement::unknown("the kernel's version is not known"),
    }
    .at("/proc/version")
}
