//! Opening a capture of arbitrary bytes. Run it with `-rss_limit_mb=1024 -timeout=20`, so that a small input that takes
//! much memory or time counts as a crash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_host_run::Root;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(root) = Root::from_capture("fuzz", bytes) {
        let _ = root.list("/proc");
        let _ = root.read("/proc/cpuinfo");
        let _ = root.glob("/sys/*/*/online");
    }
});
