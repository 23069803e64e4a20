//! The kernel's trace: arbitrary sub-buffers decoded, and what comes of them attributed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_jitter::{attribution::AttributionPlan, attribution::CpuAttributor};
use lowlat_trace::{CpuCursor, Decoder, EventFormat, TickMap, TraceEvent, TraceFormats};

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
    \tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";

/// A format of an event with its fields.
fn format(name: &str, id: u16, fields: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{fields}\nprint fmt: \"\"\n"
    )
}

fn formats() -> TraceFormats {
    let known = |path: String| match path.as_str() {
        "irq/irq_handler_entry" => Some(format(
            "irq_handler_entry",
            1,
            "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n",
        )),
        "irq/irq_handler_exit" => {
            Some(format("irq_handler_exit", 2, "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"))
        }
        "irq_vectors/local_timer_entry" => {
            Some(format("local_timer_entry", 3, "\tfield:int vector;\toffset:8;\tsize:4;\tsigned:1;\n"))
        }
        "sched/sched_switch" => Some(format(
            "sched_switch",
            4,
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
             \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
             \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
        )),
        _ => None,
    };
    TraceFormats::parse(HEADER_PAGE, HEADER_EVENT, "", |tracepoint| known(tracepoint.path())).expect("formats of our own")
}

fuzz_target!(|data: &[u8]| {
    let _ = EventFormat::parse("any", &String::from_utf8_lossy(data));
    let mut decoder = Decoder::new(&formats(), TickMap::identity(1_000_000_000));
    let mut cursor = CpuCursor::default();
    let mut events: Vec<TraceEvent> = Vec::new();
    for page in data.chunks(4096) {
        decoder.page(&mut cursor, page, &mut events);
    }
    let plan = AttributionPlan { hz: 1_000_000_000, worst_count: 4, first_count: 4, events_max: 1_000, ..AttributionPlan::default() };
    let mut attributor = CpuAttributor::new(plan);
    let mut total = 0;
    for part in events.chunks(64) {
        attributor.push_events(part);
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let (before, now) = (first.ticks.min(last.ticks), first.ticks.max(last.ticks));
        attributor.attribute(before, now);
        total += u128::from(now - before);
    }
    let run_ns = data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let causes = attributor.finish(&decoder.names, run_ns);
    let parts: u128 = causes.totals.iter().map(|total| u128::from(total.ns_total)).sum();
    assert!(parts <= total.min(u128::from(u64::MAX)), "{parts} of {total}");
});
