//! Head of the page: the host and the verdict.

use lowlat_host::snapshot::OriginKind;
use lowlat_host_report::fields::title_and_cpus;
use lowlat_host_report::role::source_words;
use lowlat_results::ResultDocument;
use lowlat_settings::Verdict;
use lowlat_text::page::{facts, micro, tile};
use lowlat_text::units::{clean, plural};
use lowlat_text::view::{View, ViewPage};
use lowlat_tune_report::audit::grouping::Tally;
use lowlat_tune_report::audit::verdict_class;
use maud::{Markup, html};

/// Builds the host's name, then the result of the only view, that of the subcommand that ran, or the score and the verdict.
pub fn section(document: &ResultDocument, views: &[(View<'_>, ViewPage)], is_own: bool) -> Markup {
    let (title, cpus) = title_and_cpus(&document.snapshot);
    let tally = Tally::of(&document.audit);
    let own = views.first().filter(|_| is_own).map(|(_, page)| page);
    let what = own.as_ref().map_or("Low-latency assessment", |own| own.title);
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            div class="hero-top" {
                div {
                    p class="eyebrow" { (what) ", profile " (document.audit.profile.name()) }
                    h1 id="summary-title" { (clean(&title)) }
                    p class="sub" { (clean(&cpus.replace(" x ", " × "))) }
                    @if let Some(words) = source_words(document.role.source) { p class="sub" { "Judged by the " (words) "." } }
                    @for warning in &document.audit.warnings { p class="note" { (clean(warning)) } }
                    (host_facts(document))
                }
                @if own.is_none() { (score(document)) }
            }
            @match own {
                Some(own) => (own.verdict),
                None => {
                    (verdict(document, tally, views))
                    (tiles(document, tally, views))
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
        if reading.is_absent() { "unknown".to_owned() } else { reading.to_string() }
    };
    facts([
        ("Kernel", known(&kernel.release)),
        ("Distribution", known(&kernel.distribution)),
        ("Started", document.started_at.replace('T', " ").replace('Z', " UTC")),
        ("Read from", source),
        ("lowlat", document.lowlat_version.clone()),
    ])
}

/// Circumference of a circle of radius 54.
const AROUND: f64 = std::f64::consts::TAU * 54.0;

/// The CSS class of a score: a low one is not painted as a success.
fn grade(percent: Option<u8>) -> &'static str {
    match percent {
        Some(90..) => "high",
        Some(60..) => "middle",
        _ => "low",
    }
}

/// Draws the score as a ring: the share of the weight that is as wanted.
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
                    circle class={ "ring-done " (grade(percent)) } cx="64" cy="64" r="54" transform="rotate(-90 64 64)"
                        stroke-dasharray={ (format!("{done:.1} {AROUND:.1}")) } {}
                }
                text class="ring-text" x="64" y="74" text-anchor="middle" { (text) }
                text class="ring-unit" x="64" y="93" text-anchor="middle" { @if percent.is_some() { "of 100" } @else { "no score" } }
            }
        }
    }
}

fn verdict(document: &ResultDocument, tally: Tally, views: &[(View<'_>, ViewPage)]) -> Markup {
    html! {
        p class="verdict" {
            (tally.sentence(&document.audit))
            @for sentence in views.iter().filter_map(|(view, _)| view.sentence.as_ref()) { " " (micro(sentence)) }
        }
        @if document.is_interrupted {
            p class="note" { "The run was interrupted; this page shows its results up to then." }
        }
        @if !document.audit.findings.is_empty() { (verdict_bar(document)) }
    }
}

/// Draws a bar of verdicts, with their counts in the legend.
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

fn tiles(document: &ResultDocument, tally: Tally, views: &[(View<'_>, ViewPage)]) -> Markup {
    let allocation = &document.allocation;
    let in_force = &document.snapshot.topology.isolated;
    let in_force = match in_force.known() {
        Some(cpus) if !cpus.is_empty() => format!("the kernel currently isolates {cpus}"),
        Some(_) => "the kernel currently isolates none".to_owned(),
        None => "the kernel's isolated CPUs are unknown".to_owned(),
    };
    html! {
        div class="tiles" {
            (faults_tile(tally))
            (tile("Not checked", &tally.unknown.to_string(), "settings that could not be checked; not good in the score"))
            @for (_, page) in views { (page.tiles) }
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
        (_, faults, 0) => tile("To change", &faults.to_string(), &format!("of {of}, without a reboot")),
        (_, faults, reboots) => {
            tile("To change", &faults.to_string(), &format!("of {of}; {reboots} need a reboot"))
        }
    }
}
