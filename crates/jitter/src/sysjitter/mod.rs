//! sysjitter 1.4's two formats, written and read: the summary on standard output and the raw file per core.
//!
//! Scripts written for sysjitter work on what lowlat writes: same rows in the same order, same names, units and
//! spacing, same file names. What lowlat writes from a raw file or a summary that sysjitter wrote is that file byte
//! for byte. Three things to know about the figures:
//! * The percentiles are of the interruptions above the threshold, not of time, and are given for any count, as
//!   sysjitter gives them: of four interruptions, `int_99` is the longest. Lowlat's own output leaves them out then.
//! * They come from the histogram, so each is the upper edge of its cell (0.1 %), never above the longest.
//!   `int_min`, `int_mean`, `int_max`, `int_total` and `int_n` are exact.
//! * `cpu_mhz` is the counter's frequency in whole MHz, not the core's clock; nanoseconds come from the exact frequency.

mod error;
mod raw;
mod summary;

pub use error::SysjitterError;
pub use raw::{RawFile, RawHead, RawOrder, RawRow, parse_raw, raw_file_name, raw_header, raw_row};
pub use summary::{SysjitterCore, SysjitterSummary, parse_summary, summary};
