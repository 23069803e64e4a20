//! What the judges say of each request.

use super::{Effect, Import, Judged, Request, Tool, Wishes, Wrong};
use crate::merge;
use lowlat_host::{HostSnapshot, Reading};
use lowlat_settings::{Context, Finding, Layer, Verdict, audit::Audit, change::Target};

/// A value that no setting wants and no judge understands: what changes with it depends on the target.
const NONSENSE: &str = "lowlat-nonsense";

/// Judges what a file asks for, each request alone, on a host with a role.
pub fn judge(tool: Tool, wishes: Wishes, context: &Context<'_>) -> Import {
    let mut then = context.host.clone();
    let mut requests = Vec::new();
    for request in &wishes.requests {
        put(request, &request.value, &mut then);
        requests.push(judged(request, context));
    }
    Import {
        document: Import::DOCUMENT.to_owned(),
        schema_version: Import::SCHEMA_VERSION,
        tool,
        requests,
        unread: wishes.unread,
        faults_now: Audit::of(context).faults().count(),
        faults_then: audit(context, &then).findings.iter().filter(|finding| is_fault(finding, true)).count(),
    }
}

fn audit(context: &Context<'_>, host: &HostSnapshot) -> Audit {
    Audit::of(&Context { host, ..*context })
}

/// Whether a setting stays a fault. A parameter that is on the command line, and not in effect yet, waits for a reboot.
fn is_fault(finding: &Finding, waits: bool) -> bool {
    finding.verdict.is_fault() && !(waits && finding.verdict == Verdict::Ineffective)
}

fn judged(request: &Request, context: &Context<'_>) -> Judged {
    let with = |value: &str| {
        let mut host = context.host.clone();
        put(request, value, &mut host);
        audit(context, &host)
    };
    let (then, otherwise) = (with(&request.value), with(NONSENSE));
    let is_boot = matches!(request.targets.first(), Some(Target::CommandLine { .. }));
    let depend: Vec<&Finding> = then
        .findings
        .iter()
        .filter(|finding| {
            let other = otherwise.findings.iter().find(|other| other.id == finding.id);
            other
                .is_some_and(|other| (other.verdict, &other.observed) != (finding.verdict, &finding.observed))
                && finding.verdict != Verdict::NotApplicable
                // Its rows sum up others.
                && finding.layer != Layer::Readiness
        })
        .collect();
    let wrong: Vec<Wrong> = depend
        .iter()
        .filter(|finding| is_fault(finding, is_boot))
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
        target => target.kind().name(),
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
