//! Machine and CPU of an end of a connection, which both ends tell each other.

use lowlat_feed::gateway::{Kind, Message};
use rustix::thread::sched_getaffinity;
use std::fs;

/// A number of this boot of this machine, the same in all its namespaces; 0 if it is unknown.
pub(super) fn machine() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// The CPU to which this thread is pinned, if it is only one.
fn cpu() -> Option<u32> {
    let cpus = sched_getaffinity(None).ok().filter(|cpus| cpus.count() == 1)?;
    (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu)).and_then(|cpu| u32::try_from(cpu).ok())
}

/// The answer to a logon.
pub(super) fn logged_on() -> Message {
    let quantity = cpu().map_or(0, |cpu| cpu + 1);
    Message { id: machine(), quantity, ..Message::of(Kind::LoggedOn) }
}
