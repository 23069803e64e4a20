use super::*;
use proptest::strategy::Strategy as _;

const SOCKPERF: &str = include_str!("../../tests-data/tools/sockperf-3.7-ping-pong.txt");
const SOCKPERF_FULL: &str = include_str!("../../tests-data/tools/sockperf-3.7-full-rtt.txt");
const SOCKPERF_REFUSED: &str = include_str!("../../tests-data/tools/sockperf-3.7-refused.txt");
const SFNT: &str = include_str!("../../tests-data/sfnt-pingpong-1.6.0.txt");

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn only(tool: Tool, text: &str, command: &str) -> ToolRow {
    let output = tool.parse(&crate::plain(text.as_bytes()), &words(command)).unwrap();
    assert_eq!(output.rows.len(), 1, "{output:?}");
    output.rows[0]
}

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-6)
}

#[test]
fn sockperf_prints_half_round_trips_and_colours() {
    let row = only(Tool::Sockperf, SOCKPERF, "taskset -c 1 sockperf ping-pong -i 10.0.0.2 -m 32 -t 1");
    assert_eq!((row.size_bytes, row.count), (Some(32), Some(104_434)));
    assert!(near(row.mean_ns, 2_616.0) && near(row.p50_ns, 2_415.0) && near(row.p99_ns, 2_867.0), "{row:?}");
    let size = |command| only(Tool::Sockperf, SOCKPERF, command).size_bytes;
    assert_eq!(
        (size("sockperf pp"), size("sockperf pp --msg-size=64"), size("")),
        (Some(14), Some(64), None)
    );
}

#[test]
fn whole_round_trips_are_halved_and_few_carry_no_p99() {
    let row = only(Tool::Sockperf, SOCKPERF_FULL, "");
    assert!(near(row.mean_ns, 146_004.0) && near(row.p50_ns, 8_426.0), "{row:?}");
    assert_eq!((row.count, row.p99_ns), (Some(9), None), "nine observations have no 99th percentile");
}

#[test]
fn a_failed_run_says_why() {
    let error = Tool::Sockperf.parse(SOCKPERF_REFUSED, &[]).unwrap_err().to_string();
    assert!(error.contains("the output of sockperf has no average: Can`t connect socket"), "{error}");
}

/// The forms that netperf's manual shows.
const NETPERF_BANNER: &str = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 \
                              AF_INET : nodelay : demo : first burst 0\n";

#[test]
fn netperf_s_selectors_are_read_in_all_their_forms() {
    let csv = format!(
        "{NETPERF_BANNER}Minimum Latency Microseconds,Mean Latency Microseconds,50th Percentile Latency Microseconds,99th \
         Percentile Latency Microseconds,Transaction Rate Tran/s,Elapsed Time (sec)\n38,56.69,61,188,17639.800,2.00\n"
    );
    let keys =
        "MEAN_LATENCY=56.69\nP50_LATENCY=61\nP99_LATENCY=188\nTRANSACTION_RATE=17639.8\nELAPSED_TIME=2.00\n";
    let columns = format!(
        "{NETPERF_BANNER}Minimum      Mean         50th         99th         Transaction Elapsed \n\
         Latency      Latency      Percentile   Percentile   Rate        Time    \n\
         Microseconds Microseconds Latency      Latency      Tran/s      (sec)   \n             \
                      Microseconds Microseconds                     \n\
         38           56.69        61           188          17639.800   2.00    \n"
    );
    // The third line of the heads has the units of all columns but those whose title is longer.
    let columns = columns.replace(
        "             Microseconds Microseconds                     ",
        "                          Microseconds Microseconds",
    );
    for text in [csv.as_str(), keys, columns.as_str()] {
        assert_eq!(Tool::of_output(text), Some(Tool::Netperf));
        let row = only(Tool::Netperf, text, "netperf -t TCP_RR -H 10.0.0.2 -- -r 32,32 -o x");
        assert_eq!((row.size_bytes, row.count), (Some(32), Some(35_280)), "{text}");
        assert!(
            near(row.mean_ns, 28_345.0) && near(row.p50_ns, 30_500.0) && near(row.p99_ns, 94_000.0),
            "{row:?}"
        );
        assert!((row.quantile_step_ns - 5_000.0).abs() < 1e-9, "above 100 us, a bucket has 10 us: {row:?}");
    }
}

#[test]
fn netperf_s_classic_table_gives_the_mean() {
    let text = format!(
        "{NETPERF_BANNER}Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\nSend   Recv   Size     Size    Time     \
         Rate         \nbytes  Bytes  bytes    bytes   secs.    per sec   \n\n16384  131072 32       32      10.00    20000.00\n16384  \
         131072 \n"
    );
    let row = only(Tool::Netperf, &text, "");
    assert_eq!((row.size_bytes, row.count, row.p50_ns), (Some(32), Some(200_000), None));
    assert!(near(row.mean_ns, 25_000.0), "{row:?}");
    let bare = only(
        Tool::Netperf,
        "16384  131072 1        1       10.00    20000.00\n16384  131072\n",
        "netperf -P 0",
    );
    assert!(near(bare.mean_ns, 25_000.0));
    let burst = text.replace("first burst 0", "first burst 8");
    assert!(Tool::Netperf.parse(&burst, &[]).is_err(), "the rate of overlapping transactions is no latency");
}

/// Selectors with their titles, and values of one run; the last four are not read.
const OMNI: [(&str, [&str; 4], &str); 14] = [
    ("MEAN_LATENCY", ["Mean", "Latency", "Microseconds", ""], "56.69"),
    ("P50_LATENCY", ["50th", "Percentile", "Latency", "Microseconds"], "61"),
    ("P99_LATENCY", ["99th", "Percentile", "Latency", "Microseconds"], "188"),
    ("TRANSACTION_RATE", ["Transaction", "Rate", "Tran/s", ""], "17639.800"),
    ("ELAPSED_TIME", ["Elapsed", "Time", "(sec)", ""], "2.00"),
    ("REQUEST_SIZE", ["Request", "Size", "Bytes", ""], "32"),
    ("THROUGHPUT", ["Throughput", "", "", ""], "17639.80"),
    ("THROUGHPUT_UNITS", ["Throughput", "Units", "", ""], "Trans/s"),
    ("RT_LATENCY", ["Round", "Trip", "Latency", "usec/tran"], "56.690"),
    ("MIN_LATENCY", ["Minimum", "Latency", "Microseconds", ""], "-1"),
    ("LSS_SIZE_REQ", ["Local", "Send Socket", "Size", "Requested"], "-1"),
    ("PROTOCOL", ["Protocol", "", "", ""], "TCP"),
    ("COMMAND_LINE", ["Command", "Line", "", ""], "\"netperf -t omni -- -o P50_LATENCY,P99_LATENCY\""),
    ("RESULT_BRAND", ["Result", "Tag", "", ""], "\"\""),
];

/// netperf's output for selectors, in blocks for `-O`.
fn omni(blocks: &[&[usize]], form: usize) -> String {
    let all: Vec<_> = blocks.iter().flat_map(|block| block.iter().map(|place| OMNI[*place])).collect();
    let title =
        |of: &[&str; 4]| of.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = match form {
        0 => all.iter().map(|(name, _, value)| format!("{name}={value}")).collect(),
        1 => {
            let titles = all.iter().map(|(_, titles, _)| title(titles)).collect::<Vec<_>>().join(",");
            vec![titles, all.iter().map(|(_, _, value)| *value).collect::<Vec<_>>().join(",")]
        }
        _ => {
            let line = |block: &[usize], of: &dyn Fn(usize) -> &'static str| -> String {
                let width = |place: usize| {
                    let titles = OMNI[place].1.iter().map(|part| part.len()).max().unwrap();
                    titles.max(OMNI[place].2.len() + 1)
                };
                block
                    .iter()
                    .map(|place| format!("{:1$}", of(*place), width(*place)))
                    .collect::<Vec<_>>()
                    .join(" ")
                    + " "
            };
            let block = |block: &&[usize]| {
                let titles = (0..4).map(|row| line(block, &|place| OMNI[place].1[row])).collect::<Vec<_>>();
                format!("{}\n{}\n", titles.join("\n"), line(block, &|place| OMNI[place].2))
            };
            blocks.iter().map(block).collect()
        }
    };
    lines.join("\n") + "\n"
}

proptest::proptest! {
    #[test]
    fn netperf_s_selectors_are_read_in_any_order_and_form(
        order in proptest::sample::subsequence((0..OMNI.len()).collect::<Vec<_>>(), 1..=OMNI.len()).prop_shuffle(),
        cut in 0..OMNI.len(), has_banner in proptest::bool::ANY,
    ) {
        let banner = "OMNI Send|Recv TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET\n\
                      Interim result: 17000.00 Trans/s over 1.000 seconds ending at 1732574401.123\n";
        // A block of words alone has no line that is known to be its values.
        let has_number = order.iter().take(cut).any(|place| OMNI[*place].2.parse::<f64>().is_ok());
        let (first, second) = order.split_at(if has_number { cut.min(order.len()) } else { 0 });
        let blocks: Vec<&[usize]> = [first, second].into_iter().filter(|block| !block.is_empty()).collect();
        let has = |place: usize| order.contains(&place);
        let mean = [0, 3, 6, 8].into_iter().any(has);
        for form in 0..3 {
            let text = format!("{}{}", if has_banner { banner } else { "" }, omni(&blocks, form));
            let parsed = Tool::Netperf.parse(&text, &words("netperf -l 2"));
            let Ok(output) = parsed else {
                assert!(!mean, "{text}{parsed:?}");
                continue;
            };
            let row = output.rows[0];
            assert!((row.mean_ns.is_some_and(|ns| (ns - 28_345.0).abs() < 1.0)) == mean, "{text}{row:?}");
            assert_eq!((row.p50_ns, row.p99_ns), if mean {
                (has(1).then_some(30_500.0), has(2).then_some(94_000.0))
            } else {
                (None, None)
            }, "{text}");
            assert_eq!(row.size_bytes, Some(if has(5) { 32 } else { 1 }), "{text}");
            if has(0) || has(1) {
                assert_eq!(Tool::of_output(&text), Some(Tool::Netperf), "{text}");
            }
        }
    }
}

#[test]
fn a_throughput_in_bits_is_no_rate_of_transactions() {
    for text in [
        "THROUGHPUT=9.41\nTHROUGHPUT_UNITS=10^6bits/s\n",
        "Throughput,Throughput Units\n9.41,10^6bits/s\n",
        "Throughput Throughput \n           Units      \n9.41       10^6bits/s \n",
    ] {
        let error = Tool::Netperf.parse(text, &[]).unwrap_err().to_string();
        assert!(error.contains("the output of netperf has"), "{error}");
    }
}

#[test]
fn netperf_without_a_count_has_no_percentiles_unless_its_duration_is_known() {
    let alone = Tool::Netperf.parse("P99_LATENCY=44\n", &[]).unwrap_err().to_string();
    assert!(alone.contains("has no times: netperf does not say how many round trips it measured"), "{alone}");
    let text = "MEAN_LATENCY=20.00\nP99_LATENCY=44\n";
    let output = Tool::Netperf.parse(text, &[]).unwrap();
    assert_eq!((output.rows[0].p99_ns, output.warnings.len()), (None, 1));
    let counted = |command| only(Tool::Netperf, text, command).count;
    assert_eq!(counted("netperf -t UDP_RR -l 2"), Some(100_000));
    assert_eq!((counted("netperf"), counted("netperf -l -500")), (Some(500_000), Some(500)));
}

/// The format of eflatency's text since Onload 8.
const EFLATENCY: &str = "# ef_vi_version_str: 9.0.2\n# NIC(s) 3 -1\n# udp payload len: 0:64:32\n# iterations: 100000\n\
                         # warmups: 10000\n# frame len: 42\n# TX mode: CTPIO\n# RX event type: EF_EVENT_TYPE_RX\n\
                         paylen\tmean\tmin\t50%\t95%\t99%\tmax\n0\t3.379\t3.301\t3.370\t3.502\t3.650\t21.118\n\
                         32\t3.398\t3.312\t3.390\t3.520\t3.671\t19.021\n";

#[test]
fn eflatency_prints_whole_round_trips_as_text_and_yaml() {
    let yaml = "# eflatency test\n---\ndatetime: Mon Nov 23 10:00:00 2026\niterations: 100000\nwarmups: 10000\n\
                ping_or_pong: ping\nresults:\n  - { payload_len: 0, frame_len: 42, mean: 3379, min: 3301, median: 3370, 95%: 3502, \
                99%: 3650, max: 21118, runtime_mean: 3381 }\n  - { payload_len: 32, frame_len: 74, mean: 3398, min: 3312, median: \
                3390, 95%: 3520, 99%: 3671, max: 19021, runtime_mean: 3400 }\n";
    for text in [EFLATENCY, yaml] {
        let (tool, output) = parse(text).unwrap();
        assert_eq!((tool, output.rows.len(), output.warnings.len()), (Tool::Eflatency, 2, 0));
        let row = output.rows[1];
        assert_eq!((row.size_bytes, row.count), (Some(32), Some(100_000)));
        assert!(
            near(row.mean_ns, 1_699.0) && near(row.p50_ns, 1_695.0) && near(row.p99_ns, 1_835.5),
            "{row:?}"
        );
    }
    let old = "# ef_vi_version_str: 201811\n# udp payload len: 0\n# iterations: 100000\nmean round-trip time: 3.379 usec\n";
    let row = parse(old).unwrap().1.rows[0];
    assert!(near(row.mean_ns, 1_689.5) && row.p50_ns.is_none() && row.size_bytes == Some(0), "{row:?}");
    assert!(parse("# ef_vi_version_str: 9.0.2\n").unwrap_err().to_string().contains("ping end"));
}

#[test]
fn sfnt_pingpong_is_read_in_both_of_its_reports() {
    let (tool, half) = parse(SFNT).unwrap();
    let (_, full) = parse(&SFNT.replace("1/2 RTT", "RTT")).unwrap();
    assert_eq!((tool, half.rows.len()), (Tool::Sfnt, 3));
    assert!(near(full.rows[0].mean_ns, half.rows[0].mean_ns.unwrap() / 2.0));
    let other = parse(&SFNT.replace("percentile=99", "percentile=90")).unwrap().1;
    assert_eq!((other.rows[0].p99_ns, other.warnings.len()), (None, 1));
}

#[test]
fn programs_are_known_by_their_command_and_their_output() {
    let of = |line: &str| Tool::of_command(&words(line));
    assert_eq!(of("taskset -c 3 /opt/bin/sockperf ping-pong"), Some(Tool::Sockperf));
    assert_eq!(of("onload -p latency sfnt-pingpong udp 10.0.0.2"), Some(Tool::Sfnt));
    assert_eq!((of("tcp 10.0.0.2 --wait spin"), of("")), (None, None));
    assert_eq!(parse("hello\n"), Err(ToolError::Unknown));
    assert!(ToolError::Unknown.to_string().contains("sfnt-pingpong, sockperf, netperf, eflatency"));
    assert!(matches!(Tool::Sfnt.parse(&"x".repeat(BYTES_MAX + 1), &[]), Err(ToolError::TooLong(_))));
}

#[test]
fn some_programs_name_the_cpus_of_both_ends() {
    let of = |tool, line: &str| cpus_of(tool, &words(line));
    assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity=1;0 tcp h"), Some((1, 0)));
    assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity 1;0 tcp h"), Some((1, 0)));
    assert_eq!(of(Tool::Sfnt, "sfnt-pingpong --affinity 1,1 tcp h"), None);
    assert_eq!(
        (of(Tool::Netperf, "netperf -T 2,3"), of(Tool::Netperf, "netperf -T2,3")),
        (Some((2, 3)), Some((2, 3)))
    );
    assert_eq!(of(Tool::Sockperf, "sockperf ping-pong"), None);
}

proptest::proptest! {
    #[test]
    fn no_text_panics(cut in 0usize..2_000, text in "[a-zA-Z0-9:=%.,#{} \\t\u{1b}\\[-]{0,60}\n", pick in 0usize..4) {
        let real = [SOCKPERF, EFLATENCY, NETPERF_BANNER, SFNT][pick];
        let damaged: String = real.chars().take(cut).chain(text.chars()).chain(real.chars().skip(cut)).collect();
        for tool in Tool::ALL {
            let _ = tool.parse(&damaged, &words(&text));
        }
        let _ = parse(&damaged);
    }
}
