//! A ping-pong run as text.

use super::{html, parts, parts_html};
use lowlat_net::{
    pingpong::{End, EndFacts, Figures, Muxer, PingpongMeasurement, PingpongRecord, SizeRecord, Transport},
    unique,
    xdp::XdpMode,
};
use lowlat_text::{
    columns::{self, Column, Table},
    page::tile,
    text::{YELLOW, add_detail, add_result, add_sentences, usable},
    units::{clean, count, duration, plural, rate},
    view::{View, ViewPage, verdict},
};
use maud::{Markup, html};

/// The size that people quote.
const QUOTED_BYTES: u32 = 32;

/// Formats a run: what was measured, the table by size, the control, the doubts.
pub fn pingpong_text(record: &PingpongRecord, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    add_detail(&mut out, &set_up(record), width);
    if !record.sizes.is_empty() {
        out.push_str(&columns::table(table(record), width));
    }
    add_detail(&mut out, &control(record), width);
    parts::add_parts(&mut out, record, width);
    add_sentences(&mut out, (YELLOW, "Caveats"), &doubts(record), width);
    out
}

/// Sentence such as "tcp to 10.0.0.2, block: half round trip of 32 bytes 28.3 us at p50, 41.2 us at p99".
pub(super) fn headline(record: &PingpongRecord) -> String {
    let what = title(record);
    let Some(size) = quoted(record) else { return format!("{what}: nothing was measured") };
    let at = |quantile: f64| size.quantile_ns(quantile).map(duration);
    let figures = match (at(0.5), at(0.99)) {
        (Some(p50), Some(p99)) => format!("{p50} at p50, {p99} at p99"),
        (Some(p50), None) => format!("{p50} at p50"),
        _ => format!("{} on average", duration(size.figures.mean_ns)),
    };
    format!("{what}: half round trip of {} {figures}", bytes(size.size_bytes))
}

/// Returns a title such as "tcp to 10.0.0.2, block".
pub(super) fn title(record: &PingpongRecord) -> String {
    let scenario = &record.scenario;
    let to = if scenario.is_local() { String::new() } else { format!(" to {}", record.server_name) };
    let muxer = if scenario.muxer == Muxer::None { String::new() } else { format!(", {}", scenario.muxer) };
    let rate = scenario.rate_per_s.map(|per_s| format!(", {} messages/s", rate(per_s))).unwrap_or_default();
    format!("{}{to}, {}{muxer}{rate}", scenario.transport, scenario.waiting)
}

/// The size that the headline quotes.
pub(super) fn quoted(record: &PingpongRecord) -> Option<&SizeRecord> {
    record.sizes.iter().find(|size| size.size_bytes == QUOTED_BYTES).or(record.sizes.first())
}

/// Formats a size as "1 byte" or "32 bytes".
pub(super) fn bytes(size_bytes: u32) -> String {
    plural(size_bytes, "byte")
}

/// Describes the CPUs and options of a run.
pub(super) fn set_up(record: &PingpongRecord) -> String {
    let scenario = &record.scenario;
    let cpu = |end: &EndFacts| end.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let place = if record.is_same_host { "of one host" } else { "of two hosts" };
    let mut parts =
        vec![format!("Client on {}, server on {} {place}", cpu(&record.client), cpu(&record.server))];
    if record.client.holds_idle && record.server.holds_idle {
        parts.push("idle states held off".to_owned());
    }
    if scenario.transport == Transport::Tcp && !scenario.is_nodelay {
        parts.push("Nagle's algorithm on".to_owned());
    }
    if scenario.is_quickack {
        parts.push("quick acknowledgements".to_owned());
    }
    let queues = [record.client.napi_id, record.server.napi_id].map(|id| id.filter(|id| *id > 0));
    if let [Some(client), Some(server)] = queues {
        parts.push(format!("NAPI ids {client} and {server}"));
    }
    if scenario.rate_per_s.is_some() {
        parts.push("latency counts from the time when each message was due".to_owned());
    }
    [Some(format!("{}.", parts.join(", "))), xdp(record)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Describes each end's use of AF_XDP: "AF_XDP, mode auto: client in the driver with copies on eth0 (1 queue), server
/// ...".
fn xdp(record: &PingpongRecord) -> Option<String> {
    let asked = record.scenario.xdp_of(End::Client)?.mode;
    let end = |facts: &EndFacts| {
        let Some(xdp) = &facts.xdp else { return "a socket of the kernel".to_owned() };
        let how = match xdp.mode() {
            XdpMode::ZeroCopy => "in the driver without copies",
            XdpMode::Generic => "in the generic path with copies",
            XdpMode::Auto | XdpMode::Native => "in the driver with copies",
        };
        let queues = plural(xdp.queues, "queue");
        format!("{how} on {} ({queues})", xdp.interface)
    };
    Some(format!("AF_XDP, mode {asked}: client {}, server {}.", end(&record.client), end(&record.server)))
}

pub(super) fn table(record: &PingpongRecord) -> Vec<Column> {
    let figure = |of: fn(&Figures) -> u64| move |size: &SizeRecord| duration(of(&size.figures));
    let quantile = |quantile: f64| move |size: &SizeRecord| size.quantile_ns(quantile).map(duration);
    Table::of(&record.sizes)
        .figures("bytes", 0, |size| count(u64::from(size.size_bytes)))
        .figures("mean", 2, figure(|figures| figures.mean_ns))
        .figures("min", 1, figure(|figures| figures.min_ns))
        .figures("p50", 0, quantile(0.5))
        .strong()
        .figures("p99", 0, quantile(0.99))
        .figures(&format!("p{} from send", record.percentile), 1, |size| {
            size.from_send.as_ref().map(|figures| duration(figures.percentile_ns))
        })
        .figures("p99.9", 0, quantile(0.999))
        .figures("p99.99", 5, quantile(0.999_9))
        .figures("max", 0, figure(|figures| figures.max_ns))
        .figures("std. dev.", 4, figure(|figures| figures.stddev_ns))
        .figures("round trips", 3, |size| count(size.figures.iterations))
        .into_columns()
}

/// The control in one sentence.
pub(super) fn control(record: &PingpongRecord) -> String {
    let medians = || record.controls.iter().map(|row| row.figures.median_ns);
    let (Some(row), Some(low), Some(high)) = (record.controls.first(), medians().min(), medians().max())
    else {
        return record.control_missing.clone().unwrap_or_default();
    };
    let range = if low == high { duration(low) } else { format!("{} to {}", duration(low), duration(high)) };
    format!(
        "Control: a cache line takes {range} between CPUs {} and {} (half round trip, median of {} controls).",
        row.client_cpu,
        row.server_cpu,
        record.controls.len()
    )
}

/// Everything that makes the figures doubtful, one sentence each.
pub(super) fn doubts(record: &PingpongRecord) -> Vec<String> {
    let mut doubts: Vec<String> = record.unsound.iter().map(ToString::to_string).collect();
    if let Some(ratio) = record.control_moved() {
        doubts.push(format!(
            "The control changed by a factor of {ratio:.1} during the run, so do not compare figures of different sizes."
        ));
    }
    for size in record.sizes.iter().filter(|size| size.lost_count > 0) {
        doubts.push(format!(
            "{} of {} {} lost: no answer within {} ms. Lost messages are in no figure.",
            plural(size.lost_count, "message"),
            bytes(size.size_bytes),
            if size.lost_count == 1 { "was" } else { "were" },
            record.scenario.timeout_ms
        ));
    }
    for size in record.sizes.iter().filter(|size| size.late_count + size.duplicate_count > 0) {
        doubts.push(format!(
            "In size {}, {} came late and {} came again. They are in no figure.",
            bytes(size.size_bytes),
            plural(size.late_count, "message"),
            plural(size.duplicate_count, "message")
        ));
    }
    for (at, end) in ["client", "server"].into_iter().enumerate() {
        let throttled_ns: u64 = record.sizes.iter().filter_map(|size| size.throttled_ns.get(at)).sum();
        if throttled_ns > 0 {
            doubts.push(format!(
                "A quota of CPU time stopped the {end} for {} in all (throttled time in cpu.stat of its control group), and \
                 messages waited for that. Write max to cpu.max of the group (CPUQuota= of its unit).",
                duration(throttled_ns)
            ));
        }
    }
    for (end, facts) in [("client", &record.client), ("server", &record.server)] {
        let fallback = facts.xdp.iter().filter_map(|xdp| xdp.fallback.as_ref());
        doubts
            .extend(facts.warnings.iter().chain(fallback).map(|warning| format!("On the {end}: {warning}")));
    }
    doubts.extend(record.warnings.iter().cloned());
    unique(doubts)
}

/// Returns the view of round trips.
pub fn view(record: &PingpongRecord, is_interrupted: bool) -> View<'_> {
    View {
        kind: PingpongMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record))),
        doubts: doubts(record),
        add_summary: Box::new(|out, width| out.push_str(&pingpong_text(record, width))),
        page: Box::new(move || {
            let sentences = [set_up(record), control(record)];
            let tiles = tiles(record);
            let all_tiles = html! { (tiles) (round_trips(record)) };
            ViewPage {
                title: "Round trips",
                verdict: verdict(&headline(record), is_interrupted, &sentences, &all_tiles),
                tiles,
                sections: [Some(html::section(record)), parts_html::section(record)]
                    .into_iter()
                    .flatten()
                    .collect(),
                parameters: Some(parameters("Ping-pong", record)),
            }
        }),
    }
}

fn tiles(record: &PingpongRecord) -> Markup {
    let Some(size) = quoted(record) else { return html! {} };
    let at = |quantile: f64| html::time(size.quantile_ns(quantile));
    tile(&format!("Half round trip, {} B", size.size_bytes), &at(0.5), &format!("p99 {}", at(0.99)))
}

pub(super) fn parameters(what: &str, record: &PingpongRecord) -> Markup {
    html! {
        (what) ": " code { (clean(&record.command_line)) } ", counter " code { (clean(&record.counter)) } " at "
        (count(record.counter_hz / 1_000_000)) " MHz."
    }
}

fn round_trips(record: &PingpongRecord) -> Markup {
    let all: u64 = record.sizes.iter().map(|size| size.figures.iterations).sum();
    tile("Round trips", &count(all), &format!("in {} sizes", record.sizes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_net::{
        pingpong::{ControlRow, Unsound},
        xdp::XdpFacts,
    };

    fn record() -> PingpongRecord {
        let mut samples: Vec<u64> = (0..4_000).map(|n| 5_000 + n).collect();
        let control = |median_ns| ControlRow {
            client_cpu: 1,
            figures: Figures { median_ns, ..Figures::default() },
            ..ControlRow::default()
        };
        PingpongRecord {
            server_name: "10.0.0.2\u{1b}[2J".into(),
            percentile: 99.0,
            is_same_host: true,
            client: EndFacts { cpu: Some(1), ..EndFacts::default() },
            sizes: SizeRecord::of(32, &mut samples, 99.0, 1).into_iter().collect(),
            controls: vec![control(60), control(240)],
            unsound: vec![Unsound::Loopback { is_nic_meant: false }],
            warnings: vec!["Once.".into(), "Once.".into()],
            ..PingpongRecord::default()
        }
    }

    #[test]
    fn a_run_shows_its_figures_control_and_doubts() {
        let text = anstream::adapter::strip_str(&pingpong_text(&record(), 80)).to_string();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "tcp to 10.0.0.2\\u{1b}[2J, block: half round trip of 32 bytes 7.00 us at p50, 8.96 us at p99",
            "Client on CPU 1, server on any CPU of one host.",
            "bytes mean min p50 p99 p99.9 max round trips",
            "32 7.00 us 5.00 us 7.00 us 8.96 us 9.00 us 9.00 us 4,000",
            "a cache line takes 60 ns to 240 ns between CPUs 1 and 0",
            "The control changed by a factor of 4.0",
            "Messages go over lo",
        ] {
            assert!(words.contains(part), "{part}: {text}");
        }
        assert_eq!(words.matches("Once.").count(), 1);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn what_was_asked_of_af_xdp_and_what_the_kernel_gave_are_told_apart() {
        let mut record = record();
        record.scenario.transport = Transport::Xdp;
        let fallback = Some("The driver of eth0 refused.".to_owned());
        let facts = XdpFacts { interface: "eth0".into(), queues: 2, fallback, ..XdpFacts::default() };
        record.client.xdp = Some(facts.clone());
        assert!(
            set_up(&record).ends_with(
                "AF_XDP, mode auto: client in the generic path with copies on eth0 (2 queues), server a socket of the \
                 kernel."
            ),
            "{}",
            set_up(&record)
        );
        assert!(doubts(&record).contains(&"On the client: The driver of eth0 refused.".to_owned()));
        record.server.xdp = Some(XdpFacts { is_native: true, is_zero_copy: true, queues: 1, ..facts });
        assert!(set_up(&record).ends_with("server in the driver without copies on eth0 (1 queue)."));
    }

    #[test]
    fn a_run_without_results_says_so() {
        let text = pingpong_text(&PingpongRecord::default(), 80);
        assert!(text.contains("nothing was measured"), "{text}");
    }
}
