//! Other tracers on the host: each costs time on every CPU it traces, and that time shows up as interruptions.

use super::Tracefs;

/// Instances that are looked at at most.
const INSTANCES_MAX: usize = 256;

/// What else is tracing on this host, one phrase each: `top level: tracer "function" is on`. The instance `own` is not
/// looked at.
pub(super) fn other_tracers(tracefs: &Tracefs, own: &str) -> Vec<String> {
    let mut facts = activity(tracefs, "", "top level");
    for name in tracefs.list("instances").iter().filter(|name| *name != own).take(INSTANCES_MAX) {
        facts.extend(activity(tracefs, &format!("instances/{name}/"), &format!("instance \"{name}\"")));
    }
    facts
}

/// What one trace does: its tracer, its events. One that is switched off (`tracing_on`) still costs time when its
/// events or its tracer are on, since their code is reached all the same.
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
            more => format!("{label}: {} events are on, {first} the first", more + 1),
        };
        facts.push(facts_of);
    }
    facts
}
