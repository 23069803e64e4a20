//! User processes: the CPUs of those that run, and of those that later boots start.

use super::{Moment, Proposal, Target};
use crate::{Context, Setting, change::boot};
use lowlat_host::Reading;

/// A drop-in of systemd's manager that is read after those of other names, because later masks are added to earlier ones.
const DROP_IN: &str = "/etc/systemd/system.conf.d/zz-lowlat.conf";

/// Keeps processes that request no CPUs on the housekeeping CPUs: those that run now, and, with CPUAffinity= of systemd's
/// manager, those of later boots. The boot parameter does the same in an initial RAM disk that TuneD built.
pub fn to_housekeeping(context: &Context<'_>, setting: &Setting) -> Proposal {
    let house = context.allocation.housekeeping.to_list();
    let text = format!(
        "# Written by lowlat; changes are lost when it applies a plan.\n[Manager]\nCPUAffinity=\nCPUAffinity={house}\n"
    );
    let before = context.host.tasks.first_process_cpus.clone().map(|cpus| cpus.to_list());
    boot::parameter(context, setting)
        .step_at(Moment::AtBoot, Target::OwnedFile { path: DROP_IN.to_owned() }, Reading::Absent, text)
        .step(Target::UserProcesses, before, house)
}
