//! Opening a capture of arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_sys::Root;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(root) = Root::from_capture("fuzz", bytes) {
        let _ = root.list("/proc");
        let _ = root.read("/proc/cpuinfo");
        let _ = root.glob("/sys/*/*/online");
    }
});
