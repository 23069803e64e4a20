//! The head of the page: what host, and the verdict.

use crate::assess::summary::longest_sentence;
use crate::audit::grouping::Tally;
use crate::audit::verdict_class;
use crate::host::line::title_and_cpus;
use crate::jitter::causes::words;
use crate::jitter::causes::words::interval;
use crate::jitter::causes::{label, traced};
use crate::jitter::figures::{Jitter, Longest, Side};
use crate::shared::page::{facts, micro, tile};
use crate::shared::units::{clean, duration, percent, plural, rate, span};
use lowlat_host::snapshot::OriginKind;
use lowlat_jitter::CauseSource;
use lowlat_result::ResultDocument;
use lowlat_settings::Verdict;
use maud::{Markup, html};

/// Host, score, one-sentence verdict, tiles.
pub fn section(document: &ResultDocument, jitter: Option<&Jitter<'_>>) -> Markup {
    let (title, cpus) = title_and_cpus(&document.snapshot);
    let tally = Tally::of(&document.audit);
    let of_jitter = jitter.filter(|_| crate::shared::document::is_of_jitter(document));
    let what = if of_jitter.is_some() { "Interruptions of user threads" } else { "Low-latency assessment" };
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            div class="hero-top" {
                div {
                    p class="eyebrow" { (what) ", profile " (document.audit.profile.name()) }
                    h1 id="summary-title" { (clean(&title)) }
                    p class="sub" { (clean(&cpus.replace(" x ", " × "))) }
                    (host_facts(document))
                }
                @if of_jitter.is_none() { (score(document)) }
            }
            @match of_jitter {
                Some(jitter) => {
                    (jitter_verdict(document, jitter))
                    (jitter_tiles(document, jitter))
                }
                None => {
                    (verdict(document, tally))
                    (tiles(document, tally))
                }
            }
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
    let known = |reading: &lowlat_host::Reading<String>| {
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

/// What the run measured, where the time went, and whether the host was ready for it.
fn jitter_verdict(document: &ResultDocument, jitter: &Jitter<'_>) -> Markup {
    let causes = traced(jitter.record.causes.as_ref()).filter(|_| jitter.study.all.count > 0);
    let open = words::not_ready(&document.readiness);
    html! {
        p class="verdict" {
            (micro(&words::headline(document, jitter.record)))
            @if !document.audit.findings.is_empty() {
                " " a href="#findings" { (Tally::of(&document.audit).sentence(&document.audit)) }
            }
        }
        @if document.is_interrupted {
            p class="note" { "The run was cut short; the page shows what was measured until then." }
        }
        @if !open.is_empty() {
            div class="note" {
                p { b { (words::readiness_title(&document.readiness)) } }
                ul class="sentences" { @for sentence in open { li { (clean(&sentence)) } } }
            }
        }
        @if let Some(causes) = causes {
            div class="verdicts" { (crate::jitter::html::causes::shares_bar(causes)) }
        }
    }
}

/// Five figures of the run.
fn jitter_tiles(document: &ResultDocument, jitter: &Jitter<'_>) -> Markup {
    let record = jitter.record;
    let none_looked = match record.causes.as_ref().map(|causes| causes.source) {
        Some(CauseSource::Counters) => "counts only: no single interruption is attributed",
        _ => "causes were not looked for",
    };
    let (named, named_note) = match &jitter.study.shares {
        Some(_) if jitter.study.all.count == 0 => ("–".to_owned(), "there was no interruption".to_owned()),
        Some(shares) => (
            micro(&percent(shares.named * 100.0)),
            format!(
                "of the interruption time; {} unexplained, {} firmware or hypervisor",
                percent(shares.unexplained * 100.0),
                percent(shares.firmware_or_hypervisor * 100.0)
            ),
        ),
        None => ("–".to_owned(), none_looked.to_owned()),
    };
    let (most, most_note) = match jitter.study.causes.first() {
        Some(first) => (
            micro(&percent(first.share * 100.0)),
            match &first.remedy {
                Some(remedy) if !remedy.setting.is_empty() => {
                    format!("{}; see {}", label(&first.cause), remedy.setting)
                }
                _ => label(&first.cause),
            },
        ),
        None => ("–".to_owned(), none_looked.to_owned()),
    };
    let measured = format!(
        "for {}, gaps of {} or longer, counter {}",
        span(record.ran_ns()),
        duration(record.threshold_ns),
        clean(&record.counter)
    );
    html! {
        div class="tiles" {
            (longest_tile(document))
            (rate_tile(document))
            (tile("Named", &named, &named_note))
            (tile("Largest cause", &most, &clean(&most_note)))
            (tile("Measured", &plural(record.cpus.len(), "CPU"), &measured))
        }
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
                    rect class={ "v-" (verdict_class(*verdict)) } x=(start) y="0" width=(count) height="1" {}
                }
            }
            ul class="legend" {
                @for (verdict, count) in &counts {
                    li { span class={ "dot v-" (verdict_class(*verdict)) } {} b { (count) } " " (verdict.word()) }
                }
            }
        }
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

fn longest_tile(document: &ResultDocument) -> Markup {
    let Some(jitter) = &document.jitter else {
        return tile("Longest interruption", "–", "jitter was not measured");
    };
    let run = span(jitter.ran_ns());
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

/// Interruptions a second on the CPUs meant for trading, each counted for itself.
fn rate_tile(document: &ResultDocument) -> Markup {
    let label = "Interruptions per second";
    let Some(side) = document.jitter.as_ref().and_then(|jitter| Side::of(jitter, &document.allocation))
    else {
        return tile(label, "–", "jitter was not measured");
    };
    let cpus = match side.cpu_count {
        1 => "on one CPU".to_owned(),
        cpus => format!("on each of {cpus} CPUs"),
    };
    let (interval, lost) = (interval(&side), percent(side.lost_percent));
    tile(label, &rate(side.rate.per_s), &format!("{cpus}{interval}; {lost} of the time"))
}
