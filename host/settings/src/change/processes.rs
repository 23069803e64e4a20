//! User processes: the CPUs of running ones, and of those that later boots start.

use super::{Moment, Proposal, Target, WhyLeftOut};
use crate::{Context, Setting, change::boot};
use lowlat_host::{CpuSet, HostSnapshot, Profile, Reading};

/// The parameter that overrides CPUAffinity= of system.conf (systemd(1)).
const PARAMETER: &str = "systemd.cpu_affinity";
/// Units that contain processes of every kind.
const SHARED: [&str; 3] = ["init.scope", "system.slice", "user.slice"];

/// Something that gives CPUs to all processes, or to those of a shared slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivesCpus {
    /// The unit; empty for all processes.
    pub unit: String,
    /// The assignment as spelled in its place: "CPUAffinity=5-6".
    pub says: String,
    pub cpus: CpuSet,
    pub path: String,
    /// The line of the file; none for the kernel's command line.
    pub line: Option<u32>,
}

/// Everything that gives CPUs to all processes that systemd starts, or to those of a shared slice. The command line
/// comes first.
pub fn gives_cpus(host: &HostSnapshot) -> Vec<GivesCpus> {
    let line = host.kernel.tokens();
    let of_line = line.in_force(PARAMETER).and_then(|value| {
        Some(GivesCpus {
            unit: String::new(),
            says: format!("{PARAMETER}={value}"),
            cpus: CpuSet::parse_systemd(value).filter(|cpus| !cpus.is_empty())?,
            path: "/proc/cmdline".to_owned(),
            line: None,
        })
    });
    let of_files = host.services.process_cpus.iter().filter(|found| {
        found.unit.is_empty() || (found.key == "AllowedCPUs" && SHARED.contains(&found.unit.as_str()))
    });
    let of_files = of_files.filter_map(|found| {
        let cpus = found.cpus.known()?.clone();
        let (unit, says) = (found.unit.clone(), format!("{}={cpus}", found.key));
        Some(GivesCpus { unit, says, cpus, path: found.path.clone(), line: Some(found.line) })
    });
    of_line.into_iter().chain(of_files).collect()
}

/// The same, restricted to those that give isolated CPUs.
pub fn gives_isolated(context: &Context<'_>) -> Vec<GivesCpus> {
    let mut found = gives_cpus(context.host);
    found.retain(|found| !found.cpus.is_disjoint(&context.allocation.isolated));
    found
}

/// Removes the parameter and overrides system.conf if they give isolated CPUs to all processes. Slices are left to the
/// user: their processes move at once.
pub fn off_isolated(context: &Context<'_>, _: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    let house = context.allocation.housekeeping.to_list();
    for found in gives_isolated(context) {
        proposal = match (found.unit.as_str(), found.line) {
            ("", None) => proposal.without_token(PARAMETER),
            ("", Some(_)) => proposal.step_at(Moment::AtBoot, drop_in(), Reading::Absent, manager(&house)),
            (unit, line) => proposal.but_not(
                WhyLeftOut::YourChoice,
                format!(
                    "{}:{} has {}; set the housekeeping CPUs with `systemctl set-property {unit} AllowedCPUs={house}`",
                    found.path,
                    line.unwrap_or_default(),
                    found.says
                ),
            ),
        };
    }
    if !proposal.is_empty() || !proposal.left_out.is_empty() {
        return proposal;
    }
    let text = match context.profile {
        Profile::Trading => {
            "follows from isolating the CPUs at boot (boot.isolcpus); running processes keep their affinity"
        }
        Profile::Guide57037 => "follows from the CPUs of process 1 (boot.tuned.non_isolcpus)",
    };
    Proposal::not(WhyLeftOut::ByAnother, text)
}

fn drop_in() -> Target {
    Target::OwnedFile { path: DROP_IN.to_owned() }
}

/// The text of the drop-in.
fn manager(house: &str) -> String {
    format!(
        "# Written by lowlat; changes are lost when it applies a plan.\n[Manager]\nCPUAffinity=\nCPUAffinity={house}\n"
    )
}

/// A drop-in of systemd's manager. It is read after all others, because later masks are added to earlier ones.
const DROP_IN: &str = "/etc/systemd/system.conf.d/zz-lowlat.conf";

/// Keeps processes that request no CPUs on the housekeeping CPUs: those that run now, and, with CPUAffinity= of systemd's
/// manager, those of later boots. The boot parameter does the same in an initial RAM disk that TuneD built.
pub fn to_housekeeping(context: &Context<'_>, setting: &Setting) -> Proposal {
    let house = context.allocation.housekeeping.to_list();
    let before = context.host.tasks.first_process_cpus.clone().map(|cpus| cpus.to_list());
    let proposal = boot::parameter(context, setting);
    let is_overridden = gives_isolated(context).iter().any(|found| found.line.is_none());
    let proposal = if is_overridden { proposal.without_token(PARAMETER) } else { proposal };
    proposal.step_at(Moment::AtBoot, drop_in(), Reading::Absent, manager(&house)).step(
        Target::UserProcesses,
        before,
        house,
    )
}
