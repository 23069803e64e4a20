use super::{entry, head, page, page_with, recorded_files};
use crate::{Channel, Level, SendCursor, SendDecoder, SendFormats, SendStep, Targets, TickMap};
use std::fmt::Write as _;

/// Declaration, offset, size.
type Field = (&'static str, u32, u32);

const QUEUE: &[Field] =
    &[("unsigned int cpu", 8, 4), ("void * callsite", 16, 8), ("void * func", 24, 8), ("void * csd", 32, 8)];
const SEND: &[Field] = &[("unsigned int cpu", 8, 4), ("void * callsite", 16, 8), ("void * callback", 24, 8)];
const SEND_MANY: &[Field] =
    &[("__data_loc cpumask_t cpumask", 8, 4), ("void * callsite", 16, 8), ("void * callback", 24, 8)];
const RAISE: &[Field] = &[("__data_loc unsigned long[] target_cpus", 8, 4), ("const char * reason", 16, 8)];
const EXIT: &[Field] = &[("char comm[16]", 8, 16), ("pid_t pid", 24, 4)];
const WAKE: &[Field] = &[("char comm[16]", 8, 16), ("pid_t pid", 24, 4)];
const STACK: &[Field] = &[("int size", 8, 4), ("unsigned long caller[8]", 16, 64)];

const ALL: &[(&str, u16, &[Field])] = &[
    ("csd/csd_queue_cpu", 1, QUEUE),
    ("ipi/ipi_send_cpu", 2, SEND),
    ("ipi/ipi_send_cpumask", 3, SEND_MANY),
    ("ipi/ipi_raise", 4, RAISE),
    ("sched/sched_process_exit", 5, EXIT),
    ("ftrace/kernel_stack", 6, STACK),
    ("sched/sched_waking", 7, WAKE),
    ("sched/sched_migrate_task", 8, WAKE),
];

fn format(id: u16, fields: &[Field]) -> String {
    let mut text = format!("name: made\nID: {id}\nformat:\n");
    let common: [Field; 3] = [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("int common_pid", 4, 4),
    ];
    for (field, offset, size) in common.iter().chain(fields) {
        let signed = u8::from(field.starts_with("int"));
        writeln!(text, "\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};").unwrap();
    }
    text
}

/// Formats of a kernel with these events.
fn formats(paths: &[&str], printk_formats: &str) -> Option<SendFormats> {
    let files = recorded_files();
    let of = |path: &str| {
        let found = ALL.iter().find(|(known, ..)| *known == path && paths.contains(&path));
        found.map(|(_, id, fields)| format(*id, fields))
    };
    let with_wakes = paths.contains(&"sched/sched_waking");
    SendFormats::parse(&files["header_page"], &files["header_event"], printk_formats, with_wakes, of).unwrap()
}

/// A record of a thread, with these flags and bytes from offset 8.
fn record(id: u16, flags: u8, thread: i32, bytes: &[u8]) -> Vec<u8> {
    let mut record = id.to_ne_bytes().to_vec();
    record.extend([flags, 0]);
    record.extend(thread.to_ne_bytes());
    record.extend(bytes);
    record.resize(record.len().next_multiple_of(4), 0);
    let mut entry = head(0, 10).to_vec();
    entry.extend((u32::try_from(record.len()).unwrap() + 4).to_ne_bytes());
    entry.extend(record);
    entry
}

fn words(first: u32, rest: &[u64]) -> Vec<u8> {
    let mut bytes = first.to_ne_bytes().to_vec();
    bytes.extend([0; 4]);
    for word in rest {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// The events of a page of CPU 0 as text.
fn decode(decoder: &mut SendDecoder, page: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    decoder.page(0, &mut SendCursor::default(), page, |send| {
        let step = match send.step {
            SendStep::Stack(frames) => format!("Stack {:?}", frames.iter().collect::<Vec<_>>()),
            SendStep::Ends(name) => format!("Ends {}", String::from_utf8_lossy(name)),
            step => format!("{step:?}"),
        };
        all.push(format!("{} {} {:?} {step}", send.ticks, send.thread, send.level));
    });
    all
}

#[test]
fn senders_are_read_with_their_targets_and_stacks() {
    let paths: Vec<&str> = ALL.iter().map(|(path, ..)| *path).collect();
    let formats = formats(&paths, "").unwrap();
    // The older event reports the same interrupts again.
    assert!(formats.present.iter().all(|event| event.path != "ipi/ipi_raise"));
    let mut decoder = SendDecoder::new(formats, TickMap::identity(1_000_000_000));
    let mask_at = 8 << 16 | 32_u32;
    let page = page(
        100,
        &[
            record(1, 0, 7, &words(3, &[0x10, 0x20, 0x30])),
            record(2, 0x10, 7, &words(3, &[0x10, 0x40])),
            record(2, 0x08, 7, &words(3, &[0x10, 0])),
            // To itself, so no other CPU requested it.
            record(2, 0, 7, &words(0, &[0x10, 0x50])),
            record(3, 0, 7, &words(mask_at, &[0x10, 0x40, 0b1010])),
            record(6, 0, 7, &words(2, &[0x60, 0x70, 0x80])),
            record(5, 0, 7, b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0"),
            record(7, 0x08, 7, b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0"),
            record(99, 0, 7, &[]),
        ],
    );
    assert_eq!(
        decode(&mut decoder, &page),
        [
            "110 7 Thread Queues { cpu: 3, function: 32, request: 48, callsite: 16 }",
            "120 7 Softirq Sends { targets: One(3), channel: Some(Call), callsite: 16, callback: 64 }",
            "130 7 Interrupt Sends { targets: One(3), channel: Some(Reschedule), callsite: 16, callback: 0 }",
            "150 7 Thread Sends { targets: Mask([10, 0, 0, 0, 0, 0, 0, 0]), channel: Some(Call), callsite: 16, callback: 64 }",
            "160 7 Thread Stack [96, 112]",
            "170 7 Thread Ends sh",
            "180 7 Interrupt Wakes(8)",
        ]
    );
    assert_eq!(decoder.unreadable_count(), 0);
}

#[test]
fn older_arm64_kernels_have_one_event_with_a_reason() {
    let reasons = "0x500 : \"Rescheduling interrupts\"\n0x600 : \"Function call interrupts\"\n";
    let mut decoder = SendDecoder::new(formats(&["ipi/ipi_raise"], reasons).unwrap(), TickMap::identity(1));
    let raise = |reason| record(4, 0, 7, &words((8 << 16) | 0x18, &[reason, 0b10]));
    let events = decode(&mut decoder, &page(0, &[raise(0x500), raise(0x600), raise(0x700)]));
    let channels: Vec<bool> = [Some(Channel::Reschedule), Some(Channel::Call), None]
        .iter()
        .zip(&events)
        .map(|(channel, event)| event.contains(&format!("channel: {channel:?}")))
        .collect();
    assert_eq!(channels, [true; 3], "{events:?}");
}

#[test]
fn a_kernel_without_these_events_is_said_so() {
    assert!(formats(&[], "").is_none());
    assert!(formats(&["sched/sched_process_exit", "ftrace/kernel_stack"], "").is_none());
    // One that only traces who wakes threads, as Linux 6.1 does.
    assert!(!formats(&["sched/sched_waking", "ftrace/kernel_stack"], "").unwrap().has_sends());
}

#[test]
fn losses_and_damage_are_reported() {
    let mut decoder = SendDecoder::new(formats(&["ipi/ipi_send_cpu"], "").unwrap(), TickMap::identity(1));
    let lost = page_with(500, 1 << 31, &[record(2, 0, 7, &words(1, &[0, 0]))], &[]);
    let events = decode(&mut decoder, &lost);
    assert_eq!(events[0], "500 0 Thread Lost { since: 0 }");
    assert_eq!(events.len(), 2);
    // Too short for its fields, and an entry that runs over the end.
    for damaged in [page(1, &[record(2, 0, 7, &[1])]), page(1, &[entry(0, 1, &[5_000])])] {
        let events = decode(&mut decoder, &damaged);
        assert!(events.len() == 1 && events[0].contains("Lost"), "{events:?}");
    }
    assert_eq!(decode(&mut decoder, &[0; 4]), ["0 0 Thread Lost { since: 0 }"]);
    assert_eq!(decoder.unreadable_count(), 3);
}

#[test]
fn masks_and_levels() {
    let mask = Targets::Mask(&[0b10, 0b1]);
    let hit: Vec<u32> = (0..20).filter(|cpu| mask.contains(*cpu)).collect();
    assert_eq!(hit, [1, 8]);
    assert!(Targets::One(3).contains(3) && !Targets::One(3).contains(2) && !mask.contains(u32::MAX));
    assert!(Level::Thread < Level::Nmi && Level::COUNT == 4);
}
