//! Whether a host is still as a plan found it.

use super::Plan;
use lowlat_host::{
    HostSnapshot, Reading,
    cmdline::CommandLine,
    snapshot::{Nic, QueueMask},
};
use lowlat_settings::{
    change::{BootToken, Target},
    judge::chosen_word,
    same_meaning,
};

/// A change whose target is neither as the plan found it nor as the plan wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The change's place in [`Plan::changes`].
    pub change: usize,
    /// What was there when the plan was made.
    pub before: String,
    /// What is there now.
    pub now: String,
}

impl Plan {
    /// The changes whose targets somebody else has changed since the plan was made. Interrupts and threads that are gone
    /// are none of them, and neither is what a snapshot doesn't tell.
    pub fn drift(&self, host: &HostSnapshot) -> Vec<Drift> {
        let mut drift = Vec::new();
        for (at, change) in self.changes.iter().enumerate() {
            if let Target::CommandLine { tokens } = &change.target {
                drift.extend(of_tokens(at, tokens, &host.kernel.tokens()));
                continue;
            }
            let Some(Reading::Known(now)) = present(&change.target, host) else { continue };
            let is_known = [change.before.text(), &change.after].iter().any(|text| same_meaning(text, &now));
            if change.before.is_known() && !is_known {
                drift.push(Drift { change: at, before: change.before.text().to_owned(), now });
            }
        }
        drift
    }
}

/// Whether a command line has the parameter as wanted: every time that it stands there.
pub(super) fn stands(line: &CommandLine, token: &BootToken) -> bool {
    let mut standing = line.all(&token.name).map(Option::unwrap_or_default).peekable();
    match (&token.value, standing.peek().is_some()) {
        (None, is_there) => !is_there,
        (Some(_), false) => false,
        (Some(value), true) => standing.all(|found| same_meaning(found, value)),
    }
}

fn of_tokens(at: usize, tokens: &[BootToken], line: &CommandLine) -> Vec<Drift> {
    let mut drift = Vec::new();
    for token in tokens {
        let now = super::boot_line::standing(line, &token.name);
        if now != token.before && !stands(line, token) {
            let or_none = |text: &Option<String>| {
                text.clone().unwrap_or_else(|| format!("no {} on the command line", token.name))
            };
            drift.push(Drift { change: at, before: or_none(&token.before), now: or_none(&now) });
        }
    }
    drift
}

/// What is there now, in the words of a plan; none where a snapshot doesn't tell.
fn present(target: &Target, host: &HostSnapshot) -> Option<Reading<String>> {
    let list = |cpus: &Reading<lowlat_host::CpuSet>| cpus.clone().map(|cpus| cpus.to_list());
    Some(match target {
        Target::Sysctl { key } => host.sysctl(key),
        Target::File { path } => host.file(path).map(|text| chosen_word(&text).to_owned()),
        Target::HugePages { node, size_bytes } => {
            let pools = &host.memory.huge_pages;
            let pool = pools.iter().find(|pool| pool.node == *node && pool.size_bytes == *size_bytes)?;
            pool.total.clone().map(|count| count.to_string())
        }
        Target::IrqAffinity { irq, actions } => {
            let irqs = &host.interrupts.irqs;
            list(&irqs.iter().find(|found| found.number == *irq && found.actions == *actions)?.affinity)
        }
        Target::DefaultIrqAffinity => list(&host.interrupts.default_affinity),
        Target::KernelThreadAffinity { comm, pid } => {
            let threads = &host.tasks.kernel_threads;
            list(&threads.iter().find(|thread| thread.pid == *pid && thread.comm == *comm)?.cpus_allowed)
        }
        Target::WorkqueueCpus { name: None } => list(&host.tasks.workqueue_cpus),
        Target::WorkqueueCpus { name: Some(name) } => {
            list(&host.tasks.workqueues.iter().find(|queue| queue.name == *name)?.cpus)
        }
        Target::Service { unit } => {
            let found = host.services.units.get(unit)?;
            found.active.clone().map(|active| match found.enablement.text() {
                "" => active,
                enablement => format!("{active}, {enablement}"),
            })
        }
        Target::NicChannels { nic, field } => {
            let channels = nic_of(host, nic)?.channels.clone();
            channels.map(|channels| match field.as_str() {
                "combined" => channels.combined.to_string(),
                _ => channels.rx.to_string(),
            })
        }
        Target::NicFeature { nic, feature } => {
            let is_on = *nic_of(host, nic)?.offloads.known()?.get(feature)?;
            Reading::Known(if is_on { "on" } else { "off" }.to_owned())
        }
        Target::NicRps { nic, queue } => mask_of(&nic_of(host, nic)?.rps, queue)?,
        Target::NicXps { nic, queue } => mask_of(&nic_of(host, nic)?.xps, queue)?,
        _ => return None,
    })
}

fn nic_of<'a>(host: &'a HostSnapshot, name: &str) -> Option<&'a Nic> {
    host.nics.iter().find(|nic| nic.name == name)
}

fn mask_of(masks: &[QueueMask], queue: &str) -> Option<Reading<String>> {
    let mask = masks.iter().find(|mask| mask.queue == queue)?;
    Some(mask.cpus.clone().map(|cpus| cpus.to_list()))
}
