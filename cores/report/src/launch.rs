//! A launch as terminal text: what is set before a command starts, and what became of it.

use anstyle::Style;
use lowlat_host::{
    HostSnapshot,
    snapshot::SchedPolicy,
    topology::{Group, Topology},
};
use lowlat_launch::{Launch, MemoryPolicy, Mode};
use lowlat_text::text::{BOLD, YELLOW, paint, wrap};
use lowlat_text::units::clean;

/// Returns what a launch sets, with its warnings. `of_launcher` are the variables that the accelerator's launcher sets.
pub fn launch_text(
    launch: &Launch,
    host: &HostSnapshot,
    of_launcher: &[(String, String)],
    width: usize,
) -> String {
    let all = launch.all_cpus();
    let isolation = match all.difference(&host.cpus_isolated()).len() {
        0 => "isolated",
        open if open == all.len() => "not isolated",
        _ => "partly isolated",
    };
    let copies = launch.copies.map_or_else(String::new, |count| match count.get() {
        1 => "1 copy on ".to_owned(),
        count => format!("{count} copies on "),
    });
    let mut parts = vec![format!("{copies}{all:#} ({isolation})")];
    parts.extend(per_cluster(launch, &host.topology));
    parts.push(match launch.mode {
        Mode::Spin => "spin".to_owned(),
        Mode::Interrupt => "wait for interrupts".to_owned(),
    });
    parts.extend(launch.policy.map(|(policy, priority)| scheduling(policy, priority)));
    match launch.memory {
        MemoryPolicy::Inherited => {}
        MemoryPolicy::Local => parts.push("memory of each thread's node".to_owned()),
        MemoryPolicy::Node(node) => parts.push(format!("memory of node {node}")),
    }
    if launch.is_awake {
        parts.push("idle states off".to_owned());
    }
    let mut out = String::new();
    let head = if copies.is_empty() { "Run on " } else { "Run " };
    add(&mut out, (BOLD, head), &parts.join(", "), width);
    if let Some(accelerator) = &launch.accelerator {
        let mut words = launch.launcher.clone();
        let variables = of_launcher.iter().chain(&launch.environment);
        words.extend(variables.map(|(name, value)| format!("{name}={value}")));
        add(&mut out, (BOLD, &format!("{}: ", accelerator.name())), &words.join(" "), width);
    }
    for warning in &launch.warnings {
        add(&mut out, (YELLOW, "warning: "), warning, width);
    }
    out
}

/// Returns "at most 2 to a cluster"; `None` unless copies run on a host with clusters.
fn per_cluster(launch: &Launch, topology: &Topology) -> Option<String> {
    launch.copies?;
    let copies = launch.processes();
    let on = |group: &Group| copies.iter().flatten().filter(|cpu| group.cpus.contains(**cpu)).count();
    let most = topology.clusters.iter().map(on).max()?;
    Some(format!("at most {most} to a cluster"))
}

fn scheduling(policy: SchedPolicy, priority: u32) -> String {
    if priority == 0 { policy.name().to_owned() } else { format!("{} {priority}", policy.name()) }
}

fn add(out: &mut String, (style, title): (Style, &str), text: &str, width: usize) {
    let lines = wrap(&clean(text), width.saturating_sub(title.len()));
    for (at, line) in lines.iter().enumerate() {
        let start = if at == 0 { paint(style, title) } else { " ".repeat(title.len()) };
        out.push_str(&format!("{start}{line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_cluster() {
        let mut host = HostSnapshot::default();
        host.topology.clusters =
            [0, 4].map(|first| Group { id: 0, cpus: (first..first + 4).collect() }).into();
        let mut launch =
            Launch { cpus: vec![0, 4, 1], copies: std::num::NonZeroU32::new(3), ..Launch::default() };
        let text =
            |launch: &Launch| anstream::adapter::strip_str(&launch_text(launch, &host, &[], 80)).to_string();
        assert_eq!(
            text(&launch),
            "Run 3 copies on CPUs 0-1,4 (not isolated), at most 2 to a cluster, spin\n"
        );
        launch.copies = None;
        assert_eq!(text(&launch), "Run on CPUs 0-1,4 (not isolated), spin\n");
    }
}
