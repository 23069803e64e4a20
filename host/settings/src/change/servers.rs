//! The scheduler's deadline servers, and the limit under which kernels refuse to change them.

use super::{Proposal, Target, sysctl};
use crate::{Context, Setting};
use lowlat_host::{CpuId, HostSnapshot, Reading};

/// The sysctl of the limit. Since Linux 6.12 it limits what deadline servers and threads may reserve, and without
/// CONFIG_RT_GROUP_SCHED nothing else.
pub const LIMIT: &str = "kernel.sched_rt_runtime_us";
/// The period of which the limit is a part.
pub const PERIOD: &str = "kernel.sched_rt_period_us";
/// The limit's value for "no limit".
const UNLIMITED: &str = "-1";
/// The kernel's default period, used if the host's is unknown.
const PERIOD_US: i64 = 1_000_000;

/// The path of a server's runtime. `server` is "fair_server" or "ext_server".
pub fn runtime_path(server: &str, cpu: CpuId) -> String {
    format!("/sys/kernel/debug/sched/{server}/cpu{cpu}/runtime")
}

/// True if a value of the limit means "no limit": -1, or the whole period (the default since Linux 7.2).
pub fn is_unlimited(host: &HostSnapshot, limit: &str) -> bool {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let period_us = number(host.sysctl(PERIOD).text()).unwrap_or(PERIOD_US);
    number(limit).is_some_and(|limit_us| limit_us < 0 || limit_us >= period_us)
}

/// True if the host is known to have a limit.
pub fn is_limited(host: &HostSnapshot) -> bool {
    host.sysctl(LIMIT).known().is_some_and(|limit| !is_unlimited(host, limit))
}

/// Switches a server off on each isolated CPU. Linux 6.12 rejects every write while there is a limit, so the limit is
/// removed first.
pub fn off(context: &Context<'_>, server: &str) -> Proposal {
    let on = servers_on(context, server);
    let mut proposal = Proposal::default();
    if !on.is_empty() && is_limited(context.host) {
        let limit = Target::Sysctl { key: LIMIT.to_owned() };
        proposal = proposal.step(limit, context.host.sysctl(LIMIT), UNLIMITED);
    }
    on.into_iter().fold(proposal, |proposal, (path, text)| {
        proposal.step(Target::File { path }, Reading::Known(text), "0")
    })
}

/// The fair server of each isolated CPU.
pub fn fair(context: &Context<'_>, _: &Setting) -> Proposal {
    off(context, "fair_server")
}

/// The value that the profile wants for the limit, or no limit if a fair server is to be switched off.
pub fn limit(context: &Context<'_>, setting: &Setting) -> Proposal {
    if is_limited(context.host) && !servers_on(context, "fair_server").is_empty() {
        let target = Target::Sysctl { key: LIMIT.to_owned() };
        return Proposal::default().step(target, context.host.sysctl(LIMIT), UNLIMITED);
    }
    sysctl::key(context, setting)
}

/// The servers of isolated CPUs that have a runtime: path and value.
fn servers_on(context: &Context<'_>, server: &str) -> Vec<(String, String)> {
    let paths = context.allocation.isolated.iter().map(|cpu| runtime_path(server, cpu));
    paths
        .filter_map(|path| match context.host.file(&path) {
            Reading::Known(text) if text.trim() != "0" => Some((path, text)),
            _ => None,
        })
        .collect()
}
