//! `lowlat jitter` as people and scripts use it: the real binary, short runs on this host.

/// Prints on stderr why something was not tested, even if the test harness captures output.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod runs;

mod again;
mod document;
mod files;
mod gate;
mod help;
mod keeps;
mod refused;
mod signals;
mod stopped;
mod sysjitter;
mod tracing;
