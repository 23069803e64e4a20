//! Lists of threads, CPUs and rows for display.

use super::BusyThread;

/// Maximum number of names in one text.
const NAMED_MAX: usize = 8;

/// "md (pid 12, CPU 3, 100 %), kernel thread ksoftirqd/3 (pid 30, CPU 3, 4 %) and 5 more". `count` is the
/// total number.
pub(super) fn threads(threads: &[BusyThread], count: usize, look_ms: u64) -> String {
    let words: Vec<String> = threads.iter().take(NAMED_MAX).map(|thread| in_words(thread, look_ms)).collect();
    and_more(&words, count)
}

/// "boot.nohz_full, boot.isolcpus and 3 more".
pub(super) fn ids(ids: &[String]) -> String {
    let words: Vec<String> = ids.iter().take(NAMED_MAX).cloned().collect();
    and_more(&words, ids.len())
}

fn and_more(words: &[String], count: usize) -> String {
    let named = words.join(", ");
    match count.saturating_sub(words.len()) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn in_words(thread: &BusyThread, look_ms: u64) -> String {
    let kind = if thread.is_kernel { "kernel thread " } else { "" };
    let tid = if thread.tid == thread.pid { String::new() } else { format!(", thread {}", thread.tid) };
    let share = thread.used_ms.saturating_mul(100).checked_div(look_ms).unwrap_or(0).clamp(1, 100);
    format!("{kind}{} (pid {}{tid}, CPU {}, {share} %)", thread.comm, thread.pid, thread.cpu)
}
