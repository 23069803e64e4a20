//! sysjitter 1.4's two formats: the summary on standard output and the raw file per core.
//!
//! Scripts for sysjitter work with lowlat's output: the same rows in the same order, with the same names,
//! units, spacing and file names. A raw file or summary of sysjitter that lowlat reads and writes is
//! identical byte for byte. Three notes on the figures:
//! * The percentiles are of the interruptions above the threshold, not of time, and are included for any
//!   count, as in sysjitter: of four interruptions, `int_99` is the longest. Lowlat's own output omits them
//!   then.
//! * They come from the histogram, so each is the upper edge of its cell (0.1 %), never above the longest.
//!   `int_min`, `int_mean`, `int_max`, `int_total` and `int_n` are exact.
//! * `cpu_mhz` is the counter's frequency in whole MHz, not the core's clock; nanoseconds come from the exact
//!   frequency.

mod raw;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use raw::{RawHead, RawRow, raw_file_name, raw_header, raw_row};
pub use summary::{SysjitterCore, SysjitterSummary, summary};
