//! A trace.dat, as `trace-cmd report` reads it.

use super::{PAGE_BYTES, fixture, recorded_files, recorded_formats};
use crate::{CpuCursor, Decoder, EventFormat, Page, TickMap, TraceClock, TraceFile};
use std::{collections::BTreeMap, process::Command};

const HZ: u64 = 2_000_000_000;

/// The file's events according to trace-cmd: CPU, stamp and name. `None` without trace-cmd.
fn reported(bytes: &[u8], arguments: &[&str]) -> Option<Vec<String>> {
    let path = std::env::temp_dir().join(format!("lowlat-dat-{}-{:p}", std::process::id(), bytes));
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new("trace-cmd").arg("report").args(arguments).arg("-i").arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: trace-cmd: {error}");
            return None;
        }
    };
    let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(errors.lines().all(|line| line.ends_with("is empty")), "{errors}");
    Some(text.lines().map(str::to_owned).collect())
}

type Pages = BTreeMap<u32, Vec<u8>>;

fn file(pages: Pages, senders: Pages) -> TraceFile {
    let mut formats = recorded_files();
    TraceFile {
        page_bytes: PAGE_BYTES,
        headers: ["header_page", "header_event"].map(|name| formats.remove(name).unwrap()),
        formats,
        kallsyms: String::new(),
        printk_formats: String::new(),
        threads: "17695 spinner\n".into(),
        clock: (TraceClock::X86Tsc, HZ),
        pages,
        senders,
    }
}

/// The events of sub-buffers as lowlat reads them: "CPU stamp name", in order of time.
fn expected(cpu: u32, pages: &[u8]) -> Vec<(u64, String)> {
    let formats = recorded_formats();
    let names: BTreeMap<u16, String> = recorded_files()
        .iter()
        .filter_map(|(path, text)| {
            Some((EventFormat::parse(path, text).ok()?.id, path.rsplit_once('/')?.1.into()))
        })
        .collect();
    let mut all = Vec::new();
    for page in pages.chunks(PAGE_BYTES) {
        for entry in Page::parse(page, &formats.page).unwrap().entries().map(Result::unwrap) {
            let id = u16::from_ne_bytes([entry.record[0], entry.record[1]]);
            all.push((entry.stamp, format!("{cpu} {} {}", entry.stamp, names[&id])));
        }
    }
    all
}

/// A line of a report, "senders:  busy-17695 [003] 32615049206491: local_timer_entry:  vector=236", in the same words.
fn found(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    let (cpu, rest) = rest.split_once(']')?;
    let mut words = rest.split(':').map(str::trim);
    Some(format!("{} {} {}", cpu.parse::<u32>().ok()?, words.next()?, words.next()?))
}

#[test]
fn trace_cmd_reports_what_the_decoder_reads() {
    let (one, other) = (fixture("busy-cpu.bin.gz"), fixture("overflow.bin.gz"));
    let senders = Pages::from([(1, one.clone())]);
    let whole = file(Pages::from([(0, other.clone()), (3, one.clone())]), senders).to_bytes();
    let Some(lines) = reported(&whole, &["--raw-ts"]) else { return };
    let mut all = [expected(0, &other), expected(3, &one), expected(1, &one)].concat();
    let mut decoder = Decoder::new(&recorded_formats(), TickMap::identity(HZ));
    for pages in [&one, &one, &other] {
        let (mut cursor, mut events) = (CpuCursor::default(), Vec::new());
        pages.chunks(PAGE_BYTES).for_each(|page| decoder.page(&mut cursor, page, &mut events));
    }
    assert_eq!(decoder.counts.event_count, all.len() as u64);
    all.sort();
    let mut events: Vec<String> = lines.iter().filter_map(|line| found(line)).collect();
    let mut wanted: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    events.sort();
    wanted.sort();
    assert_eq!(events.len(), wanted.len(), "{:?}", &lines[..lines.len().min(9)]);
    assert_eq!(events, wanted);
}

#[test]
fn times_are_seconds_and_threads_have_their_names() {
    let one = file(Pages::from([(3, fixture("busy-cpu.bin.gz"))]), Pages::new());
    let Some(lines) = reported(&one.to_bytes(), &["-t"]) else { return };
    // 32615049206491 ticks at 2 GHz.
    let first = lines.iter().find(|line| line.contains("[003]")).unwrap();
    assert!(
        first.contains("spinner-17695 [003] 16307.52460324") && first.contains("local_timer_entry"),
        "{first}"
    );
}

#[test]
fn a_trace_without_a_page_is_a_file() {
    let empty = file(Pages::from([(2, Vec::new())]), Pages::new()).to_bytes();
    assert_eq!(reported(&empty, &[]).unwrap_or_default().iter().filter_map(|line| found(line)).count(), 0);
    // Its last bytes are the places of three CPUs of the second buffer.
    assert_eq!(&empty[empty.len() - 58..], [&b"flyrecord\0"[..], &[0; 48]].concat());
}
