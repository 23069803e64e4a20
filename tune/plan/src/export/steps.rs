//! The ten steps of the guide's script (section 4.3.3.1.2), each made safe, and other changes of the plan.

use super::brief::Brief;
use super::sysctl::SysctlKeys;
use super::text::{item, note, shell_word};
use super::verbs::{Calls, Section, lines, mask, value};
use lowlat_host::CpuSet;
use lowlat_settings::change::Target;

/// A step: its number in the guide, its title, and the body of its shell function.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: usize,
    pub(super) title: &'static str,
    /// Comment above the function: the differences from the guide, and why.
    pub(super) note: String,
    pub(super) body: String,
}

/// All steps in their order.
pub(super) fn steps(brief: &Brief<'_>) -> Vec<Step> {
    let built: [(&'static str, (String, String)); 10] = [
        ("Sysctls", sysctls(brief)),
        ("TuneD's profile", tuned(brief)),
        ("Write-back and unbound work", workqueues(brief)),
        ("Governor", governor()),
        ("CPUs off and on", off_and_on(brief)),
        ("Packet filter", packet_filter(brief)),
        ("RCU threads", rcu(brief)),
        ("Interrupts", interrupts(brief)),
        ("kswapd", kswapd(brief)),
        ("Services", services(brief)),
    ];
    let step = |(number, (title, (note, body)))| Step { number, title, note, body };
    let mut steps: Vec<Step> = built.into_iter().enumerate().map(step).collect();
    let (note, body) = rest(brief, &steps);
    steps.push(Step { number: steps.len(), title: "Other values of the plan", note, body });
    steps
}

fn sysctls(brief: &Brief<'_>) -> (String, String) {
    let note = "Written one by one instead of with sysctl -p, so a removed key does not hide the others, and each \
         old value is saved. Keys that moved to debugfs are set there.";
    let keys = SysctlKeys::of(brief);
    let of_sysctl = keys.set.iter().map(|key| value(&key.path, &key.value));
    let moved = brief.plan.changes.iter().filter_map(|change| match &change.target {
        Target::File { path } if path.starts_with("/sys/kernel/debug/") => Some(value(path, &change.after)),
        _ => None,
    });
    (note.to_owned(), lines(of_sysctl.chain(moved)))
}

fn tuned(brief: &Brief<'_>) -> (String, String) {
    let note = "Checked, not switched: TuneD rolls the old profile back when it switches, including boot \
         parameters, which should not happen at each boot. `lowlat tune export --format tuned` writes the profile.";
    let wanted = if brief.is_guide() { "HPELowLatency" } else { "" };
    (note.to_owned(), format!("    check_tuned {}\n", shell_word(wanted)))
}

fn workqueues(brief: &Brief<'_>) -> (String, String) {
    let house = brief.housekeeping().to_list();
    let host = brief.context.host;
    let numa = "/sys/bus/workqueue/devices/writeback/numa";
    let mut calls = Vec::new();
    if brief.is_guide() && host.file(numa).is_known() {
        calls.push(value(numa, "0"));
    }
    if host.tasks.workqueues.iter().any(|queue| queue.name == "writeback") {
        calls.push(mask("/sys/devices/virtual/workqueue/writeback/cpumask", &house));
    }
    if host.tasks.workqueue_cpus.is_known() {
        calls.push(mask("/sys/devices/virtual/workqueue/cpumask", &house));
    }
    ("The mask of all unbound work is set too, not only that of write-back.".to_owned(), lines(calls))
}

fn governor() -> (String, String) {
    let note = "Every CPU with a governor, whatever its number.";
    (note.to_owned(), "    governors performance\n".to_owned())
}

fn off_and_on(brief: &Brief<'_>) -> (String, String) {
    let id = "sysfs.cpu.online_cycle";
    let what = "Taking CPUs offline and online moves timers and work away from them. isolcpus=managed_irq,domain \
         and irqaffinity= on the command line keep these CPUs free from the start.";
    if !brief.context.role.accepts(id) {
        return refused(brief, id, what);
    }
    let note = "One CPU at a time, and only once until the service is stopped. The guide takes all of them offline \
         together, with numbers computed for two sockets. Nothing to roll back.";
    (note.to_owned(), format!("    cycle_cpus {}\n", shell_word(&brief.isolated().to_list())))
}

fn packet_filter(brief: &Brief<'_>) -> (String, String) {
    let id = "service.netfilter";
    let what =
        "The host keeps its packet filter. Rules that exclude the trading interfaces cost them nothing.";
    if !brief.context.role.accepts(id) {
        return refused(brief, id, what);
    }
    let note = "The rules are saved before they are flushed, and restored when this service is stopped. A filter \
         with policy DROP is not flushed, because that would block all connections. Modules stay loaded: without rules they see no packets.";
    (note.to_owned(), "    flush_filter iptables\n    flush_filter ip6tables\n".to_owned())
}

/// A step that is left out, with the ID of its risk.
fn refused(brief: &Brief<'_>, id: &str, what: &str) -> (String, String) {
    let risk = brief.context.catalogue.find(id).map_or("", |setting| setting.risk.word());
    let why = brief
        .why_left_out(id)
        .map(|left| left.text.clone())
        .or_else(|| brief.context.catalogue.find(id).map(|setting| setting.cost.to_owned()))
        .unwrap_or_default();
    let note =
        format!("Left out ({id}, risk: {risk}): {why} {what} Export with --accept-risk {id} to include it.");
    (note, "    :\n".to_owned())
}

fn rcu(brief: &Brief<'_>) -> (String, String) {
    let note = "By names of kernel threads, because `pgrep rcu` matches programs too. Threads that the kernel has \
         bound to a CPU cannot be moved and are skipped.";
    let house = shell_word(&brief.housekeeping().to_list());
    (note.to_owned(), format!("    any_thread 'rcu*' {house}\n"))
}

fn interrupts(brief: &Brief<'_>) -> (String, String) {
    let note = "Includes the default for new interrupts. Interrupts that the kernel manages return EIO and are \
         counted separately; isolcpus=managed_irq keeps them off. irqbalance must be configured too, or it moves interrupts back.";
    let house = brief.housekeeping().to_list();
    let calls = [
        mask("/proc/irq/default_smp_affinity", &house),
        format!("all_irqs {}", shell_word(&house)),
        format!("check_irqbalance {}", shell_word(&brief.isolated().to_list())),
    ];
    (note.to_owned(), lines(calls))
}

fn kswapd(brief: &Brief<'_>) -> (String, String) {
    let note = "Each on the housekeeping CPUs of its node, if the node has any; the guide lets all of them run on any CPU.";
    let house = brief.housekeeping();
    let calls = brief.context.host.topology.nodes.iter().map(|node| {
        let local: CpuSet = node.cpus.intersection(house);
        let cpus = if local.is_empty() { house.to_list() } else { local.to_list() };
        format!("any_thread kswapd{} {}", node.id, shell_word(&cpus))
    });
    (note.to_owned(), lines(calls))
}

/// Services of the plan; those with a risk that is not accepted as a comment.
fn services(brief: &Brief<'_>) -> (String, String) {
    let mut note =
        "Services that run on this host and are not needed. TuneD is never stopped, because it would \
         roll everything back. The services start again when this service is stopped."
            .to_owned();
    let left = brief.plan.left_out.iter().filter(|left| {
        left.layer == "service" && matches!(left.why, lowlat_settings::change::WhyLeftOut::NotAccepted(_))
    });
    let left: Vec<&str> = left.map(|left| left.setting.as_str()).collect();
    if !left.is_empty() {
        note += &format!(" Left running because the risk is not accepted: {}.", left.join(", "));
    }
    let calls = brief.plan.changes.iter().filter_map(|change| match &change.target {
        Target::Service { unit } => Some(format!("service {} ''", shell_word(unit))),
        _ => None,
    });
    (note, lines(calls))
}

/// Changes that the guide's script does not make.
fn rest(brief: &Brief<'_>, steps: &[Step]) -> (String, String) {
    let is_done =
        |call: &str| steps.iter().any(|step| step.body.lines().any(|line| line.trim_start() == call));
    let calls = Calls::of(brief).without(is_done);
    let sections = [Section::Values, Section::HugePages, Section::Interfaces, Section::Policies];
    ("Not part of the guide's script.".to_owned(), calls.body(|section| sections.contains(&section)))
}

/// The functions of all steps.
pub(super) fn functions(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        text += &format!("\n# Step {}: {}.\n", step.number, step.title);
        text += &note(&step.note);
        text += &format!("step_{}() {{\n", step.number);
        text += &format!("    section {}\n", shell_word(&format!("Step {}: {}", step.number, step.title)));
        text += &step.body;
        text += "}\n";
    }
    text
}

/// The steps, one line each, for the README.
pub(super) fn table(steps: &[Step]) -> String {
    steps.iter().map(|step| item("", &format!("{:>2}  {}: {}", step.number, step.title, step.note))).collect()
}

/// The function that runs every step.
pub(super) fn run_all(steps: &[Step]) -> String {
    let calls = lines(steps.iter().map(|step| format!("step_{}", step.number)));
    format!("\nall_steps() {{\n{calls}}}\n\n")
}
