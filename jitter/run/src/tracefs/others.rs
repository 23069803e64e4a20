//! Other tracers on the host. Each takes time on every CPU that it traces, which appears as interruptions.

use super::Tracefs;

/// Maximum number of instances inspected.
const INSTANCES_MAX: usize = 256;

/// Lists the other traces that are active on this host, one phrase each: `top level: tracer "function" is on`. Ignores
/// the instance `own`.
pub(super) fn other_tracers(tracefs: &Tracefs, own: &str) -> Vec<String> {
    let mut facts = activity(tracefs, "", "top level");
    for name in tracefs.list("instances").iter().filter(|name| *name != own).take(INSTANCES_MAX) {
        facts.extend(activity(tracefs, &format!("instances/{name}/"), &format!("instance \"{name}\"")));
    }
    facts
}

/// Describes one trace by its tracer and events. A trace that is switched off (`tracing_on`) still costs time if its
/// events or tracer are on, because their code still runs.
fn activity(tracefs: &Tracefs, prefix: &str, label: &str) -> Vec<String> {
    let text = |file: &str| tracefs.text(&format!("{prefix}{file}")).unwrap_or_default();
    let mut facts = Vec::new();
    let tracer = text("current_tracer");
    if !matches!(tracer.as_str(), "" | "nop") {
        facts.push(format!("{label}: tracer \"{tracer}\" is on"));
    }
    let events = text("set_event");
    let mut names = events.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if let Some(first) = names.next() {
        let facts_of = match names.count() {
            0 => format!("{label}: event {first} is on"),
            more => format!("{label}: {} events are on, starting with {first}", more + 1),
        };
        facts.push(facts_of);
    }
    facts
}
