//! A stream record as sfnt-stream's output, for scripts that read that.

use super::{HeaderFacts, Version, write::header};
use crate::{
    pingpong::Figures,
    stream::{StreamRecord, StreamRound},
};
use std::fmt::Write as _;

/// Heads of the columns: their groups, and their names.
const GROUPS: &str = "#mps\tmps\tmps\tlatency\tlatency\tlatency\tlatency\tlatency\tlatency\tlatency\tsendjit\tsendjit\tsendjit\tsendjit\tgaps\tgaps\tgaps";
const COLUMNS: &str = "#target\tsend\trecv\tmean\tmin\tmedian\tmax\t%ile\tstddev\tsamples\tmean\tmin\tmax\tbehind\tn_gaps\tn_drops\tn_ooo";

/// Formats a record as sfnt-stream 1.6.0 does, a line for each round, and says in the header where the figures differ:
/// sfnt-stream counts latency from the time when a message was sent, which hides the wait of late ones.
pub fn stream_text(record: &StreamRecord, facts: &HeaderFacts) -> String {
    let mut out = String::new();
    for line in header(&record.set_up, facts, Version::V1_6) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{line}");
    }
    let bytes = record.set_up.scenario.sizes.first().copied().unwrap_or(0);
    let returned = record.return_ns.map(|ns| format!("\n# return_latency={ns}")).unwrap_or_default();
    let less = record.return_ns.map_or("", |_| ", less half the shortest round trip (less half the mean)");
    let from = "from when each message was due (sfnt-stream: was sent)";
    let _ = writeln!(out, "# msgsize={bytes}{returned}\n# latency: {from}{less}");
    let _ = writeln!(out, "#\n{GROUPS}\n{COLUMNS}");
    for round in &record.rounds {
        out.push_str(&line(round));
    }
    out
}

fn line(round: &StreamRound) -> String {
    let none = Figures::default();
    let latency = round.latency.as_ref().map_or(&none, |of| &of.figures);
    let late = round.lateness.as_ref().map_or(&none, |of| &of.figures);
    let Figures { mean_ns, min_ns, median_ns, max_ns, percentile_ns, stddev_ns, iterations } = latency;
    format!(
        "{:.0}\t{:.0}\t{:.0}\t{mean_ns}\t{min_ns}\t{median_ns}\t{max_ns}\t{percentile_ns}\t{stddev_ns}\t{iterations}\t\
         {}\t{}\t{}\t{}\t{}\t{}\t{}\n",
        round.target_per_s,
        round.send_per_s(),
        round.receive_per_s(),
        late.mean_ns,
        late.min_ns,
        late.max_ns,
        round.behind,
        round.received.gaps,
        round.lost(),
        round.received.reordered
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pingpong::{PingpongRecord, Scenario},
        stream::{Distribution, Received},
    };

    #[test]
    fn the_columns_are_those_of_sfnt_stream() {
        let figures = Figures {
            mean_ns: 1,
            min_ns: 2,
            median_ns: 3,
            max_ns: 4,
            percentile_ns: 5,
            stddev_ns: 6,
            iterations: 7,
        };
        let distribution = |figures| Some(Distribution { figures, ..Distribution::default() });
        let round = StreamRound {
            target_per_s: 10_000.0,
            sent: 101,
            elapsed_ns: 10_000_000,
            behind: 11,
            received: Received {
                messages: 100,
                gaps: 12,
                reordered: 14,
                elapsed_ns: 9_900_000,
                ..Received::default()
            },
            latency: distribution(figures),
            lateness: distribution(Figures { mean_ns: 8, min_ns: 9, max_ns: 10, ..Figures::default() }),
            ..StreamRound::default()
        };
        let scenario = Scenario { sizes: vec![24], ..Scenario::default() };
        let set_up = PingpongRecord { scenario, percentile: 99.0, ..PingpongRecord::default() };
        let record =
            StreamRecord { set_up, rounds: vec![round], return_ns: Some(34), ..StreamRecord::default() };
        let text = stream_text(&record, &HeaderFacts::default());
        assert!(
            text.contains(
                "# percentile=99\n# reporting: 1/2 RTT\n# msgsize=24\n# return_latency=34\n# latency: from when each message \
                 was due (sfnt-stream: was sent), less half the shortest round trip (less half the mean)\n#\n#mps\tmps"
            ),
            "{text}"
        );
        let one_way = stream_text(&StreamRecord { return_ns: None, ..record }, &HeaderFacts::default());
        assert!(one_way.contains(
            "# msgsize=24\n# latency: from when each message was due (sfnt-stream: was sent)\n#\n"
        ));
        assert!(
            text.ends_with("\n10000\t10000\t10000\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t1\t14\n"),
            "{text}"
        );
        let heads = |line: &str| line.split('\t').count();
        assert_eq!((heads(GROUPS), heads(COLUMNS), heads(text.lines().last().unwrap())), (17, 17, 17));
    }
}
