//! The formats of Debian's kernels, as recorded by lab/jitter in its guests: what is read of each.

use super::{LAYOUT, PAGE_BYTES, files_in, fixture, formats_from, page};
use crate::{
    Activity, CpuCursor, Decoder, EventFormat, PageLayout, TickMap, TraceEvent, TraceStep, check_entry_layout,
};

/// Debian 12's own kernel, and the one of its backports.
const KERNELS: [&str; 2] = ["formats-6.1.txt.gz", "formats-6.12.txt.gz"];

#[test]
fn every_event_that_a_kernel_has_can_be_read() {
    for kernel in KERNELS {
        let files = files_in(kernel);
        assert_eq!(PageLayout::parse(&files["header_page"]), Ok(LAYOUT), "{kernel}");
        assert_eq!(check_entry_layout(&files["header_event"]), Ok(()), "{kernel}");
        let formats = formats_from(&files);
        assert_eq!(formats.unusable, [], "{kernel}");
        // The recording is of the events that every trace has.
        let absent: &[&str] = match kernel {
            "formats-6.1.txt.gz" => &[
                "ipi/ipi_entry",
                "ipi/ipi_exit",
                "csd/csd_function_entry",
                "csd/csd_function_exit",
                "sched/sched_waking",
            ],
            _ => &["sched/sched_waking"],
        };
        assert_eq!(formats.absent, absent, "{kernel}");
    }
}

/// A record of this format with these fields, written while this thread ran.
fn record(format: &EventFormat, thread: i32, fields: &[(&str, &[u8])], tail: &[u8]) -> Vec<u8> {
    let end = format.fields.iter().map(|field| field.offset + field.size).max().unwrap();
    let mut bytes = vec![0; end];
    bytes[..2].copy_from_slice(&format.id.to_ne_bytes());
    for (name, value) in [("common_pid", &thread.to_ne_bytes()[..])].iter().chain(fields) {
        let field = format.field(name).unwrap_or_else(|| panic!("{name} of {}", format.name));
        assert!(value.len() <= field.size, "{name} of {}", format.name);
        bytes[field.offset..][..value.len()].copy_from_slice(value);
    }
    bytes.extend(tail);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An entry of a sub-buffer, one tick after the previous one.
fn entry(record: &[u8]) -> Vec<u8> {
    let words: Vec<u32> = record.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    super::entry(u32::try_from(words.len()).unwrap(), 1, &words)
}

/// Linux 6.1 marks texts as signed, 6.12 does not; both mean the same.
#[test]
fn a_disk_interrupt_and_a_switch_of_threads_have_their_names() {
    for kernel in KERNELS {
        let files = files_in(kernel);
        let format = |name: &str| EventFormat::parse(name, &files[name]).unwrap();
        let interrupt = format("irq/irq_handler_entry");
        let location = (8_u32 << 16) + 16;
        let records = [
            record(
                &interrupt,
                711,
                &[("irq", &26_i32.to_ne_bytes()), ("name", &location.to_ne_bytes())],
                b"nvme0q2\0",
            ),
            record(&format("irq/irq_handler_exit"), 711, &[("irq", &26_i32.to_ne_bytes())], &[]),
            record(
                &format("sched/sched_switch"),
                711,
                &[
                    ("prev_comm", b"dd"),
                    ("prev_pid", &711_i32.to_ne_bytes()),
                    ("prev_prio", &120_i32.to_ne_bytes()),
                    ("next_comm", b"kworker/1:2"),
                    ("next_pid", &47_i32.to_ne_bytes()),
                    ("next_prio", &100_i32.to_ne_bytes()),
                ],
                &[],
            ),
            record(
                &format("workqueue/workqueue_execute_start"),
                47,
                &[("function", &0xffff_ffff_8112_3450_u64.to_ne_bytes())],
                &[],
            ),
            record(&format("nmi/nmi_handler"), 47, &[("delta_ns", &1_500_i64.to_ne_bytes())], &[]),
        ];
        let entries: Vec<Vec<u8>> = records.iter().map(|record| entry(record)).collect();
        let mut decoder = Decoder::new(&formats_from(&files), TickMap::identity(2_000_000_000));
        let (mut cursor, mut events) = (CpuCursor::default(), Vec::new());
        decoder.page(&mut cursor, &page(100, &entries), &mut events);
        let steps: Vec<TraceStep> = events.iter().map(|event: &TraceEvent| event.step).collect();
        let expected = [
            TraceStep::Enter(Activity::Irq(26)),
            TraceStep::Exit(Activity::Irq(26)),
            TraceStep::Switch { from: 711, to: 47, hold: None },
            TraceStep::Enter(Activity::Work(0xffff_ffff_8112_3450)),
            TraceStep::Took(Activity::Nmi, 3_000),
        ];
        assert_eq!(steps, expected, "{kernel}");
        let names = &decoder.names;
        assert_eq!(names.irqs[&26], "nvme0q2", "{kernel}");
        let thread = |tid: i32| (names.threads[&tid].comm.as_str(), names.threads[&tid].prio);
        assert_eq!((thread(711), thread(47)), (("dd", 120), ("kworker/1:2", 100)), "{kernel}");
    }
}

/// A processor under Debian's own kernel, recorded in a guest.
#[test]
fn a_recorded_cpu_of_linux_6_1_is_read_whole() {
    let mut decoder = Decoder::new(&formats_from(&files_in(KERNELS[0])), TickMap::identity(2_000_000_000));
    let (mut cursor, mut events) = (CpuCursor::default(), Vec::new());
    let recorded = fixture("busy-cpu-6.1.bin.gz");
    recorded.chunks(PAGE_BYTES).for_each(|page| decoder.page(&mut cursor, page, &mut events));
    let counts = decoder.counts;
    assert_eq!((counts.unknown_count, counts.short_count, counts.damaged_count), (0, 0, 0));
    assert_eq!((counts.backward_count, counts.loss_count, counts.unnamed_count), (0, 0, 0));
    assert!(counts.event_count > 50 && events.is_sorted_by_key(|event| event.ticks), "{counts:?}");
    assert!(decoder.names.threads.values().any(|thread| thread.comm == "busy"), "{:?}", decoder.names);
    let count = |step: fn(&TraceStep) -> bool| events.iter().filter(|event| step(&event.step)).count();
    let entered = count(|step| matches!(step, TraceStep::Enter(Activity::Vector(_) | Activity::Hrtimer(_))));
    let left = count(|step| matches!(step, TraceStep::Exit(Activity::Vector(_) | Activity::Hrtimer(_))));
    assert!(entered > 10 && entered.abs_diff(left) <= 2, "{entered} {left}");
    assert!(count(|step| matches!(step, TraceStep::Switch { .. })) > 10);
}
