//! Text of errors and of other programs.

use lowlat_host::printable;
use std::{
    fmt::Display,
    io::{self, Read},
};

/// Longest output of a program that is kept, in bytes.
const OUTPUT_BYTES_MAX: u64 = lowlat_net::tools::BYTES_MAX as u64;
/// Longest quote of a program's line, in characters.
const QUOTED_CHARS_MAX: usize = 160;

/// Returns an error's text without its hint and its full stop.
pub fn without_hint(error: &impl Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// Reads what a program writes until it ends, and keeps the beginning.
pub fn read_output(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // Output read before an error is kept; the rest is drained, or the program would wait for it.
        let _ = from.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        let _ = io::copy(&mut from, &mut io::sink());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the last line that is not blank, shortened and safe to print.
pub fn last_line(output: &str) -> Option<String> {
    let line = output.lines().rev().find(|line| !line.trim().is_empty())?;
    let line: String = line.trim().chars().take(QUOTED_CHARS_MAX).collect();
    Some(printable::line(&line).into_owned())
}
