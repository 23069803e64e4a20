//! Judges each request of a file.

use super::{Effect, Import, Judged, Request, TuningTool, Wishes, Wrong};
use crate::merge;
use lowlat_host::{CpuSet, HostSnapshot, Reading, snapshot::SchedPolicy};
use lowlat_settings::{Context, Finding, Layer, Verdict, audit::Audit, change::Target};

/// A value that no setting wants and no judge understands: what changes with it depends on the target.
const NONSENSE: &str = "lowlat-nonsense";

/// Judges what a file asks for, each request alone, on a host with a role.
pub fn judge(tool: TuningTool, wishes: Wishes, context: &Context<'_>) -> Import {
    let mut then = context.host.clone();
    let now = Audit::of(context);
    let mut requests = Vec::new();
    for request in &wishes.requests {
        put(request, &request.value, &mut then);
        requests.push(judged(request, context, &now));
    }
    let then = Context { host: &then, ..*context };
    let faults_then =
        Audit::of(&then).faults().filter(|finding| !awaits_reboot(finding, &then, &now)).count();
    Import {
        document: Import::DOCUMENT.to_owned(),
        schema_version: Import::SCHEMA_VERSION,
        tool,
        requests,
        unread: wishes.unread,
        faults_now: now.faults().count(),
        faults_then,
    }
}

/// True if a reboot would correct a boot parameter: the kernel accepts the value but has not started with it. If the
/// running kernel started with the same value, another reboot would not help.
fn awaits_reboot(finding: &Finding, then: &Context<'_>, now: &Audit) -> bool {
    let is_new = !now.findings.iter().any(|now| {
        now.id == finding.id && now.verdict == finding.verdict && now.observed == finding.observed
    });
    let can_wait = || {
        then.catalogue
            .find(&finding.id)
            .is_some_and(|row| lowlat_settings::judgement(then, row).can_await_reboot)
    };
    finding.layer == Layer::Boot && finding.verdict == Verdict::Ineffective && is_new && can_wait()
}

fn judged(request: &Request, context: &Context<'_>, now: &Audit) -> Judged {
    let host_with = |value: &str| {
        let mut host = context.host.clone();
        put(request, value, &mut host);
        host
    };
    let (host, other_host) = (host_with(&request.value), host_with(NONSENSE));
    let then_context = Context { host: &host, ..*context };
    let then = Audit::of(&then_context);
    let otherwise = Audit::of(&Context { host: &other_host, ..*context });
    let is_boot = matches!(request.targets.first(), Some(Target::CommandLine { .. }));
    let depend: Vec<&Finding> = then
        .findings
        .iter()
        .filter(|finding| {
            let other = otherwise.findings.iter().find(|other| other.id == finding.id);
            other
                .is_some_and(|other| (other.verdict, &other.observed) != (finding.verdict, &finding.observed))
                && finding.verdict != Verdict::NotApplicable
                // Its rows summarize others.
                && finding.layer != Layer::Readiness
        })
        .collect();
    let wrong: Vec<Wrong> = depend
        .iter()
        .filter(|finding| finding.verdict.is_fault())
        .filter(|finding| !(is_boot && awaits_reboot(finding, &then_context, now)))
        .map(|finding| Wrong { id: finding.id.clone(), wanted: finding.wanted.clone() })
        .collect();
    let effect = if !wrong.is_empty() {
        Effect::Differs { settings: wrong }
    } else if depend.is_empty() {
        Effect::Unjudged
    } else {
        Effect::Agrees { settings: depend.iter().map(|finding| finding.id.clone()).collect() }
    };
    let present = present(request, context.host);
    Judged {
        place: request.place.clone(),
        target: name(request),
        value: request.value.clone(),
        is_present: is_present(request, context.host),
        present,
        effect,
    }
}

/// Name of what a request sets: "vm.swappiness", "16 files like /sys/...".
fn name(request: &Request) -> String {
    let first = request.targets.first().map(|target| match target {
        Target::CommandLine { tokens } => {
            tokens.first().map_or_else(String::new, |token| format!("{} on the command line", token.name))
        }
        target => target.kind().facts().name,
    });
    let first = first.unwrap_or_default();
    match request.targets.len() {
        0 | 1 => first,
        many => format!("{first} and {} more", many - 1),
    }
}

fn put(request: &Request, value: &str, host: &mut HostSnapshot) {
    for target in &request.targets {
        match target {
            Target::CommandLine { tokens } => {
                let Reading::Known(line) = &host.kernel.command_line else { continue };
                let mut tokens = tokens.clone();
                if value == NONSENSE {
                    for token in &mut tokens {
                        token.value = Some(NONSENSE.to_owned());
                    }
                }
                let merged = merge(line, &tokens);
                host.kernel.command_line = Reading::Known(lowlat_host::cmdline::CommandLine::parse(&merged));
            }
            Target::FileKey { path, .. } if path.ends_with("/irqbalance") => {
                let irqbalance = &mut host.services.irqbalance;
                irqbalance.banned_cpus =
                    CpuSet::parse_list(value).map_or_else(|_| Reading::Denied, Reading::Known);
            }
            Target::KernelThreadScheduling { pid, .. } => {
                let (policy, priority) = value.split_once(' ').unwrap_or((value, "0"));
                for thread in host.tasks.kernel_threads.iter_mut().filter(|thread| thread.pid == *pid) {
                    thread.policy = SchedPolicy::from_name(policy).unwrap_or(SchedPolicy::Unknown);
                    thread.rt_priority = priority.parse().unwrap_or(0);
                }
            }
            // The kernel shows several numbers with tabs between them.
            target @ Target::Sysctl { .. } => target.kind().put(host, &value.replace(' ', "\t")),
            target => target.kind().put(host, value),
        }
    }
}

/// The present value of a request's targets; several values are joined.
fn present(request: &Request, host: &HostSnapshot) -> Reading<String> {
    let mut known: Vec<String> = Vec::new();
    let mut other = Reading::Absent;
    for target in &request.targets {
        let reading = match target {
            Target::CommandLine { tokens } => {
                on_the_line(tokens.first().map_or("", |token| &token.name), host)
            }
            target => target.kind().present(host),
        };
        match reading {
            Reading::Known(value) if !known.contains(&value) => known.push(value),
            Reading::Known(_) => {}
            reading => other = reading,
        }
    }
    if known.is_empty() { other } else { Reading::Known(known.join(", ")) }
}

fn on_the_line(name: &str, host: &HostSnapshot) -> Reading<String> {
    let line = match &host.kernel.command_line {
        Reading::Known(line) => line,
        other => return other.as_ref().map(|_| String::new()),
    };
    let words: Vec<String> = line
        .all(name)
        .map(|value| value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}")))
        .collect();
    if words.is_empty() { Reading::Absent } else { Reading::Known(words.join(" ")) }
}

fn is_present(request: &Request, host: &HostSnapshot) -> bool {
    request.targets.iter().all(|target| match target {
        Target::CommandLine { tokens } => {
            let name = tokens.first().map_or("", |token| &token.name);
            let is_removed = tokens.first().is_some_and(|token| token.value.is_none());
            match on_the_line(name, host) {
                Reading::Known(now) => !is_removed && now == request.value,
                _ => is_removed,
            }
        }
        target => {
            let kind = target.kind();
            kind.present(host).known().is_some_and(|now| kind.is_same(now, &request.value))
        }
    })
}
