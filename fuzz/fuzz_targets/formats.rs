//! Output of other programs: sysjitter's files; and gates as users type them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_jitter::{gate::Gate, sysjitter};

fuzz_target!(|text: &str| {
    let _ = sysjitter::testing::parse_summary(text).map_err(|error| error.to_string());
    let _ = sysjitter::testing::parse_raw(text).map_err(|error| error.to_string());
    if let Err(error) = Gate::parse(text) {
        let _ = (error.to_string(), error.pointer());
    }
});
