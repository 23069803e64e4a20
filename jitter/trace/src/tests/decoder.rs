use super::{PAGE_BYTES, entry, head, page, page_with, recorded_files};
use crate::{
    Activity, ClockPair, CpuCursor, Decoder, FUNCTIONS_MAX, THREADS_MAX, TickMap, TraceEvent, TraceFormats,
    TraceStep, Vector,
};
use std::fmt::Write as _;

/// An event's format: the common fields, then those given as (declaration, offset, size, signed).
fn format(id: u16, fields: &[(&str, u32, u32, u8)]) -> String {
    let mut text = format!(
        "name: made\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    );
    for (field, offset, size, is_signed) in fields {
        writeln!(text, "\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{is_signed};").unwrap();
    }
    text
}

/// Formats of a kernel that has these events only.
fn formats(events: &[(&str, String)], printk_formats: &str) -> TraceFormats {
    let files = recorded_files();
    TraceFormats::parse(&files["header_page"], &files["header_event"], printk_formats, |tracepoint| {
        events.iter().find(|(path, _)| *path == tracepoint.path()).map(|(_, text)| text.clone())
    })
    .unwrap()
}

/// An entry whose record has an ID and these bytes from offset 8.
fn record(delta: u32, id: u16, bytes: &[u8]) -> Vec<u8> {
    let mut record = vec![0; 8];
    record[..2].copy_from_slice(&id.to_ne_bytes());
    record.extend(bytes);
    record.resize(record.len().next_multiple_of(4), 0);
    let mut entry = head(0, delta).to_vec();
    entry.extend((u32::try_from(record.len()).unwrap() + 4).to_ne_bytes());
    entry.extend(record);
    entry
}

fn decode(decoder: &mut Decoder, cursor: &mut CpuCursor, page: &[u8]) -> Vec<(u64, TraceStep)> {
    let mut events: Vec<TraceEvent> = Vec::new();
    decoder.page(cursor, page, &mut events);
    events.into_iter().map(|event| (event.ticks, event.step)).collect()
}

#[test]
fn the_start_of_a_wake_up_names_its_thread_and_is_recorded_on_request_only() {
    let waking = format(9, &[("char comm[16]", 8, 16, 0), ("pid_t pid", 24, 4, 1), ("int prio", 28, 4, 1)]);
    let formats = formats(&[("sched/sched_waking", waking)], "");
    assert!(formats.present.iter().all(|tracepoint| !tracepoint.is_default()));
    let mut decoder = Decoder::new(&formats, TickMap::identity(3_000_000_000));
    let bytes = [[0; 16].as_slice(), &77_i32.to_ne_bytes(), &120_i32.to_ne_bytes()].concat();
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(100, &[record(1, 9, &bytes)]));
    assert_eq!(events, [(101, TraceStep::Wakes(77))]);
}

#[test]
fn times_of_an_nmi_become_ticks() {
    let nmi =
        format(3, &[("void * handler", 8, 8, 0), ("s64 delta_ns", 16, 8, 1), ("int handled", 24, 4, 1)]);
    let mut decoder =
        Decoder::new(&formats(&[("nmi/nmi_handler", nmi)], ""), TickMap::identity(3_000_000_000));
    let nmi = |ns: i64| record(1, 3, &[[0; 8], ns.to_ne_bytes(), [0; 8]].concat());
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(100, &[nmi(1_500), nmi(-1)]));
    assert_eq!(
        events,
        [(101, TraceStep::Took(Activity::Nmi, 4_500)), (102, TraceStep::Took(Activity::Nmi, 0))]
    );
}

#[test]
fn signals_are_delivered() {
    let fields = [
        ("int sig", 8, 4, 1),
        ("int errno", 12, 4, 1),
        ("int code", 16, 4, 1),
        ("unsigned long sa_handler", 24, 8, 0),
        ("unsigned long sa_flags", 32, 8, 0),
    ];
    let mut decoder =
        Decoder::new(&formats(&[("signal/signal_deliver", format(3, &fields))], ""), TickMap::identity(1));
    let deliver = |sig: i32| record(1, 3, &[&sig.to_ne_bytes()[..], &[0; 28]].concat());
    let entries = [deliver(14), deliver(64), deliver(-1), record(1, 3, &[])];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(0, &entries));
    let point = |number| TraceStep::Point(Activity::Signal(number));
    assert_eq!(events, [(1, point(14)), (2, point(64)), (3, point(u8::MAX))]);
    assert_eq!(decoder.counts.short_count, 1);
}

#[test]
fn interrupts_between_cpus_of_aarch64_have_their_reason() {
    let reason = [("const char * reason", 8, 8, 0)];
    let printk = "0xffff800081c3e6a8 : \"Rescheduling interrupts\"\n0xffff800081c3e6c0 : \"IRQ work interrupts\"\n\
        0xffff800081c3e6d8 : \"CPU stop interrupts\"\nnonsense\n0xzz : \"Function call interrupts\"\n";
    let formats =
        formats(&[("ipi/ipi_entry", format(3, &reason)), ("ipi/ipi_exit", format(4, &reason))], printk);
    // The trace's clock counts nanoseconds, the sampler's counter 25 MHz.
    let clock = TickMap::at_rate(ClockPair { stamp: 1_000, ticks: 10, ticks_error: 0 }, 25_000_000);
    let mut decoder = Decoder::new(&formats, clock);
    let ipi = |id: u16, address: u64| record(40, id, &address.to_ne_bytes());
    let entries = [
        ipi(3, 0xffff_8000_81c3_e6a8),
        ipi(4, 0xffff_8000_81c3_e6a8),
        ipi(3, 0xffff_8000_81c3_e6c0),
        ipi(3, 0xffff_8000_81c3_e6d8),
    ];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(1_000, &entries));
    assert_eq!(
        events,
        [
            (11, TraceStep::Enter(Activity::Vector(Vector::Reschedule))),
            (12, TraceStep::Exit(Activity::Vector(Vector::Reschedule))),
            (13, TraceStep::Enter(Activity::Vector(Vector::IrqWork))),
            (14, TraceStep::Enter(Activity::Vector(Vector::OtherIpi))),
        ]
    );
}

#[test]
fn device_interrupts_have_names() {
    let irq = format(3, &[("int irq", 8, 4, 1), ("__data_loc char[] name", 12, 4, 0)]);
    let mut decoder = Decoder::new(&formats(&[("irq/irq_handler_entry", irq)], ""), TickMap::identity(1));
    let irq = |number: i32, length: u32, name: &[u8]| {
        record(1, 3, &[&number.to_ne_bytes()[..], &(length << 16 | 16).to_ne_bytes(), name].concat())
    };
    let entries = [
        irq(47, 8, b"nvme0q3\0"),
        irq(48, 5, b"\x1b[2J\0"),
        irq(49, 900, b"outside\0"),
        irq(-1, 3, b"no\0\0"),
    ];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(0, &entries));
    assert_eq!(events.len(), 3, "one that has no number is none: {events:?}");
    assert_eq!(events[0], (1, TraceStep::Enter(Activity::Irq(47))));
    let names = &decoder.names.irqs;
    assert_eq!(names.get(&47).map(String::as_str), Some("nvme0q3"));
    assert_eq!(
        names.get(&48).map(String::as_str),
        Some("\u{fffd}[2J"),
        "no control characters reach a terminal"
    );
    assert_eq!(names.get(&49), None);
    assert_eq!(decoder.counts.short_count, 1);
}

#[test]
fn ends_without_a_number_name_none() {
    let files = recorded_files();
    let formats = formats(
        &[
            ("timer/hrtimer_expire_exit", files["timer/hrtimer_expire_exit"].clone()),
            // As in kernels before 5.5.
            ("workqueue/workqueue_execute_end", format(9, &[("void * work", 8, 8, 0)])),
        ],
        "",
    );
    let id = crate::EventFormat::parse("", &files["timer/hrtimer_expire_exit"]).unwrap().id;
    let mut decoder = Decoder::new(&formats, TickMap::identity(1));
    let entries = [record(1, id, &7_u64.to_ne_bytes()), record(1, 9, &7_u64.to_ne_bytes())];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(0, &entries));
    assert_eq!(events, [(1, TraceStep::Exit(Activity::Hrtimer(0))), (2, TraceStep::Exit(Activity::Work(0)))]);
}

#[test]
fn records_that_are_unknown_or_short_are_counted_and_skipped() {
    let vec = format(3, &[("unsigned int vec", 8, 4, 0)]);
    let mut decoder = Decoder::new(&formats(&[("irq/softirq_entry", vec)], ""), TickMap::identity(1));
    let entries =
        [record(1, 99, &[]), record(1, 3, &[]), entry(1, 1, &[3]), record(1, 3, &300_u32.to_ne_bytes())];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(0, &entries));
    assert_eq!(events, [(4, TraceStep::Enter(Activity::Softirq(u8::MAX)))]);
    assert_eq!((decoder.counts.unknown_count, decoder.counts.short_count), (1, 2));
}

#[test]
fn losses_and_damage_stand_where_they_are() {
    let fault = format(3, &[]);
    let mut decoder =
        Decoder::new(&formats(&[("exceptions/page_fault_user", fault)], ""), TickMap::identity(1));
    let mut cursor = CpuCursor::default();
    let lost = page_with(500, 1 << 31 | 1 << 30, &[record(7, 3, &[])], &12_u64.to_ne_bytes());
    let fault = TraceStep::Point(Activity::PageFault);
    assert_eq!(decode(&mut decoder, &mut cursor, &lost), [(500, TraceStep::Lost(12)), (507, fault)]);
    let damaged = page(600, &[record(1, 3, &[]), entry(5, 0, &[])]);
    assert_eq!(decode(&mut decoder, &mut cursor, &damaged), [(601, fault), (601, TraceStep::Lost(0))]);
    assert_eq!(decode(&mut decoder, &mut cursor, &[]), [(601, TraceStep::Lost(0))]);
    let counts = &decoder.counts;
    assert_eq!((counts.lost_count, counts.loss_count, counts.damaged_count), (12, 1, 2));
    assert!(counts.last_damage.is_some());
    assert_eq!((cursor.event_count, cursor.lost_count), (2, 12));
}

#[test]
fn time_continues_from_page_to_page() {
    let formats = formats(&[("exceptions/page_fault_user", format(3, &[]))], "");
    let mut decoder = Decoder::new(&formats, TickMap::identity(1));
    let (mut cursor, mut other) = (CpuCursor::default(), CpuCursor::default());
    let mut at = |cursor: &mut CpuCursor, stamp: u64| {
        decode(&mut decoder, cursor, &page(stamp, &[record(0, 3, &[])]))[0].0
    };
    assert_eq!(at(&mut cursor, 10_000_000_000), 10_000_000_000);
    assert_eq!(at(&mut cursor, 9_999_999_000), 10_000_000_000, "a little back is now");
    assert_eq!(at(&mut other, 5), 5, "CPUs have nothing to do with each other");
    assert_eq!(at(&mut cursor, 1_000), 1_000, "a counter that was reset");
    assert_eq!(decoder.counts.backward_count, 2);
}

fn switch_format() -> String {
    let thread = |which: &str, at: u32| {
        [
            (format!("char {which}_comm[16]"), at, 16, 0),
            (format!("pid_t {which}_pid"), at + 16, 4, 1),
            (format!("int {which}_prio"), at + 20, 4, 1),
        ]
    };
    let fields = [thread("prev", 8), thread("next", 32)].concat();
    let fields: Vec<_> =
        fields.iter().map(|(field, offset, size, sign)| (field.as_str(), *offset, *size, *sign)).collect();
    format(3, &fields)
}

fn switch(from: (&str, i32, i32), to: (&str, i32, i32)) -> Vec<u8> {
    let thread = |(comm, pid, prio): (&str, i32, i32)| {
        let mut bytes = comm.as_bytes().to_vec();
        bytes.resize(16, 0);
        bytes.extend(pid.to_ne_bytes());
        bytes.extend(prio.to_ne_bytes());
        bytes
    };
    record(1, 3, &[thread(from), thread(to)].concat())
}

#[test]
fn threads_have_the_name_and_the_priority_that_they_have_now() {
    let mut decoder =
        Decoder::new(&formats(&[("sched/sched_switch", switch_format())], ""), TickMap::identity(1));
    let entries = [
        switch(("swapper/1", 0, 120), ("old", 7, 120)),
        switch(("new-name-16-char", 7, 49), ("swapper/1", 0, 120)),
    ];
    let events = decode(&mut decoder, &mut CpuCursor::default(), &page(0, &entries));
    assert_eq!(
        events,
        [
            (1, TraceStep::Switch { from: 0, to: 7, hold: None }),
            (2, TraceStep::Switch { from: 7, to: 0, hold: None })
        ]
    );
    let thread = &decoder.names.threads[&7];
    assert_eq!((thread.comm.as_str(), thread.prio), ("new-name-16-char", 49));
}

/// An entry in a format that contains the thread on the CPU.
fn record_of(thread: i32, id: u16, bytes: &[u8]) -> Vec<u8> {
    let mut entry = record(1, id, bytes);
    // After the entry's header and length, the ID, flags and preemption count.
    entry[12..16].copy_from_slice(&thread.to_ne_bytes());
    entry
}

#[test]
fn switches_that_are_not_reported_show_in_the_next_event() {
    let with_pid = |id, fields: &[_]| format(id, &[&[("int common_pid", 4, 4, 1)], fields].concat());
    let pid = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    let formats = formats(
        &[
            ("sched/sched_switch", format!("{}{pid}", switch_format())),
            ("signal/signal_deliver", with_pid(4, &[("int sig", 8, 4, 1)])),
            ("nmi/nmi_handler", with_pid(5, &[("s64 delta_ns", 8, 8, 1)])),
        ],
        "",
    );
    let mut decoder = Decoder::new(&formats, TickMap::identity(1_000_000_000));
    let switch_from = |from: i32, to: i32| {
        let mut entry = switch(("a", from, 120), ("b", to, 120));
        entry[12..16].copy_from_slice(&from.to_ne_bytes());
        entry
    };
    let signal = |thread| record_of(thread, 4, &10_i32.to_ne_bytes());
    let nmi = |thread| record_of(thread, 5, &0_i64.to_ne_bytes());
    let (point, took) = (TraceStep::Point(Activity::Signal(10)), TraceStep::Took(Activity::Nmi, 0));
    let told = |from, to| TraceStep::Switch { from, to, hold: None };

    let mut cursor = CpuCursor::default();
    let first = page(0, &[signal(7), switch_from(7, 70), nmi(7), signal(7), switch_from(9, 7), signal(7)]);
    assert_eq!(
        decode(&mut decoder, &mut cursor, &first),
        [
            (1, point),
            (2, told(7, 70)),
            (3, took),
            (4, told(7, 7)),
            (4, point),
            (5, told(9, 9)),
            (5, told(9, 7)),
            (6, point),
        ],
        "an NMI may come between a switch's event and the switch"
    );
    assert_eq!((decoder.counts.missed_switch_count, decoder.counts.event_count), (2, 6));

    // If events are missing anyway, the switch may be one of them.
    let after_loss = page_with(100, 1 << 31, &[signal(8)], &[]);
    assert_eq!(decode(&mut decoder, &mut cursor, &after_loss), [(100, TraceStep::Lost(0)), (101, point)]);
    assert_eq!(decode(&mut decoder, &mut CpuCursor::default(), &page(200, &[signal(3)])), [(201, point)]);
}

#[test]
fn tables_of_names_do_not_grow_beyond_their_bound() {
    let work = format(4, &[("void * work", 8, 8, 0), ("void * function", 16, 8, 0)]);
    let formats =
        formats(&[("sched/sched_switch", switch_format()), ("workqueue/workqueue_execute_start", work)], "");
    let mut decoder = Decoder::new(&formats, TickMap::identity(1));
    let mut cursor = CpuCursor::default();
    let mut events = Vec::new();
    for pid in 0..i32::try_from(THREADS_MAX).unwrap() + 100 {
        let address = 0xffff_ffff_8100_0000 + u64::from(pid.unsigned_abs());
        let entries = [
            switch(("busy", pid, 120), ("busy", pid, 120)),
            record(1, 4, &[0_u64.to_ne_bytes(), address.to_ne_bytes()].concat()),
        ];
        decoder.page(&mut cursor, &page(0, &entries)[..PAGE_BYTES], &mut events);
    }
    assert_eq!(decoder.names.threads.len(), THREADS_MAX);
    assert_eq!(decoder.functions.len(), FUNCTIONS_MAX);
    assert_eq!(decoder.counts.unnamed_count, 300);
    assert_eq!(decoder.counts.event_count, 2 * (THREADS_MAX as u64 + 100), "the events are all there");
}
