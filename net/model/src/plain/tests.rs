//! Logs of every version with everything that can be before their lines.

use super::plain;
use crate::{
    sfnt::{self, SfntError, SfntLog},
    tools::{self, Losses, Tool},
};
use proptest::prelude::*;
use std::thread;

const SOCKPERF: &str = include_str!("../../tests-data/tools/sockperf-3.7-ping-pong.txt");
const NETPERF: &str = "OMNI Send|Recv TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET\n\
                       Throughput Throughput  Mean         Request Elapsed Protocol \n           Units       Latency      \
                       Size    Time             \n                       Microseconds Bytes   (sec)            \n           \
                       \n20000.00   Trans/s     50.00        32      2.00    TCP      \n";
const EFLATENCY: &str = "# eflatency test\n---\ndatetime: Mon Nov 23 10:00:00 2026\niterations: 100000\nresults:\n  - { \
                         payload_len: 32, frame_len: 74, mean: 3398, median: 3390, 99%: 3671 }\n";

/// Versions with what their headers have below the line `tsc_hz`, and the head of their sixth column.
pub(crate) const VERSIONS: [(&str, &str, &str); 7] = [
    (
        "1.0.0",
        "# options: \n# muxer=none serv-muxer=none\n# affinity=2,3\n# miniter=500 maxiter=1000 error=5\n# multicast=NO \
         loop=0\n# server_onload=0\n",
        "99%ile",
    ),
    (
        "1.1.0",
        "# options: \n# muxer=none serv-muxer=none\n# affinity=2,3\n# iter=1000-1000000 ms=1000-3000\n# server_onload=0\n",
        "99%ile",
    ),
    (
        "1.2.0",
        "# server LD_PRELOAD=\n# options: spin \n# affinity=2,3\n# iter=1000-1000000 ms=1000-3000\n# percentile=99\n",
        "%ile",
    ),
    ("1.3.0", "# server LD_PRELOAD=(null)\n", "%ile"),
    ("1.4.0", "# server LD_PRELOAD=(null)\n", "%ile"),
    ("1.5.0", "# percentile=99\n", "%ile"),
    ("1.6.0", "# percentile=99\n# reporting: 1/2 RTT\n", "%ile"),
];

/// A log with rows of the sizes 1, 2, 4, and so on.
pub(crate) fn log(version: usize, options: &str, rows: usize) -> String {
    let (number, header, percentile) = VERSIONS[version];
    let separator = if version < 3 { ',' } else { ';' };
    let text = format!(
        "# date: Wed Nov 25 22:39:56 UTC 2026\n# uname: Linux host 6.18.0 #1 SMP x86_64 GNU/Linux\n# cpu: model name\t: Any \
         CPU\nsh: 1: lspci: not found\n# eth0: driver: veth\n# ram: MemTotal:       24684092 kB\n# cmdline: sfnt-pingpong \
         --affinity 2{separator}3 {options}udp 10.0.0.2\n# version: {number}\n# src: 26b10d9bc1723c5a\n# tsc_hz: \
         2596103900\n{header}#\n#\tsize\tmean\tmin\tmedian\tmax\t{percentile}\tstddev\titer\n"
    );
    let row = |row: usize| format!("\t{}\t{}\t4000\t5000\t90000\t6000\t100\t300000\n", 1 << row, 5_100 + row);
    text + &(0..rows).map(row).collect::<String>()
}

type Prefix = fn(usize) -> String;
type Encode = fn(&str) -> Vec<u8>;

/// Prefixes of a line, by the number of the line.
const PREFIXES: [(&str, Prefix); 28] = [
    ("nothing", |_| String::new()),
    ("mail", |_| "> ".into()),
    ("mail without a space", |_| ">".into()),
    ("mail with initials", |_| "JD> ".into()),
    ("tag alone", |n| format!("sfnt[{n}]: ")),
    ("tag with a host", |_| "host1 sfnt[77]: ".into()),
    ("log of Python", |n| format!("2026-11-25 22:40:{:02},123 INFO ", n % 60)),
    ("mail, answered", |_| "> > ".into()),
    ("mail, answered twice", |_| ">>> ".into()),
    ("syslog", |n| format!("2026-11-25T22:40:{:02} host1 sfnt[123]: ", n % 60)),
    ("syslog with an offset", |n| format!("2026-11-25T22:40:{:02}.123456+01:00 host1 sfnt[{n}]: ", n % 60)),
    ("syslog, old", |n| format!("Nov {:2} 22:40:01 host-1.example.com sfnt[99]: ", n % 30 + 1)),
    ("syslog without a process", |_| "Nov 25 22:40:01 host1 sfnt: ".into()),
    ("syslog with a priority", |n| format!("<13>Nov  5 2026 09:{:02}:01 host1 sfnt[123]: ", n % 60)),
    ("RFC 5424", |_| "<165>1 2026-11-25T22:40:01.003Z host1 sfnt 123 ID47 [a@1 b=\"c d\"] ".into()),
    ("RFC 5424 without data", |_| "<165>1 2026-11-25T22:40:01.003Z host1 sfnt - - - ".into()),
    ("host", |_| "[host] ".into()),
    ("host and colon", |_| "[host-2]: ".into()),
    ("pdsh", |_| "host-2: ".into()),
    ("kernel", |n| format!("[{n:5}.123456] ")),
    ("time in brackets", |n| format!("[2026-11-25 22:40:{:02}] ", n % 60)),
    ("ts", |n| format!("Nov 25 22:40:{:02} ", n % 60)),
    ("time alone", |n| format!("22:40:{:02}.5 ", n % 60)),
    ("date", |_| "Wed Nov 25 22:40:01 UTC 2026: ".replace(" 2026:", "")),
    ("journal", |_| "2026-11-25T22:40:01+0100 host1 sfnt[123]: ".into()),
    ("container", |_| "client-1  | ".into()),
    ("Kubernetes", |_| "2026-11-25T22:40:01.123456789Z stdout F ".into()),
    ("quoted container", |_| "> client-1 | 2026/11/25 22:40:01 ".into()),
];

fn prefixed(text: &str, prefix: fn(usize) -> String) -> String {
    let line = |(number, line): (usize, &str)| prefix(number) + line;
    text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Encodings and other changes of a whole text.
const ENCODINGS: [(&str, Encode); 10] = [
    ("UTF-8", |text| text.as_bytes().to_vec()),
    ("UTF-8 with a mark", |text| format!("\u{feff}{text}").into_bytes()),
    ("UTF-16, little", |text| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ("UTF-16, big", |text| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect()),
    ("UTF-16 without a mark", |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ("title", |text| format!("\u{1b}]0;run\u{7}{text}").into()),
    ("CR LF", |text| text.replace('\n', "\r\n").into_bytes()),
    ("colours", |text| {
        format!("\u{1b}[1;31m{}\u{1b}[0m", text.replace('\n', "\u{1b}[0m\n\u{1b}[1;31m")).into()
    }),
    ("no end", |text| text.trim_end().into()),
    ("rsyslog's escapes", |text| text.replace('\t', "#011").replace('\u{1b}', "#033").into_bytes()),
];

fn read(text: &[u8]) -> Vec<SfntLog> {
    sfnt::parse(&plain(text)).unwrap()
}

#[test]
fn a_log_of_any_version_reads_the_same_behind_any_prefix_and_in_any_encoding() {
    let check = |version: usize| {
        let number = VERSIONS[version].0;
        let text = log(version, "", 3);
        let expected = sfnt::parse(&text).unwrap();
        let [only] = expected.as_slice() else { panic!("{text}") };
        assert_eq!((only.rows.len(), only.damaged.len(), only.banner.len()), (3, 0, 1), "{text}");
        assert_eq!(
            (only.percentile(), only.affinity(), only.is_round_trip()),
            (Some(99.0), Some((2, 3)), false)
        );
        assert_eq!(sfnt::doubts(only), Vec::<String>::new().as_slice(), "{number}");
        for (name, prefix) in PREFIXES {
            for (encoding, encode) in ENCODINGS {
                let bytes = encode(&prefixed(&text, prefix));
                let case = format!("{number}, {name}, {encoding}: {}", plain(&bytes));
                assert_eq!(sfnt::parse(&plain(&bytes)).as_ref(), Ok(&expected), "{case}");
                assert!(matches!(tools::parse(&plain(&bytes)), Ok((Tool::Sfnt, _))), "{case}");
            }
        }
    };
    thread::scope(|scope| {
        for version in 0..VERSIONS.len() {
            scope.spawn(move || check(version));
        }
    });
}

#[test]
fn output_of_the_other_programs_reads_the_same_behind_any_prefix() {
    for text in [SOCKPERF, NETPERF, EFLATENCY] {
        let expected = tools::parse(&plain(text.as_bytes())).unwrap();
        // Columns move if a line that starts with a space loses it.
        let prefixes =
            PREFIXES.into_iter().filter(|(name, _)| text != NETPERF || *name != "mail without a space");
        for (name, prefix) in prefixes {
            for (encoding, encode) in ENCODINGS {
                let text = encode(&prefixed(text, prefix));
                assert_eq!(tools::parse(&plain(&text)).as_ref(), Ok(&expected), "{name}, {encoding}");
            }
        }
    }
}

#[test]
fn options_that_change_the_columns_are_read_from_the_command_line_of_old_versions() {
    for (version, (number, ..)) in VERSIONS.iter().enumerate().take(6) {
        let whole = &read(log(version, "--rtt ", 1).as_bytes())[0];
        assert!(whole.is_round_trip(), "{number}");
    }
    for version in [3, 4] {
        assert_eq!(read(log(version, "--percentile=95 ", 1).as_bytes())[0].percentile(), Some(95.0));
    }
    let other = log(0, "", 1).replace("99%ile", "90%ile");
    assert_eq!(read(other.as_bytes())[0].percentile(), Some(90.0));
    let nothing = "#\tsize\tmean\tmin\tmedian\tmax\t%ile\tstddev\titer\n\t1\t5\t4\t5\t9\t6\t1\t9\n";
    assert_eq!(read(nothing.as_bytes())[0].percentile(), None, "nothing says which");
}

#[test]
fn lines_that_only_look_like_prefixes_stay() {
    for text in [
        "# cmdline: a | b",
        "\t1\t71541\t13800\t23239\t4033233\t1996253\t309464\t2000",
        "0000:05:00.0 Ethernet controller",
        "oo:sfnt-pingpong[17093]: Using OpenOnload 201811",
        "sh: 1: lspci: not found\nsockperf: x",
        "sockperf: x\nsockperf: y",
        "# iterations: 5\n# warmups: 7",
        "16384  131072 1 1 10.00 20000.00",
        "May I ask",
        "sockperf: Total 7 observations",
        "<MAX> observation",
        "é",
    ] {
        assert_eq!(plain(text.as_bytes()), text);
    }
}

/// Damage of a row, and whether its line reads as one that is damaged.
const DAMAGE: [fn(&str) -> String; 12] = [
    |row| row.chars().take(row.len() / 2).collect(),
    |row| row.replace("\t4000", "\t-4000"),
    |row| row.replace("\t5000", "\t5OOO"),
    |row| row.replace("\t5000", "\t5000.5"),
    |row| row.replace("\t5000", "\t99999999999999999999999"),
    |row| row.replace("\t300000", "\t0"),
    |row| row.replace("\t90000", "\t9"),
    |row| format!("{row}\t7"),
    |row| format!("#{row}"),
    |row| row.trim_start().replacen(|c: char| c.is_ascii_digit(), "x", 1),
    |_| "\tmessage lost".into(),
    |row| row.replace("\t100\t", "\t-2147483648\t"),
];

proptest! {
    #[test]
    fn a_damaged_row_costs_that_row_and_is_named(
        version in 0..VERSIONS.len(), prefix in 0..PREFIXES.len(), encoding in 0..ENCODINGS.len(),
        damage in proptest::collection::vec((0_usize..6, 0..DAMAGE.len()), 1..4), is_twice in any::<bool>(),
    ) {
        let text = log(version, "", 6);
        let first = text.lines().position(|line| line.starts_with("\t1\t")).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut hit: Vec<usize> = damage.iter().map(|(row, _)| *row).collect();
        for (row, how) in damage.iter().rev() {
            // Of several, the first counts.
            lines[first + row] = DAMAGE[*how](text.lines().nth(first + row).unwrap());
        }
        hit.sort_unstable();
        hit.dedup();
        let after = if is_twice { text.clone() } else { String::new() };
        let damaged = format!("{}\n{after}", lines.join("\n"));
        let bytes = ENCODINGS[encoding].1(&prefixed(&damaged, PREFIXES[prefix].1));
        let logs = sfnt::parse(&plain(&bytes)).unwrap();
        let clean = &sfnt::parse(&text).unwrap()[0];
        let kept: Vec<_> = clean.rows.iter().enumerate().filter(|(row, _)| !hit.contains(row)).map(|(_, row)| row).collect();
        prop_assert_eq!(logs[0].rows.iter().collect::<Vec<_>>(), kept);
        prop_assert_eq!(&logs[0].header, &clean.header);
        let named: Vec<String> = logs[0].damaged.iter().map(ToString::to_string).collect();
        let expected: Vec<String> = hit.iter().map(|row| format!("line {} is", first + row + 1)).collect();
        prop_assert!(named.len() == expected.len() && named.iter().zip(&expected).all(|(a, b)| a.starts_with(b)), "{:?}", named);
        prop_assert_eq!(logs.get(1), is_twice.then_some(clean));
        prop_assert!(sfnt::doubts(&logs[0]).len() >= hit.len());
        let output = tools::parse(&plain(&bytes)).unwrap().1;
        prop_assert_eq!(output.rows.len(), logs.iter().map(|log| log.rows.len()).sum::<usize>());
        prop_assert_eq!(output.warnings.len(), hit.len());
    }

    #[test]
    fn no_bytes_panic_and_lines_keep_their_numbers(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "([<>|\\[\\]:0-9TZ \\t#a-zA-Z.\u{1b}é-]{0,40}\n){0,9}") {
        let _ = plain(&bytes);
        prop_assert_eq!(plain(text.as_bytes()).split('\n').count(), text.split('\n').count());
        for start in [[0xff, 0xfe], [0xfe, 0xff]] {
            let _ = plain(&[&start[..], &bytes].concat());
        }
    }
}

#[test]
fn a_table_without_a_whole_row_is_an_error_with_its_line() {
    let negative = "# date: x\n# percentile=99\n#\n#\tsize\tmean\tmin\tmedian\tmax\t%ile\tstddev\titer\n\t32\t-5\t-10\t3\t4\t5\t6\t1000\n";
    assert!(matches!(sfnt::parse(negative), Err(SfntError::Row { line: 5, .. })));
    assert!(tools::parse(negative).unwrap_err().to_string().contains("line 5"));
}

#[test]
fn rows_below_a_damaged_head_are_named_and_belong_to_no_other_run() {
    let text = format!("{}{}", log(6, "", 2), log(6, "", 3).replace("\tmean\t", "\tm?an\t"));
    let logs = read(text.as_bytes());
    assert_eq!((logs.len(), logs[0].rows.len(), logs[0].damaged.len()), (1, 2, 3));
    assert_eq!(logs[0].damaged[0].to_string(), "line 31 is not sound: no heads of columns are above it");
}

#[test]
fn text_around_a_table_is_no_damage() {
    let text = format!("On Monday, A. wrote:\n\n{}\nreal 0m3.1s\nRegards,\nA.\n", log(5, "", 2));
    let logs = read(text.as_bytes());
    assert_eq!((logs.len(), logs[0].rows.len(), logs[0].damaged.len()), (1, 2, 0));
}

#[test]
fn sockperf_s_counts_are_read_or_absent() {
    let losses = |text: &str| tools::parse(&plain(text.as_bytes())).unwrap().1.rows[0].losses;
    assert_eq!(losses(SOCKPERF), Some(Losses::default()));
    let lost = SOCKPERF
        .replace("dropped messages = 0", "dropped messages = 3")
        .replace("duplicated messages = 0", "duplicated messages = 20")
        .replace("out-of-order messages = 0", "out-of-order messages = 1");
    assert_eq!(losses(&lost), Some(Losses { dropped: 3, duplicated: 20, out_of_order: 1 }));
    for cut in ["dropped messages = 0", "duplicated messages = 0", "out-of-order messages = 0"] {
        assert_eq!(losses(&SOCKPERF.replace(cut, "")), None, "{cut}");
        assert_eq!(losses(&SOCKPERF.replace(cut, &cut.replace("= 0", "= ?"))), None, "{cut}");
    }
}
