//! The head of the page: what host, and the verdict.

use super::{facts, micro};
use crate::figures::{Longest, ROUGH_BELOW};
use crate::grouping::Tally;
use crate::host_line;
use crate::terminal::summary::longest_sentence;
use crate::units::{clean, duration, percent, plural, rate, span};
use lowlat_model::catalogue::Verdict;
use lowlat_model::jitter::{JitterCpu, JitterRecord};
use lowlat_model::result::ResultDocument;
use lowlat_model::snapshot::OriginKind;
use lowlat_model::statistics::RateInterval;
use maud::{Markup, html};

/// Host, score, one-sentence verdict, tiles.
pub fn section(document: &ResultDocument) -> Markup {
    let (title, cpus) = host_line::title_and_cpus(&document.snapshot);
    let tally = Tally::of(&document.audit);
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            div class="hero-top" {
                div {
                    p class="eyebrow" { "Low-latency assessment, profile " (document.audit.profile.name()) }
                    h1 id="summary-title" { (clean(&title)) }
                    p class="sub" { (clean(&cpus.replace(" x ", " × "))) }
                    (host_facts(document))
                }
                (score(document))
            }
            (verdict(document, tally))
            (tiles(document, tally))
        }
    }
}

fn host_facts(document: &ResultDocument) -> Markup {
    let kernel = &document.snapshot.kernel;
    let origin = &document.snapshot.origin;
    let source = match (origin.kind, origin.is_privileged) {
        (OriginKind::Live, true) => "this host, live, as root".to_owned(),
        (OriginKind::Live, false) => "this host, live, without root".to_owned(),
        (OriginKind::Directory, _) => format!("tree {}", origin.label),
        (OriginKind::Capture, _) => format!("capture {}", origin.label),
    };
    let known = |reading: &lowlat_model::Reading<String>| {
        if reading.is_absent() { "not known".to_owned() } else { reading.to_string() }
    };
    facts([
        ("Kernel", known(&kernel.release)),
        ("Distribution", known(&kernel.distribution)),
        ("Begun", document.started_at.replace('T', " ").replace('Z', " UTC")),
        ("Read from", source),
        ("lowlat", document.lowlat_version.clone()),
    ])
}

/// The circumference of a circle of radius 54.
const AROUND: f64 = std::f64::consts::TAU * 54.0;

/// The ring: the part of the weight that is as wanted.
fn score(document: &ResultDocument) -> Markup {
    let percent = document.audit.score.percent;
    let done = f64::from(percent.unwrap_or(0).min(100)) / 100.0 * AROUND;
    let text = percent.map_or_else(|| "–".to_owned(), |percent| percent.to_string());
    let label = percent.map_or_else(|| "no score".to_owned(), |percent| format!("score {percent} of 100"));
    html! {
        figure class="score" {
            svg viewBox="0 0 128 128" role="img" aria-label=(label) {
                circle class={ "ring-rest" @if percent.is_none() { " none" } } cx="64" cy="64" r="54" {}
                @if done > 0.0 {
                    circle class="ring-done" cx="64" cy="64" r="54" transform="rotate(-90 64 64)"
                        stroke-dasharray={ (format!("{done:.1} {AROUND:.1}")) } {}
                }
                text class="ring-text" x="64" y="74" text-anchor="middle" { (text) }
                text class="ring-unit" x="64" y="93" text-anchor="middle" { @if percent.is_some() { "of 100" } @else { "no score" } }
            }
        }
    }
}

fn verdict(document: &ResultDocument, tally: Tally) -> Markup {
    let longest = document.jitter.as_ref().map(|jitter| micro(&longest_sentence(document, jitter)));
    html! {
        p class="verdict" {
            (tally.sentence(&document.audit))
            @if let Some(longest) = longest { " " (longest) }
        }
        @if document.is_interrupted {
            p class="note" { "The run was cut short; the page shows what was measured until then." }
        }
        @if !document.audit.findings.is_empty() { (verdict_bar(document)) }
    }
}

/// A bar of verdicts with a legend that carries the counts.
fn verdict_bar(document: &ResultDocument) -> Markup {
    let score = &document.audit.score;
    let counts: Vec<(Verdict, usize)> = Verdict::WORST_FIRST
        .into_iter()
        .map(|verdict| (verdict, score.count(verdict)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let starts = counts.iter().scan(0, |sum, (_, count)| {
        let start = *sum;
        *sum += count;
        Some(start)
    });
    html! {
        div class="verdicts" {
            svg class="verdict-bar" viewBox={ "0 0 " (total.max(1)) " 1" } preserveAspectRatio="none" aria-hidden="true" {
                @for ((verdict, count), start) in counts.iter().zip(starts) {
                    rect class={ "v-" (class(*verdict)) } x=(start) y="0" width=(count) height="1" {}
                }
            }
            ul class="legend" {
                @for (verdict, count) in &counts {
                    li { span class={ "dot v-" (class(*verdict)) } {} b { (count) } " " (verdict.word()) }
                }
            }
        }
    }
}

/// The name of a verdict's colour.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotApplicable => "na",
        other => other.word(),
    }
}

fn tiles(document: &ResultDocument, tally: Tally) -> Markup {
    let allocation = &document.allocation;
    let in_force = &document.snapshot.topology.isolated;
    let in_force = match in_force.known() {
        Some(cpus) if !cpus.is_empty() => format!("the kernel isolates {cpus} now"),
        Some(_) => "the kernel isolates none now".to_owned(),
        None => "what the kernel isolates is not known".to_owned(),
    };
    html! {
        div class="tiles" {
            (faults_tile(tally))
            (tile("Not known", &tally.unknown.to_string(), "settings that could not be judged; they do not count"))
            (longest_tile(document))
            (rate_tile(document))
            (tile("Chosen for isolation", &plural(allocation.isolated.len(), "CPU"),
                &format!("{} for housekeeping; {in_force}", allocation.housekeeping.len())))
        }
    }
}

fn faults_tile(tally: Tally) -> Markup {
    let of = plural(tally.counting, "judged setting");
    match (tally.counting, tally.faults, tally.reboots) {
        (0, ..) => tile("To change", "–", "no setting was judged"),
        (_, 0, _) => tile("To change", "0", &format!("of {of}")),
        (_, faults, 0) => tile("To change", &faults.to_string(), &format!("of {of}, none with a reboot")),
        (_, faults, reboots) => {
            tile("To change", &faults.to_string(), &format!("of {of}, {reboots} with a reboot"))
        }
    }
}

fn tile(label: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="tile" {
            p class="tile-label" { (label) }
            p class="tile-value" { (value) }
            p class="tile-note" { (micro(note)) }
        }
    }
}

fn longest_tile(document: &ResultDocument) -> Markup {
    let Some(jitter) = &document.jitter else {
        return tile("Longest interruption", "–", "jitter was not measured");
    };
    let run = span(jitter.duration_ns);
    match Longest::of(jitter, &document.allocation) {
        Some(Longest { length_ns: Some(ns), cpu, is_isolated }) => {
            let place = if is_isolated { "the CPUs chosen for isolation" } else { "all measured CPUs" };
            tile(
                "Longest interruption",
                &micro(&duration(ns)),
                &format!("on CPU {cpu}, of {place}, in {run}"),
            )
        }
        Some(_) => tile("Longest interruption", "none", &format!("in {run}")),
        None => tile("Longest interruption", "–", "no CPU was measured"),
    }
}

/// The sums over the CPUs meant for trading, or over all when none of those was measured.
struct Quiet {
    rate: RateInterval,
    interruptions: u64,
    lost_percent: f64,
    cpus: usize,
}

/// Interruptions a second on the CPUs meant for trading, each counted for itself.
fn rate_tile(document: &ResultDocument) -> Markup {
    let label = "Interruptions per second";
    let Some(quiet) = document.jitter.as_ref().and_then(|jitter| quiet(document, jitter)) else {
        return tile(label, "–", "jitter was not measured");
    };
    let interval = if quiet.interruptions < ROUGH_BELOW {
        format!(" (95 % interval {} to {})", rate(quiet.rate.per_s_low), rate(quiet.rate.per_s_high))
    } else {
        String::new()
    };
    let cpus =
        if quiet.cpus == 1 { "on one CPU".to_owned() } else { format!("on each of {} CPUs", quiet.cpus) };
    let lost = percent(quiet.lost_percent);
    tile(label, &rate(quiet.rate.per_s), &format!("{cpus}{interval}; {lost} of the time"))
}

fn quiet(document: &ResultDocument, jitter: &JitterRecord) -> Option<Quiet> {
    let is_isolated = |cpu: &&JitterCpu| document.allocation.isolated.contains(cpu.cpu);
    let has_isolated = jitter.cpus.iter().any(|cpu| is_isolated(&cpu));
    let chosen: Vec<&JitterCpu> =
        jitter.cpus.iter().filter(|cpu| !has_isolated || is_isolated(cpu)).collect();
    let sum = |of: fn(&JitterCpu) -> u64| chosen.iter().fold(0u64, |sum, cpu| sum.saturating_add(of(cpu)));
    let runtime_s = sum(|cpu| cpu.runtime_ns) as f64 / 1e9;
    let interruptions = sum(|cpu| cpu.interruption_count);
    Some(Quiet {
        rate: RateInterval::of(interruptions, runtime_s)?,
        interruptions,
        lost_percent: sum(|cpu| cpu.interruption_ns_total) as f64 / 1e7 / runtime_s,
        cpus: chosen.len(),
    })
}
