//! Number of possible CPUs, and a small number of this thread.

use std::sync::{
    LazyLock,
    atomic::{AtomicUsize, Ordering},
};

/// One past the highest number of a CPU that can ever exist.
pub fn own_parts() -> usize {
    static COUNT: LazyLock<usize> = LazyLock::new(|| {
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        possible_count(&possible).unwrap_or_else(|| {
            // Without /sys. A CPU with a higher number falls back to shared parts.
            std::thread::available_parallelism().map_or(1, usize::from)
        })
    });
    *COUNT
}

/// The count behind a list such as "0-63" or "0-3,8-11".
fn possible_count(list: &str) -> Option<usize> {
    let highest = list.trim().rsplit([',', '-']).next()?;
    highest.parse::<usize>().ok()?.checked_add(1)
}

/// A small number of this thread.
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Relaxed: the numbers only have to differ.
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // While the thread ends it has no number any more.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_possible_cpu_counts() {
        assert_eq!(possible_count("0-63\n"), Some(64));
        assert_eq!(possible_count("0"), Some(1));
        assert_eq!(possible_count("0-3,8-11"), Some(12));
        assert_eq!(possible_count(""), None);
        assert_eq!(possible_count("none"), None);
    }
}
