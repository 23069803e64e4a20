//! A run of rising rates as text, and its part of the page of a run.

use super::{
    chart::{ChartColumn, chart},
    html::{NONE, STYLE, time},
    pingpong::parameters,
    pingpong::{bytes, control, doubts as set_up_doubts, set_up},
};
use lowlat_net::{
    pingpong::Muxer,
    stream::{LatencyKind, RateSummary, StreamMeasurement, StreamRecord, verdict},
};
use lowlat_text::view::{View, ViewPage, verdict as page_verdict};
use lowlat_text::{
    columns::{self, Column, PAGES_ONLY, Table},
    page::{Section, columns_table, note, section as page_section, tile},
    text::{YELLOW, add_detail, add_result, add_sentences, usable},
    units::{count, duration, plural, rate},
};
use maud::html;

/// Rounds with which a rate is repeated often enough.
const ROUNDS_MIN: u32 = 3;

/// Formats a run: the highest rate that holds, the table by rate, where messages were lost, the doubts.
pub fn stream_text(record: &StreamRecord, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    let rates = record.by_rate();
    for sentence in sentences(record, &rates) {
        add_detail(&mut out, &sentence, width);
    }
    if !rates.is_empty() {
        out.push_str(&columns::table(table(&rates), width));
    }
    add_detail(&mut out, &control(&record.set_up), width);
    add_sentences(&mut out, (YELLOW, "Caveats"), &doubts(record), width);
    out
}

/// Sentence such as "udp to 10.0.0.2, block: 120,000 messages/s of 32 bytes hold in 3 of 3 rounds, with p99 12.3 us".
fn headline(record: &StreamRecord) -> String {
    let scenario = &record.set_up.scenario;
    let muxer = if scenario.muxer == Muxer::None { String::new() } else { format!(", {}", scenario.muxer) };
    let what =
        format!("{} to {}, {}{muxer}", scenario.transport, record.set_up.server_name, scenario.waiting);
    let size = bytes(scenario.sizes.first().copied().unwrap_or(0));
    let found = verdict(&record.options, &record.rounds);
    let Some(holds) = found.holds_per_s else {
        let why = if record.rounds.is_empty() { "nothing was measured" } else { "no rate holds" };
        return format!("{what}: {why}");
    };
    let p99 = p99_at(record, holds).map(|ns| format!(", with p99 {}", duration(ns))).unwrap_or_default();
    let rounds = match found.rounds {
        1 => "in its one round".to_owned(),
        rounds => format!("in {rounds} of {rounds} rounds"),
    };
    format!("{what}: {} messages/s of {size} hold {rounds}{p99}", rate(holds))
}

fn p99_at(record: &StreamRecord, rate: f64) -> Option<u64> {
    let rates = record.by_rate();
    let meant = rates.iter().find(|one| one.target_per_s.total_cmp(&rate).is_eq());
    meant?.latency.as_ref()?.quantile_ns(0.99)
}

/// Returns sentences on the rate that broke, lost messages, the meaning of latency, and the set-up.
fn sentences(record: &StreamRecord, rates: &[RateSummary]) -> Vec<String> {
    let mut said = Vec::new();
    let found = verdict(&record.options, &record.rounds);
    if let Some((broken, why)) = found.breaks {
        said.push(format!("At {} messages/s, {why}.", rate(broken)));
    }
    let sum = |of: fn(&RateSummary) -> u64| rates.iter().map(of).sum::<u64>();
    let lost = sum(|rate| rate.lost);
    if lost > 0 {
        said.push(format!(
            "Of {} lost at all rates, the sender's queue dropped {}, the receiver's full socket {}, and {} were lost on \
             the way.",
            plural(lost, "message"),
            count(sum(|rate| rate.dropped_by_sender)),
            count(sum(|rate| rate.dropped_by_receiver)),
            count(sum(|rate| rate.lost_on_the_way))
        ));
    }
    said.push(match (record.latency, record.return_ns) {
        (LatencyKind::OneWay, _) => {
            "Latency is one-way, from the time when each message was due, on the counter that both ends share.".to_owned()
        }
        (LatencyKind::Echo, back) => format!(
            "Latency is that of echoes, from the time when each message was due, less {}, half the shortest round trip.",
            duration(back.unwrap_or(0))
        ),
    });
    said.push(set_up(&record.set_up));
    said
}

fn doubts(record: &StreamRecord) -> Vec<String> {
    let mut doubts = set_up_doubts(&record.set_up);
    let found = verdict(&record.options, &record.rounds);
    if found.holds_per_s.is_some() && found.rounds < ROUNDS_MIN {
        doubts.push(format!(
            "The rate that holds was measured in {}; --rounds {ROUNDS_MIN} shows whether that was chance.",
            plural(found.rounds, "round")
        ));
    }
    doubts
}

fn table(rates: &[RateSummary]) -> Vec<Column> {
    let quantile =
        |quantile: f64| move |rate: &RateSummary| rate.latency.as_ref()?.quantile_ns(quantile).map(duration);
    let counts = |of: fn(&RateSummary) -> u64| {
        let has_some = rates.iter().any(|rate| of(rate) > 0);
        move |rate: &RateSummary| has_some.then(|| count(of(rate)))
    };
    Table::of(rates)
        .figures("messages/s", 0, |one| rate(one.target_per_s))
        .figures("held", 0, |one| format!("{}/{}", one.held, one.rounds))
        .figures("sent/s", 1, |one| rate(one.sent_per_s))
        .figures("arrived/s", 4, |one| rate(one.received_per_s))
        .figures("lost", 0, |one| count(one.lost))
        .strong()
        .figures("by the sender", PAGES_ONLY, counts(|one| one.dropped_by_sender))
        .figures("by the receiver", PAGES_ONLY, counts(|one| one.dropped_by_receiver))
        .figures("on the way", PAGES_ONLY, counts(|one| one.lost_on_the_way))
        .figures("reordered", 5, counts(|one| one.reordered))
        .figures("again", 6, counts(|one| one.duplicates))
        .figures("p50", 0, quantile(0.5))
        .strong()
        .figures("p99", 0, quantile(0.99))
        .figures("p99.9", 2, quantile(0.999))
        .figures("max", 1, |one| one.latency.as_ref().map(|of| duration(of.figures.max_ns)))
        .figures("messages", 3, |one| count(one.sent))
        .into_columns()
}

/// Returns the view of a stream at rising rates.
pub fn view(record: &StreamRecord, is_interrupted: bool) -> View<'_> {
    View {
        kind: StreamMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record))),
        doubts: doubts(record),
        add_summary: Box::new(|out, width| out.push_str(&stream_text(record, width))),
        page: Box::new(move || {
            let holds = verdict(&record.options, &record.rounds).holds_per_s;
            let p99 = time(holds.and_then(|rate| p99_at(record, rate)));
            let value = holds.map_or_else(|| NONE.to_owned(), rate);
            let tiles = tile("Messages/s that hold", &value, &format!("p99 {p99}"));
            let mut sentences = sentences(record, &record.by_rate());
            sentences.push(control(&record.set_up));
            ViewPage {
                title: "Rising rates",
                verdict: page_verdict(&headline(record), is_interrupted, &sentences, &tiles),
                tiles,
                sections: vec![section(record)],
                parameters: Some(parameters("Stream", &record.set_up)),
            }
        }),
    }
}

fn section(record: &StreamRecord) -> Section {
    let lead = html! {
        "Latency by rate, from the time when each message was due. Percentiles that the number of messages does not support are left out."
    };
    let (rates, doubts) = (record.by_rate(), doubts(record));
    let goal = record.options.p99_ns_max.map(|ns| ns as f64);
    let marks: Vec<ChartColumn> = rates.iter().filter_map(mark).collect();
    let body = html! {
        (note("Caveats", &doubts))
        @if rates.is_empty() {
            p class="empty" { "Nothing was measured." }
        } @else {
            @if !marks.is_empty() {
                figure tabindex="0" class="card" {
                    figcaption { h3 { "By rate" } p { "Dots: median and maximum. Bar: minimum to p99." } }
                    (chart(&marks, goal, "Latency by rate; the figures are in the table below"))
                }
            }
            (columns_table("Latency and losses by rate", &table(&rates)))
        }
    };
    Section::new("stream", "Rising rates", page_section("stream", "Rising rates", &lead, &body))
        .with_style(STYLE)
}

fn mark(summary: &RateSummary) -> Option<ChartColumn> {
    let latency = summary.latency.as_ref()?;
    let figures = &latency.figures;
    let said = |quantile: f64| time(latency.quantile_ns(quantile));
    let title = format!(
        "{} messages/s: p50 {}, p99 {}, p99.9 {}, max {}",
        rate(summary.target_per_s),
        said(0.5),
        said(0.99),
        said(0.999),
        time(Some(figures.max_ns))
    );
    Some(ChartColumn {
        label: rate(summary.target_per_s),
        title,
        dots: vec![figures.median_ns as f64, figures.max_ns as f64],
        bar: latency.quantile_ns(0.99).map(|p99_ns| (figures.min_ns as f64, p99_ns as f64)),
        whole: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_net::{
        pingpong::{PingpongRecord, Scenario, Transport},
        stream::{Distribution, Received, StreamRound},
    };
    use std::time::Duration;

    fn record() -> StreamRecord {
        let round = |target_per_s: f64, lost: u64| StreamRound {
            target_per_s,
            sent: 10_001,
            elapsed_ns: u64::try_from(Duration::from_secs_f64(1e4 / target_per_s).as_nanos()).unwrap(),
            received: Received {
                messages: 10_001 - lost,
                dropped: Some(lost / 2),
                elapsed_ns: 1_000_000_000,
                ..Received::default()
            },
            latency: Some(Distribution { histogram: histogram(), ..Distribution::default() }),
            ..StreamRound::default()
        };
        let scenario = Scenario { transport: Transport::Udp, sizes: vec![32], ..Scenario::default() };
        let set_up = PingpongRecord {
            scenario,
            server_name: "10.0.0.2\u{1b}[2J".into(),
            percentile: 99.0,
            ..PingpongRecord::default()
        };
        let rounds = vec![round(10_000.0, 0), round(20_000.0, 0), round(40_000.0, 7)];
        StreamRecord { set_up, rounds, ..StreamRecord::default() }
    }

    /// 1,000 latencies of 5 us.
    fn histogram() -> String {
        let mut samples = vec![5_000; 1_000];
        lowlat_net::pingpong::SizeRecord::of(32, &mut samples, 99.0, 1).unwrap().histogram
    }

    #[test]
    fn the_highest_rate_and_what_broke_the_next_come_first() {
        let text = anstream::adapter::strip_str(&stream_text(&record(), 80)).to_string();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "udp to 10.0.0.2\\u{1b}[2J, block: 20,000 messages/s of 32 bytes hold in its one round, with p99 5.00 us",
            "At 40,000 messages/s, 7 messages were lost.",
            "Of 7 messages lost at all rates, the sender's queue dropped 0, the receiver's full socket 3, and 4 were lost on the way.",
            "messages/s held sent/s arrived/s lost p50 p99 max messages",
            "40,000 0/1 40,000 9,993 7 5.00 us 5.00 us 5.00 us 10,001",
            "--rounds 3 shows whether that was chance",
        ] {
            assert!(words.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(stream_text(&StreamRecord::default(), 80).contains("nothing was measured"));
    }

    #[test]
    fn echoes_say_what_was_taken_off() {
        let record = StreamRecord { latency: LatencyKind::Echo, return_ns: Some(7_000), ..record() };
        assert!(
            sentences(&record, &[])
                .iter()
                .any(|one| one.contains("less 7.00 us, half the shortest round trip"))
        );
        let page = section(&record).body.into_string();
        assert!(page.contains("By the receiver") && page.contains("40,000 messages/s: p50 5.00"), "{page}");
    }
}
