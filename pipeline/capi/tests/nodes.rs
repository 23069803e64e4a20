//! The functions of the header, called like from C.
#![allow(clippy::borrow_as_ptr, reason = "as C gives addresses")]

use crate::allocator;
use crate::master_thread::{self, MasterThread};
use lowlat_capi::*;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
    ptr,
};

pub fn words(text: *const c_char) -> String {
    // SAFETY: a text of the library, which ends with a zero.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

pub fn options(socket: &CStr, name: &'static CStr) -> NodeOptions {
    NodeOptions {
        size_bytes: u32::try_from(size_of::<NodeOptions>()).unwrap(),
        abi_version: lowlat_abi_version(),
        socket: socket.as_ptr(),
        name: name.as_ptr(),
        role: c"test".as_ptr(),
        writes: ptr::null(),
        capacity_bytes: 1 << 16,
        keys: 4,
        wait: LOWLAT_WAIT_PARKED,
        reads: ptr::null(),
        reads_count: 0,
    }
}

/// All records of these streams.
pub fn reads_of(streams: *const c_char) -> NodeReads {
    let which = LOWLAT_KEYS_ALL;
    NodeReads {
        streams,
        keys: ptr::null(),
        key_count: 0,
        which,
        overrun: LOWLAT_OVERRUN_GAP,
        behind_max: 0,
        start: LOWLAT_START_HEAD,
        reserved: 0,
        start_after: 0,
    }
}

pub fn strategy_options(socket: &CStr, name: &'static CStr) -> StrategyNodeOptions {
    StrategyNodeOptions {
        size_bytes: u32::try_from(size_of::<StrategyNodeOptions>()).unwrap(),
        abi_version: LOWLAT_ABI_VERSION,
        socket: socket.as_ptr(),
        name: name.as_ptr(),
        number: LOWLAT_NUMBER_FREE,
        wait: LOWLAT_WAIT_FAST,
        instruments: ptr::null(),
        instrument_count: 0,
        capacity_bytes: 0,
        overrun: LOWLAT_OVERRUN_GAP,
        start: LOWLAT_START_HEAD,
        behind_max: 0,
        start_after: 0,
        reads: ptr::null(),
        reads_count: 0,
    }
}

pub fn join(options: &NodeOptions) -> Result<*mut Node, (Status, String)> {
    let mut node = ptr::null_mut();
    // SAFETY: the options' texts outlive the call.
    match unsafe { lowlat_join(options, &mut node) } {
        Status::Ok => Ok(node),
        status => Err((status, words(lowlat_last_error()))),
    }
}

/// Events that a handler has counted.
#[derive(Default)]
struct EventCounts {
    records: u64,
    bytes: u64,
    lost: u64,
    has_begun: bool,
    is_over: bool,
    nested: Option<[Status; 4]>,
}

unsafe extern "C" fn count(user: *mut c_void, node: *mut Node, event: *const Event) {
    // SAFETY: `poll` below passes an `EventCounts`, and the library an event.
    let (seen, event) = unsafe { (&mut *user.cast::<EventCounts>(), &*event) };
    match event.kind {
        LOWLAT_EVENT_RECORD => {
            // SAFETY: the event is of a record, and its stream's name ends with a zero.
            let (record, stream) = unsafe { (&*event.record, CStr::from_ptr(event.stream)) };
            assert_eq!(stream, c"numbers");
            seen.records += 1;
            seen.bytes += u64::try_from(record.payload_bytes).unwrap();
        }
        LOWLAT_EVENT_LOST => seen.lost += event.lost,
        LOWLAT_EVENT_BEGIN => {
            seen.has_begun = true;
            // SAFETY: the node is the one that is polled.
            seen.nested = Some(unsafe {
                [
                    lowlat_poll(node, Some(count), user, ptr::null_mut()),
                    lowlat_wait(node, 0),
                    lowlat_ended(node),
                    lowlat_leave(node),
                ]
            });
        }
        LOWLAT_EVENT_STOP => seen.is_over = true,
        _ => {}
    }
}

fn poll(node: *mut Node, seen: &mut EventCounts) {
    // SAFETY: the node lives, and the counts outlive the call.
    unsafe {
        assert_eq!(lowlat_wait(node, lowlat_now_ns() + 20_000_000), Status::Ok);
        let mut events = usize::MAX;
        assert_eq!(lowlat_poll(node, Some(count), ptr::from_mut(seen).cast(), &mut events), Status::Ok);
        assert_ne!(events, usize::MAX);
    }
}

fn poll_until(node: *mut Node, seen: &mut EventCounts, what: &str, is_so: impl Fn(&EventCounts) -> bool) {
    master_thread::until(what, || {
        poll(node, seen);
        is_so(seen)
    });
}

fn publish(node: *mut Node, instrument: u32, payload: &[u8]) -> (Status, u64) {
    let stamp = RecordStamp { kind: 77, instrument, ..RecordStamp::default() };
    let mut sequence = u64::MAX;
    // SAFETY: the node lives, and the rest is local.
    let status =
        unsafe { lowlat_publish(node, &stamp, payload.as_ptr().cast(), payload.len(), &mut sequence) };
    (status, sequence)
}

#[test]
fn published_records_are_read_without_allocating() {
    const RECORDS: u64 = 1000;
    let master = MasterThread::start(|_| ());
    let socket = c_path(&master.socket());
    let writer = join(&NodeOptions { writes: c"numbers".as_ptr(), ..options(&socket, c"writer") }).unwrap();
    let (keys, streams) = ([1, 3], c"num*".as_ptr());
    let wants = NodeReads { keys: keys.as_ptr(), key_count: 2, which: LOWLAT_KEYS_ONLY, ..reads_of(streams) };
    let reader = NodeOptions { reads: &raw const wants, reads_count: 1, ..options(&socket, c"reader") };
    // The writer learns of the reader by polling, after the begin; before that it waits for no reader.
    let reader = join(&reader).unwrap();
    master.begin();
    let (mut at_writer, mut at_reader) = (EventCounts::default(), EventCounts::default());
    poll_until(writer, &mut at_writer, "the writer begins", |seen| seen.has_begun);
    poll_until(reader, &mut at_reader, "the reader begins", |seen| seen.has_begun);
    assert_eq!(at_writer.nested, Some([Status::Busy; 4]));

    let mut last = None;
    let mut round = |records: u64| {
        for number in 0..records {
            let instrument = u32::try_from(number % 4).unwrap();
            let (status, sequence) = publish(writer, instrument, b"12345");
            assert_eq!((status, last.unwrap_or(sequence - 1) + 1), (Status::Ok, sequence));
            last = Some(sequence);
            if number % 32 == 0 {
                poll(reader, &mut at_reader);
            }
        }
        poll(reader, &mut at_reader);
        poll(reader, &mut at_reader);
    };
    round(100);
    let (asked, ()) = allocator::asked(|| round(RECORDS));
    assert_eq!(asked.allocations, 0, "allocations of {RECORDS} records");
    assert_eq!((at_reader.records, at_reader.lost), (RECORDS.midpoint(100), 0));
    assert_eq!(at_reader.bytes, 5 * at_reader.records);

    // A payload that is too long and a node without a stream have different statuses.
    assert_eq!(publish(writer, 0, &vec![0; 1 << 16]).0, Status::TooLong);
    assert!(words(lowlat_last_error()).contains("takes"), "{}", words(lowlat_last_error()));
    assert_eq!(publish(reader, 0, b"").0, Status::NoStream);

    master.with(|master, _| master.stop());
    poll_until(reader, &mut at_reader, "the stop request", |seen| seen.is_over);
    // SAFETY: both live, and are not used any more.
    unsafe {
        assert_eq!(lowlat_ended(reader), Status::Ok);
        assert_eq!((lowlat_node_epoch(writer), lowlat_node_number(writer) < 1024), (1, true));
        assert_eq!((lowlat_leave(writer), lowlat_leave(reader)), (Status::Ok, Status::Ok));
    }
    master.expect(
        "the writer has left",
        |it| matches!(it, lowlat_trade::master::Happened::Left { name } if name == "writer"),
    );
}

#[test]
fn failed_joins_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = c_path(&folder.path().join("master.sock"));
    let check = |options: NodeOptions, status: Status, part: &str| {
        let (found, text) = join(&options).unwrap_err();
        assert!(
            found == status && text.contains(part),
            "{found:?}, expected {status:?} with {part:?}: {text}"
        );
    };
    check(options(&nobody, c"x"), Status::Unreachable, folder.path().to_str().unwrap());
    check(options(&nobody, c"../x"), Status::Argument, "../x");
    let good = options(&nobody, c"x");
    check(NodeOptions { abi_version: 99, ..good }, Status::Version, "interface 99");
    check(NodeOptions { size_bytes: 8, ..good }, Status::Version, "8 bytes");
    check(NodeOptions { socket: ptr::null(), ..good }, Status::Argument, "socket is NULL");
    check(NodeOptions { name: ptr::null(), ..good }, Status::Argument, "name is NULL\nhint: give it a value");
    check(NodeOptions { role: ptr::null(), ..good }, Status::Unreachable, "master.sock");
    check(NodeOptions { name: c"\xff".as_ptr(), ..good }, Status::Argument, "UTF-8");
    check(NodeOptions { wait: 3, ..good }, Status::Argument, "wait 3");
    check(NodeOptions { reads_count: 1, ..good }, Status::Argument, "reads is NULL");
    for (wants, text) in [
        (NodeReads { which: 9, ..reads_of(c"md".as_ptr()) }, "which 9"),
        (NodeReads { overrun: 9, ..reads_of(c"md".as_ptr()) }, "overrun 9"),
        (NodeReads { start: 9, ..reads_of(c"md".as_ptr()) }, "start 9"),
    ] {
        check(NodeOptions { reads: &raw const wants, reads_count: 1, ..good }, Status::Argument, text);
    }
    // SAFETY: NULL is reported, whatever it stands for.
    unsafe {
        let mut node = ptr::null_mut();
        assert_eq!(lowlat_join(ptr::null(), &mut node), Status::Argument);
        assert_eq!(lowlat_join(&good, ptr::null_mut()), Status::Argument);
        assert_eq!(
            lowlat_poll(ptr::null_mut(), Some(count), ptr::null_mut(), ptr::null_mut()),
            Status::Argument
        );
        assert_eq!(
            (lowlat_wait(ptr::null_mut(), 0), lowlat_leave(ptr::null_mut())),
            (Status::Argument, Status::Ok)
        );
        assert_eq!((lowlat_node_number(ptr::null()), lowlat_node_epoch(ptr::null())), (u32::MAX, 0));
    }
}

#[test]
fn strategies_and_names_are_refused_with_a_reason() {
    let master = MasterThread::start(|_| ());
    let socket = c_path(&master.socket());
    let strategy = |name, number| StrategyNodeOptions { number, ..strategy_options(&socket, name) };
    let mut node = ptr::null_mut();
    let mut order = Order { side: 5, price: 1, quantity: 1, ..Order::default() };
    // SAFETY: all is local or of the library.
    unsafe {
        assert_eq!(lowlat_join_strategy(&strategy(c"a", 16384), &mut node), Status::Argument);
        assert!(words(lowlat_last_error()).contains("number 16384"));
        assert_eq!(lowlat_node_strategy(ptr::null()), u32::MAX);
        assert_eq!(lowlat_join_strategy(&strategy(c"a", 5), &mut node), Status::Ok);
        let mut other = ptr::null_mut();
        assert_eq!(lowlat_join_strategy(&strategy(c"a", 6), &mut other), Status::Refused);
        let text = words(lowlat_last_error());
        assert!(
            other.is_null() && text.contains(socket.to_str().unwrap()) && text.contains("node a"),
            "{text}"
        );

        assert_eq!(lowlat_send_order(node, ptr::null(), &mut order), Status::Argument);
        assert!(words(lowlat_last_error()).contains("side 5"));
        order.side = LOWLAT_SIDE_SELL;
        for (wrong, part) in [
            (Order { r#type: 3, ..order }, "type 3: expected LOWLAT_TYPE_LIMIT"),
            (
                Order { action: LOWLAT_ACTION_CANCEL, ..order },
                "action 1: expected LOWLAT_ACTION_NEW\nhint: call",
            ),
        ] {
            let mut wrong = wrong;
            assert_eq!(lowlat_send_order(node, ptr::null(), &mut wrong), Status::Argument);
            assert!(words(lowlat_last_error()).contains(part), "{}", words(lowlat_last_error()));
            assert_eq!(wrong.number, 0, "nothing is sent");
        }
        assert_eq!(lowlat_send_order(node, ptr::null(), &mut order), Status::Ok);
        assert!(order.number > 0 && order.scheduled_ns == order.received_ns && order.received_ns > 0);
        let first = order.number;
        let (asked, sent) = allocator::asked(|| lowlat_send_order(node, ptr::null(), &mut order));
        assert_eq!((sent, order.number, asked.allocations), (Status::Ok, first + 1, 0));
        let (asked, changed) = allocator::asked(|| {
            let replaced = lowlat_replace_order(node, ptr::null(), 1, first, 2, 3);
            (replaced, lowlat_cancel_order(node, ptr::null(), 1, first))
        });
        assert_eq!((changed, asked.allocations), ((Status::Ok, Status::Ok), 0));
        let plain = join(&options(&socket, c"plain")).unwrap();
        assert_eq!(lowlat_send_order(plain, ptr::null(), &mut order), Status::Argument);
        assert!(words(lowlat_last_error()).contains("lowlat_join_strategy"));
        assert_eq!(lowlat_cancel_order(plain, ptr::null(), 1, first), Status::Argument);
        assert_eq!(lowlat_open_orders(plain, ptr::null_mut(), 0, &mut 0), Status::Argument);
        assert!(words(lowlat_last_error()).contains("lowlat_join_strategy"));
        assert_eq!(lowlat_positions(node, ptr::null_mut(), 0, &mut 0), Status::NoLedger);
        assert!(words(lowlat_last_error()).contains("lowlat_positions: the run has no ledger"));
        assert_eq!((lowlat_leave(node), lowlat_leave(plain)), (Status::Ok, Status::Ok));
    }
}

#[test]
fn a_dropped_node_learns_it_and_cannot_publish() {
    let master = MasterThread::start(|_| ());
    let socket = c_path(&master.socket());
    let node = join(&NodeOptions { writes: c"numbers".as_ptr(), ..options(&socket, c"given-up") }).unwrap();
    // SAFETY: it lives.
    assert_eq!(unsafe { lowlat_ended(node) }, Status::Ok);
    master.with(|master, _| master.drop_node("given-up").unwrap());
    let mut seen = EventCounts::default();
    poll_until(node, &mut seen, "the stop request", |seen| seen.is_over);
    // SAFETY: as above.
    assert_eq!(unsafe { lowlat_ended(node) }, Status::Fenced);
    assert!(words(lowlat_last_error()).contains("restart this program"));
    assert_eq!(publish(node, 0, b"late").0, Status::Fenced);
    // SAFETY: as above, and it is not used any more.
    assert_eq!(unsafe { lowlat_leave(node) }, Status::Ok);
}

/// What a handler heard: kinds of events, and the time of a timer.
#[derive(Default)]
struct Heard {
    kinds: Vec<u32>,
    due_ns: u64,
}

/// Sets a timer of one millisecond at each record.
unsafe extern "C" fn hear(user: *mut c_void, node: *mut Node, event: *const Event) {
    // SAFETY: the test passes a `Heard`, and the library an event.
    let (heard, event) = unsafe { (&mut *user.cast::<Heard>(), &*event) };
    heard.kinds.push(event.kind);
    match event.kind {
        // SAFETY: the node is the one that is polled.
        LOWLAT_EVENT_RECORD => unsafe {
            assert_eq!(lowlat_set_timer(node, lowlat_now_ns() + 1_000_000), Status::Ok);
        },
        LOWLAT_EVENT_TIMER => heard.due_ns = event.due_ns,
        _ => {}
    }
}

#[test]
fn a_strategy_reads_other_streams_has_a_timer_and_a_descriptor() {
    let master = MasterThread::start(|_| ());
    let socket = c_path(&master.socket());
    let reads = NodeReads { overrun: LOWLAT_OVERRUN_CONFLATE, ..reads_of(c"signals".as_ptr()) };
    let asked =
        StrategyNodeOptions { reads: &raw const reads, reads_count: 1, ..strategy_options(&socket, c"s") };
    let (mut node, mut descriptor, mut heard) = (ptr::null_mut(), -1, Heard::default());
    // SAFETY: all is local or of the library, and outlives the calls.
    unsafe {
        assert_eq!(lowlat_join_strategy(&asked, &mut node), Status::Ok, "{}", words(lowlat_last_error()));
        assert_eq!(lowlat_node_descriptor(node, ptr::null_mut()), Status::Argument);
        assert_eq!(lowlat_node_descriptor(node, &mut descriptor), Status::Ok);
    }
    let writer = join(&NodeOptions { writes: c"signals".as_ptr(), ..options(&socket, c"writer") }).unwrap();
    for instrument in [2, 2] {
        assert_eq!(publish(writer, instrument, b"up").0, Status::Ok);
    }
    // SAFETY: it is valid until the node is released.
    let readable = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
    master_thread::until("the timer", || {
        let mut waited = [rustix::event::PollFd::new(&readable, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut waited, None).unwrap();
        // SAFETY: as above.
        unsafe {
            assert_eq!(lowlat_poll(node, Some(hear), (&raw mut heard).cast(), ptr::null_mut()), Status::Ok);
        }
        heard.due_ns > 0
    });
    assert_eq!(heard.kinds, [LOWLAT_EVENT_RECORD, LOWLAT_EVENT_TIMER], "the latest record, then the timer");
    // SAFETY: they are not used any more.
    assert_eq!(unsafe { (lowlat_leave(node), lowlat_leave(writer)) }, (Status::Ok, Status::Ok));
}

#[test]
fn a_node_starts_at_the_oldest_record_or_after_a_sequence() {
    let master = MasterThread::start(|_| ());
    let socket = c_path(&master.socket());
    let writer = join(&NodeOptions { writes: c"numbers".as_ptr(), ..options(&socket, c"writer") }).unwrap();
    (0..5).for_each(|_| assert_eq!(publish(writer, 0, b"one").0, Status::Ok));
    let starts = [(LOWLAT_START_HEAD, 1), (LOWLAT_START_OLDEST, 6), (LOWLAT_START_AFTER, 3)];
    let readers = starts.map(|(start, records)| {
        let reads = NodeReads { start, start_after: 3, ..reads_of(c"numbers".as_ptr()) };
        let name = [c"head", c"oldest", c"after"][usize::try_from(start).unwrap()];
        let asked = NodeOptions { reads: &raw const reads, reads_count: 1, ..options(&socket, name) };
        (join(&asked).unwrap(), records)
    });
    // It connects its readers.
    poll(writer, &mut EventCounts::default());
    assert_eq!(publish(writer, 0, b"one").0, Status::Ok);
    for (reader, records) in readers {
        let mut seen = EventCounts::default();
        poll_until(reader, &mut seen, "its records", |seen| seen.records == records);
        assert_eq!(seen.lost, 0);
        // SAFETY: it is not used any more.
        assert_eq!(unsafe { lowlat_leave(reader) }, Status::Ok);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { lowlat_leave(writer) }, Status::Ok);
}
