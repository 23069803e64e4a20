//! The page as text: whole, self-contained, escaped.

use crate::common;
use lowlat_results_report::html;
use std::collections::BTreeSet;

/// Elements without an end tag.
const VOID: &[&str] = &["meta", "link", "input", "br", "img", "!DOCTYPE"];

/// Tags of a page outside style and script, in order: name, attributes, whether it ends an element. Empty elements
/// that end themselves are start and end.
fn tags(page: &str) -> Vec<(String, String, bool)> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("every < of the page opens a tag");
        let inside = &rest[..end];
        let (is_end, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
        let (name, attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        tags.push((name.to_owned(), attributes.to_owned(), is_end));
        if inside.ends_with('/') {
            tags.push((name.to_owned(), String::new(), true));
        }
        rest = &rest[end + 1..];
        if !is_end && (name == "style" || name == "script") {
            let close = rest.find(&format!("</{name}>")).expect("a style or script ends");
            rest = &rest[close..];
        }
    }
    tags
}

/// Values of an attribute over the whole page.
fn values<'a>(tags: &'a [(String, String, bool)], attribute: &str) -> Vec<&'a str> {
    let opening = format!("{attribute}=\"");
    tags.iter()
        .flat_map(|(_, attributes, _)| {
            let places = attributes
                .match_indices(&opening)
                .filter(|(at, _)| *at == 0 || attributes.as_bytes()[at - 1] == b' ');
            places
                .map(|(at, _)| attributes[at + opening.len()..].split('"').next().unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The table of what to do first is ranked as the terminal's, and its links lead to the findings.
#[test]
fn the_page_of_a_host_starts_with_what_to_do_first() {
    let mut document = common::traced();
    document.command = "assess".into();
    let page = html(&document);
    let start = page.find("id=\"first\"").expect("the section");
    let section = &page[start..start + page[start..].find("</section>").unwrap()];
    let at = |id: &str| section.find(&format!(">{id}<")).unwrap_or_else(|| panic!("{id}: {section}"));
    assert!(
        at("boot.nohz_full") < at("boot.isolcpus") && at("boot.isolcpus") < at("sysctl.vm.stat_interval")
    );
    assert!(section.contains("946\u{a0}µs"), "the time of its causes: {section}");
    for link in values(&tags(section), "href") {
        let target = format!("id=\"{}\"", link.trim_start_matches('#'));
        assert!(page.contains(&target), "{link} leads nowhere");
    }
    assert!(!html(&common::bare()).contains("id=\"first\""), "nothing to do, no section");
}

#[test]
fn only_a_high_score_is_painted_as_a_success() {
    for (percent, class) in [(37, "low"), (60, "middle"), (95, "high")] {
        let mut document = common::epyc();
        document.audit.score.percent = Some(percent);
        assert!(html(&document).contains(&format!("ring-done {class}")), "{percent}");
    }
}

pub fn pages() -> Vec<(&'static str, String)> {
    let offline = {
        let mut document = common::epyc();
        let topology = &mut document.snapshot.topology;
        topology.offline = lowlat_host::CpuSet::of(15);
        topology.online.remove(15);
        document
    };
    let mut damaged = common::epyc();
    for cpu in &mut damaged.jitter_mut().unwrap().record.cpus {
        cpu.histogram = "damaged".into();
    }
    vec![
        ("epyc", html(&common::epyc())),
        ("wide", html(&common::wide(&common::Shape::WIDE, "0-7", 3))),
        ("clusters", html(&common::wide(&common::Shape::CLUSTERS, "0-3", 3))),
        ("traced", html(&common::traced())),
        ("counted", html(&common::counted())),
        ("quiet", html(&common::quiet())),
        ("vast", html(&common::vast(300))),
        ("side by side", lowlat_results_report::side_by_side_html(&common::side_by_side(2))),
        ("three side by side", lowlat_results_report::side_by_side_html(&common::side_by_side(3))),
        ("documents", lowlat_results_report::documents_html(&common::named(&common::three()))),
        (
            "hostile documents",
            lowlat_results_report::documents_html(&common::named(&vec![common::hostile(); 2])),
        ),
        ("fleet", lowlat_results_report::fleet_html(&common::fleet())),
        ("large fleet", lowlat_results_report::fleet_html(&common::large_fleet(200))),
        ("bare", html(&common::bare())),
        ("offline", html(&offline)),
        ("damaged histograms", html(&damaged)),
        ("hostile", html(&common::hostile())),
    ]
}

#[test]
fn every_page_is_balanced_and_its_ids_are_unique() {
    for (name, page) in pages() {
        let tags = tags(&page);
        let mut open: Vec<&str> = Vec::new();
        for (tag, _, is_end) in &tags {
            if VOID.contains(&tag.as_str()) {
                continue;
            }
            if *is_end {
                assert_eq!(open.pop(), Some(tag.as_str()), "{name}");
            } else {
                open.push(tag);
            }
        }
        assert!(open.is_empty(), "{name}: {open:?} left open");
        let ids = values(&tags, "id");
        let unique: BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "{name}: an id appears twice");
        for reference in values(&tags, "aria-labelledby").iter().chain(&values(&tags, "href")) {
            let id = reference.trim_start_matches('#');
            assert!(ids.contains(&id) || *reference == "data:,", "{name}: nothing has the id {reference}");
        }
    }
}

#[test]
fn no_page_loads_anything() {
    for (name, page) in pages() {
        let tags = tags(&page);
        assert!(values(&tags, "src").is_empty(), "{name}");
        assert!(
            values(&tags, "href").iter().all(|href| href.starts_with('#') || *href == "data:,"),
            "{name}"
        );
        for forbidden in ["http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest", "//cdn"] {
            assert!(!page.contains(forbidden), "{name} contains {forbidden}");
        }
    }
}

#[test]
fn hostile_texts_stay_texts() {
    let page = html(&common::hostile());
    let tags = tags(&page);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "the text is shown");
    assert!(!tags.iter().any(|(tag, _, _)| tag == "img"));
    assert_eq!(tags.iter().filter(|(tag, _, is_end)| tag == "script" && !is_end).count(), 1);
    // An injected handler attribute would follow a space and be outside quotes.
    for (tag, attributes, _) in &tags {
        let outside: String = attributes.split('"').step_by(2).collect();
        assert!(!outside.contains("onerror") && !outside.contains("onload"), "{tag} {attributes}");
    }
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
}

#[test]
fn the_page_is_complete_without_its_script() {
    let document = common::epyc();
    let page = html(&document);
    let text = page.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    for finding in &document.audit.findings {
        for part in [
            &finding.id,
            &finding.name,
            &finding.observed,
            &finding.wanted,
            &finding.because,
            &finding.reason,
        ] {
            assert!(text.contains(part.as_str()), "{part}");
        }
    }
    for text_of_page in [
        "18 of 29 settings differ from profile trading.",
        "1.28\u{a0}ms on CPU 5",
        "BOOT_IMAGE=/boot/vmlinuz-6.1.0-25-amd64",
        "ens3f0np0",
        "Read without root: 6 facts are denied.",
        "31.402118",
    ] {
        assert!(text.contains(text_of_page), "{text_of_page}");
    }
}

#[test]
fn percentiles_that_the_count_does_not_carry_are_dashes() {
    let page = html(&common::epyc());
    let row = |cpu: u32| {
        let start = page.find(&format!("<th scope=\"row\">{cpu}</th>")).expect("a row per CPU");
        page[start..].split("</tr>").next().unwrap().to_owned()
    };
    // About 120 interruptions carry a median and neither p99 nor p99.9; 17,000 carry both.
    assert_eq!(row(1).matches("<td>–</td>").count(), 2, "{}", row(1));
    assert_eq!(row(0).matches("<td>–</td>").count(), 0, "{}", row(0));
}

#[test]
fn empty_states_say_so() {
    let page = html(&common::bare());
    for text in [
        "No setting was judged in this run.",
        "Jitter was not measured in this run.",
        "No physical interface was found.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("id=\"filters\""));
}

#[test]
fn every_cpu_of_a_large_host_is_in_the_picture_and_the_page_stays_small() {
    let page = html(&common::wide(&common::Shape::WIDE, "0-7", 60));
    assert_eq!(page.matches("<g class=\"cpu ").count(), 256);
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
}

#[test]
fn extreme_figures_and_a_lying_topology_give_a_page() {
    let mut document = common::epyc();
    let jitter = &mut document.jitter_mut().unwrap().record;
    (jitter.threshold_ns, jitter.duration_ns, jitter.counter_hz) = (u64::MAX, u64::MAX, 0);
    for (at, cpu) in jitter.cpus.iter_mut().enumerate() {
        cpu.cpu = lowlat_host::CPU_ID_MAX;
        (cpu.runtime_ns, cpu.interruption_count) = if at == 0 { (0, 0) } else { (1, u64::MAX) };
        (cpu.interruption_ns_total, cpu.interruption_ns_max) = (u64::MAX, u64::MAX);
        (cpu.loop_floor_ns, cpu.loop_period_ns) = (f64::NAN, f64::NEG_INFINITY);
        cpu.seconds.iter_mut().for_each(|s| (s.count, s.ns_max) = (u64::MAX, u64::MAX));
        cpu.worst.iter_mut().for_each(|hit| (hit.at_ns, hit.length_ns) = (u64::MAX, u64::MAX));
        cpu.steal_ns = lowlat_host::Reading::Known(u64::MAX);
    }
    document.audit.score.percent = Some(255);
    // Every group claims every CPU, and many CPUs that do not exist.
    let everything = lowlat_host::CpuSet::first(5_000);
    let topology = &mut document.snapshot.topology;
    for group in topology.packages.iter_mut().chain(&mut topology.cores).chain(&mut topology.clusters) {
        (group.id, group.cpus) = (i64::MIN, everything.clone());
    }
    topology.nodes.iter_mut().for_each(|node| node.cpus = everything.clone());
    let page = html(&document);
    assert!(page.contains("Topology") && page.ends_with("</html>"));
    document.snapshot.topology.online = everything;
    assert!(html(&document).contains("shown as text only"));
}

/// The part of a page from one text to the next.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let start = page.find(from).unwrap_or_else(|| panic!("{from} is not in the page"));
    page[start..].split(to).next().unwrap_or_default()
}

#[test]
fn the_page_of_jitter_leads_with_what_was_measured() {
    let order = |page: &str| {
        let ids = ["summary", "jitter", "causes", "findings", "topology", "warnings"];
        let mut places: Vec<(usize, &str)> =
            ids.iter().filter_map(|id| Some((page.find(&format!("<section id=\"{id}\""))?, *id))).collect();
        places.sort_unstable();
        places.into_iter().map(|(_, id)| id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order(&html(&common::traced())), "summary jitter causes findings topology warnings");
    assert_eq!(order(&html(&common::epyc())), "summary topology findings jitter warnings");
    let page = html(&common::traced());
    let hero = between(&page, "<section id=\"summary\"", "</section>");
    for text in ["longest 1.28\u{a0}ms on CPU 5", "stress-ng (pid 4711) ran on CPU 5", "Largest cause"] {
        assert!(hero.contains(text), "{text}");
    }
}

#[test]
fn every_cause_has_its_remedy_and_a_link_to_its_setting() {
    let document = common::traced();
    let page = html(&document);
    let causes = between(&page, "<section id=\"causes\"", "<section id=\"findings\"");
    let text = causes.replace("&#39;", "'");
    for study in &document.jitter().unwrap().study.as_ref().unwrap().causes {
        assert!(text.contains(&study.cause.label()), "{}", study.cause.label());
        if let Some(remedy) = &study.remedy {
            let action = remedy.action.replace('<', "&lt;").replace('>', "&gt;");
            assert!(text.contains(&action), "{action}");
        }
    }
    let link = between(causes, "which stops the tick of CPUs", "</a>");
    let anchor = between(link, "<a href=\"#", "\">").trim_start_matches("<a href=\"#");
    let row = between(&page, &format!("<details class=\"finding\" id=\"{anchor}\""), "</details>");
    assert!(row.contains("<code>boot.nohz_full</code>"), "{row}");
}

#[test]
fn the_longest_interruptions_open_to_their_timelines() {
    let page = html(&common::traced());
    let first = between(&page, "<details class=\"hit\" open>", "</details>");
    for text in [
        "1.28\u{a0}ms",
        "class=\"chart flame\"",
        "+141,300\u{a0}ns",
        "work lru_add_drain_per_cpu",
        "on 2 CPUs: 0,5",
    ] {
        assert!(first.contains(text), "{text}: {first}");
    }
    assert_eq!(page.matches("<details class=\"hit\" open>").count(), 1);
    assert!(page.contains("Interruptions of several CPUs started within 1\u{a0}µs of each other 51 times."));
    assert!(page.contains("Tracing adds 84.2\u{a0}ns to each event"));
}

#[test]
fn stacks_and_shares_use_one_colour_for_each_family() {
    let page = html(&common::traced());
    let stacked = between(&page, "Causes per CPU", "Show as table");
    for class in ["f-timer", "f-device", "f-ipi", "f-softirq", "f-thread", "f-entry", "f-unexplained"] {
        assert!(stacked.contains(&format!("<rect class=\"{class}\"")), "{class}");
        assert!(page.contains(&format!(".{class} {{ --c:")), "{class} has a colour");
    }
}

#[test]
fn counters_are_not_shown_as_causes_of_single_interruptions() {
    let page = html(&common::counted());
    let causes = between(&page, "<section id=\"causes\"", "<section id=\"findings\"");
    assert!(causes.contains("Counts only: individual interruptions have no cause."));
    assert!(causes.contains("tracefs is not mounted at /sys/kernel/tracing"));
    assert!(!causes.contains("class=\"hit\"") && !causes.contains("Causes and remedies"));
    assert!(page.contains("Longest on CPUs chosen for isolation"), "the longest stand without timelines");
}

#[test]
fn the_page_of_a_thousand_cpus_is_bounded() {
    let page = html(&common::vast(1_024));
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    assert!(page.contains("the 48 of 1,008 that lost most"));
}

#[test]
fn nothing_is_divided_by_zero_when_causes_have_no_time() {
    let mut document = common::traced();
    let record = &mut document.jitter_mut().unwrap().record;
    record.cpus.iter_mut().for_each(|cpu| cpu.runtime_ns = 0);
    for cpu in &mut record.causes.as_mut().unwrap().cpus {
        cpu.totals.iter_mut().for_each(|total| total.ns_total = 0);
        let steps = cpu.worst.iter_mut().flat_map(|of| &mut of.timeline);
        steps.for_each(|step| (step.offset_ns, step.depth) = (i64::MIN, 255));
        cpu.worst.iter_mut().for_each(|of| of.interruption.length_ns = 0);
    }
    let page = html(&common::with_study(document));
    assert!(!page.contains("NaN") && !page.contains("=\"inf"));
}

#[test]
fn a_gate_comes_before_the_measurement() {
    let mut document = common::epyc();
    let study = lowlat_jitter::study(&document.jitter().unwrap().record).unwrap();
    let gate = lowlat_jitter::gate::Gate::parse("max<1us,count>=0").unwrap();
    document.jitter_mut().unwrap().gate = Some(gate.evaluate(&study));
    let page = html(&document);
    let (gate, jitter) = (page.find("id=\"gate\"").unwrap(), page.find("id=\"jitter\"").unwrap());
    assert!(gate < jitter);
    assert!(
        page[gate..jitter].contains("not held") && page[gate..jitter].contains(">broken<"),
        "{}",
        &page[gate..jitter]
    );
    assert!(!html(&common::epyc()).contains("id=\"gate\""));
}
