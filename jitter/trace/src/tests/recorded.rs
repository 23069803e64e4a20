use super::{PAGE_BYTES, fixture, recorded_formats};
use crate::{Activity, CpuCursor, Decoder, TickMap, TraceEvent, TraceStep, Vector};
use std::collections::BTreeMap;

fn decode(name: &str) -> (Decoder, CpuCursor, Vec<TraceEvent>) {
    let mut decoder = Decoder::new(&recorded_formats(), TickMap::identity(2_000_000_000));
    let (mut cursor, mut events) = (CpuCursor::default(), Vec::new());
    fixture(name).chunks(PAGE_BYTES).for_each(|page| decoder.page(&mut cursor, page, &mut events));
    (decoder, cursor, events)
}

/// The kind of an event, without its numbers.
fn kind(step: &TraceStep) -> String {
    let activity = |activity: &Activity| match activity {
        Activity::Vector(vector) => format!("{vector:?}"),
        Activity::Softirq(number) => format!("softirq {number}"),
        other => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
    };
    match step {
        TraceStep::Enter(entered) => format!("enter {}", activity(entered)),
        TraceStep::Called { .. } => "enter CallFunction".into(),
        TraceStep::Exit(left) => format!("exit {}", activity(left)),
        TraceStep::Took(over, _) => format!("took {}", activity(over)),
        TraceStep::Point(point) => format!("point {}", activity(point)),
        TraceStep::Switch { .. } => "switch".into(),
        TraceStep::Wakes(tid) => format!("wake {tid}"),
        TraceStep::Lost(_) => "lost".into(),
    }
}

#[test]
fn a_recorded_cpu_is_read_whole() {
    let (decoder, cursor, events) = decode("busy-cpu.bin.gz");
    let counts = decoder.counts;
    assert_eq!((counts.unknown_count, counts.short_count, counts.damaged_count), (0, 0, 0));
    assert_eq!((counts.backward_count, counts.loss_count, counts.unnamed_count), (0, 0, 0));
    assert_eq!((counts.event_count, cursor.event_count), (events.len() as u64, events.len() as u64));
    assert!(events.is_sorted_by_key(|event| event.ticks));
    let mut kinds = BTreeMap::<String, u32>::new();
    for event in &events {
        *kinds.entry(kind(&event.step)).or_default() += 1;
    }
    insta::assert_debug_snapshot!(kinds, @r#"
{
    "enter CallFunction": 1,
    "enter CallFunctionSingle": 1,
    "enter Hrtimer": 118,
    "enter Irq": 1,
    "enter LocalTimer": 117,
    "enter softirq 4": 1,
    "enter softirq 7": 2,
    "exit CallFunction": 1,
    "exit CallFunctionSingle": 1,
    "exit Hrtimer": 118,
    "exit Irq": 1,
    "exit LocalTimer": 117,
    "exit softirq 4": 1,
    "exit softirq 7": 2,
    "switch": 186,
}
"#);
    insta::assert_debug_snapshot!(decoder.names.irqs, @r#"
{
    36: "virtio1-req.0",
}
"#);
    let threads: Vec<_> =
        decoder.names.threads.values().map(|thread| format!("{} {}", thread.comm, thread.prio)).collect();
    insta::assert_debug_snapshot!(threads, @r#"
[
    "busy 120",
    "sleeper 120",
]
"#);
}

/// Everything entered is left again, innermost first, on a CPU whose trace has no gaps.
#[test]
fn interrupts_of_a_recorded_cpu_nest() {
    let (_, _, events) = decode("busy-cpu.bin.gz");
    let mut open = Vec::new();
    let mut closed_count = 0;
    for event in &events {
        match event.step {
            TraceStep::Enter(activity) => open.push(activity),
            TraceStep::Called { function, .. } => open.push(Activity::CallFunction(function)),
            TraceStep::Exit(left) => match open.pop() {
                Some(entered) => {
                    let is_same = std::mem::discriminant(&entered) == std::mem::discriminant(&left);
                    assert!(is_same, "{entered:?} {left:?}");
                    closed_count += 1;
                }
                // It was entered before recording started.
                None => assert_eq!(closed_count, 0),
            },
            _ => {}
        }
    }
    assert!(closed_count > 100, "{closed_count}");
    assert!(open.len() <= 4, "{open:?}");
}

/// Each thread that the scheduler switches away from is the one that it switched to before.
#[test]
fn switches_of_a_recorded_cpu_follow_each_other() {
    let (decoder, _, events) = decode("busy-cpu.bin.gz");
    let mut present = None;
    for event in &events {
        if let TraceStep::Switch { from, to, .. } = event.step {
            assert!(present.is_none_or(|present| present == from), "{present:?} {from}");
            assert!(decoder.names.threads.contains_key(&from));
            present = Some(to);
        }
    }
    assert!(present.is_some());
}

#[test]
fn a_buffer_that_overflowed_says_so() {
    let (decoder, cursor, events) = decode("overflow.bin.gz");
    let lost: Vec<u64> = events
        .iter()
        .filter_map(|event| if let TraceStep::Lost(count) = event.step { Some(count) } else { None })
        .collect();
    let total: u64 = lost.iter().sum();
    assert!(!lost.is_empty() && total > 0, "{lost:?}");
    assert_eq!((decoder.counts.lost_count, cursor.lost_count), (total, total));
    assert_eq!(decoder.counts.loss_count, lost.len() as u64);
    assert!(events.is_sorted_by_key(|event| event.ticks));
}

#[test]
fn timer_interrupts_hold_their_timers() {
    let (decoder, _, events) = decode("busy-cpu.bin.gz");
    let mut is_in_timer = false;
    let mut inside_count = 0;
    for event in &events {
        match event.step {
            TraceStep::Enter(Activity::Vector(Vector::LocalTimer)) => is_in_timer = true,
            TraceStep::Exit(Activity::Vector(Vector::LocalTimer)) => is_in_timer = false,
            TraceStep::Enter(Activity::Hrtimer(address)) => {
                assert!(decoder.functions.contains(&address));
                inside_count += u32::from(is_in_timer);
            }
            _ => {}
        }
    }
    assert!(inside_count > 10, "{inside_count}");
}
