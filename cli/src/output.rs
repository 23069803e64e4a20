//! Output of the command: results on stdout, and messages on stderr.
//!
//! Everything that lowlat prints passes through here. This keeps control characters from files, names, arguments and
//! servers off the terminal.

use anyhow::Context;
use lowlat_host::printable;
use lowlat_host_run::{Root, programs};
use serde::Serialize;
use std::{
    backtrace::BacktraceStatus,
    borrow::Cow,
    io::{self, Write},
    process::{Command, Stdio},
};

/// Prints a text of lowlat-results-report on stdout, with colours on a terminal only. A closed pipe is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_safe(&own_styles(text))
}

/// Prints a text as [`print()`] does, or in the user's pager if it is longer than the terminal.
pub fn print_paged(text: &str) -> anyhow::Result<()> {
    let text = own_styles(text);
    pager(text.lines().count()).map_or_else(|| print_safe(&text), |pager| print_in(pager, &text))
}

/// Returns the pager for a text of this many lines: that of `PAGER`, or less if the variable is unset. None is used without
/// a terminal, if the text fits the screen, or if the user turned paging off with an empty `PAGER` or `cat`.
fn pager(lines: usize) -> Option<Command> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // A terminal that does not tell its size has none.
    if size.ws_row == 0 || lines < usize::from(size.ws_row) {
        return None;
    }
    let less = || programs::find(&Root::live(), "less", &std::env::var("PATH").unwrap_or_default());
    let named =
        std::env::var("PAGER").ok().or_else(less).filter(|named| !["", "cat"].contains(&named.trim()))?;
    let mut command = Command::new("sh");
    command.args(["-c", &named]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // As git has it: colours, and nothing left to quit if the text fits.
        command.env("LESS", "FRX");
    }
    Some(command)
}

/// Prints a text in a pager. One that cannot start is no reason to show nothing.
fn print_in(mut pager: Command, text: &str) -> anyhow::Result<()> {
    let is_plain = anstream::stdout().current_choice() == anstream::ColorChoice::Never;
    let shown = if is_plain { anstream::adapter::strip_str(text).to_string() } else { text.to_owned() };
    let Ok(mut child) = pager.spawn() else { return print_safe(text) };
    lowlat_host_run::output::leave_interrupts();
    // A reader who has seen enough closes it early.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(shown.as_bytes()));
    // The shell's answer if there is no such program.
    let is_missing = child.wait().is_ok_and(|status| status.code() == Some(127));
    if is_missing { print_safe(text) } else { Ok(()) }
}

/// Prints a text that contains outside names, paths or answers on stdout.
pub fn print_plain(text: &str) -> anyhow::Result<()> {
    print_safe(&printable::lines(text))
}

fn print_safe(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    let ended = if text.ends_with('\n') { "" } else { "\n" };
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(ended.as_bytes()));
    is_read(written.and_then(|()| stdout.flush())).map(drop)
}

/// Returns false if the reader of stdout has closed it.
pub fn is_read(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).context("cannot write to stdout"),
    }
}

/// Prints a line on stdout, and returns false if its reader is gone.
pub fn print_line(line: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    let whole = format!("{}\n", printable::lines(line));
    is_read(stdout.write_all(whole.as_bytes()).and_then(|()| stdout.flush()))
}

/// A result for programs: its fields after those that every document of lowlat has.
#[derive(Debug, Serialize)]
pub struct Document<T> {
    #[serde(rename = "document")]
    kind: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Document<T> {
    /// Names the kind of document. `content` is a struct or a map without fields of these names.
    pub fn of(kind: &'static str, content: T) -> Self {
        Self { kind, schema_version: 1, content }
    }
}

/// Prints a result as JSON on stdout, or as the text that lowlat-results-report makes of it for the terminal's width.
pub fn print_as(
    is_json: bool,
    value: &impl Serialize,
    text: impl FnOnce(usize) -> String,
) -> anyhow::Result<()> {
    if is_json { print_json(value) } else { print(&text(width())) }
}

/// Prints a document as JSON on stdout. One without fields of its own for kind and version is a [`Document`].
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_safe(&json_lines(value)?)
}

/// Formats a value as JSON over several lines, without terminal control characters.
pub fn json_lines(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(printable::indented(&json_line(value)?))
}

/// Formats a value as JSON on one line, without terminal control characters.
pub fn json_line(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string(value).context("cannot write the result as JSON")?;
    Ok(printable::json(&text).into_owned())
}

/// Prints a message on stderr. It may contain outside names, paths or answers, so control characters are escaped.
/// A failure to write is ignored: there is no other channel to report it on.
pub fn talk(text: &str) {
    let line = format!("{}\n", for_stderr(&printable::lines(text)));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints a text of lowlat-results-report on stderr, with its colours.
pub fn talk_painted(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", for_stderr(&own_styles(text)));
}

/// Prints an error of clap about the command line on stderr, with its colours.
pub fn talk_of_usage(text: &str) {
    let _ = write!(anstream::stderr(), "{}", for_stderr(text));
}

/// Returns the text wrapped at the width of the terminal on stderr, or unchanged for a pipe or a file.
fn for_stderr(text: &str) -> Cow<'_, str> {
    stderr_columns().map_or(Cow::Borrowed(text), |columns| Cow::Owned(wrapped(text, columns)))
}

/// Indent of a continued line, more than that of its first line.
const HANG: usize = 2;

/// Wraps each line at spaces. A word that is longer than the width stays whole, because people copy paths and commands.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len() + HANG;
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            if column > indent && column + columns(word.trim_end()) > width {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            out.push_str(word);
            column += columns(word);
        }
    }
    out
}

/// Returns the number of columns of a text, which may contain styles.
fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().count()
}

/// Codes of the styles in lowlat's own texts: reset, bold, dim, and the colours of verdicts.
const OWN_STYLES: [&str; 7] = ["0", "1", "2", "31", "32", "33", "36"];

/// Returns the text with lowlat's own styles and no other escape sequence. lowlat-report already escapes outside text;
/// this is the second line of defence.
pub fn own_styles(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('\u{1b}');
    let mut out = printable::lines(parts.next().unwrap_or_default());
    for part in parts {
        let style = part.strip_prefix('[').and_then(|part| part.split_once('m'));
        let (style, rest) = match style {
            Some((style, rest)) if OWN_STYLES.contains(&style) => (["\u{1b}[", style, "m"], rest),
            _ => (["\\u{1b}", "", ""], part),
        };
        let out = out.to_mut();
        out.extend(style);
        out.push_str(&printable::lines(rest));
    }
    out
}

/// Writer that shows terminal control characters as escapes.
pub struct Shown<W> {
    out: W,
    /// First bytes of an incomplete character.
    rest: Vec<u8>,
}

impl<W: Write> Shown<W> {
    pub fn new(out: W) -> Self {
        Self { out, rest: Vec::new() }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let end = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..end).collect();
        self.out.write_all(printable::lines(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Makes panics print like any other message, because a panic may quote a file.
pub fn set_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("?");
        let trace = std::backtrace::Backtrace::capture();
        let trace =
            if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
        talk(&format!("lowlat: thread '{name}' {info}{trace}\nhint: report this as a bug in lowlat"));
    }));
}

/// Returns the columns of the terminal on stdout, else those in COLUMNS, else 100. Bounded, so that tables stay readable.
pub fn width() -> usize {
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    let named = || std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    bounded(Some(terminal).filter(|columns| *columns > 0).or_else(named))
}

/// As [`width`], for a text that is laid out for stderr.
pub fn stderr_width() -> usize {
    stderr_columns().map_or_else(width, |columns| bounded(Some(columns)))
}

/// Returns the columns and rows of the terminal on stderr, or 80 and 24 if it does not report its own.
pub fn stderr_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let or = |size: Option<u16>, default| size.filter(|size| *size > 0).map_or(default, usize::from);
    (or(size.map(|size| size.ws_col), 80), or(size.map(|size| size.ws_row), 24))
}

/// Returns the columns of the terminal on stderr, if it is one.
fn stderr_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn bounded(columns: Option<usize>) -> usize {
    columns.filter(|columns| *columns > 0).map_or(100, |columns| columns.clamp(60, 160))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_bounded() {
        assert_eq!([None, Some(0), Some(1), Some(72), Some(9_999)].map(bounded), [100, 100, 60, 72, 160]);
    }

    #[test]
    fn messages_are_wrapped_at_words() {
        let text =
            "lowlat x: cannot read a-file-of-a-long-name: no such file\nhint: name one\n  - a row of words\n";
        assert_eq!(
            wrapped(text, 24),
            "lowlat x: cannot read\n  a-file-of-a-long-name:\n  no such file\nhint: name one\n  - a row of words\n"
        );
        assert_eq!(wrapped(text, 80), text);
        assert_eq!(wrapped("/a/long/path/without/spaces", 10), "/a/long/path/without/spaces");
        assert_eq!(wrapped("\u{1b}[1merror:\u{1b}[0m wrong\n", 12), "\u{1b}[1merror:\u{1b}[0m wrong\n");
        assert_eq!(wrapped("\u{1b}[1merror:\u{1b}[0m wrong\n", 11), "\u{1b}[1merror:\u{1b}[0m\n  wrong\n");
    }

    #[test]
    fn a_character_split_over_two_writes_is_kept_whole() {
        let mut shown = Shown::new(Vec::new());
        for byte in "a\u{9b}2J\u{202e}ü".as_bytes() {
            shown.write_all(&[*byte]).unwrap();
        }
        shown.write_all(b"\xff\n").unwrap();
        assert_eq!(String::from_utf8(shown.out).unwrap(), "a\\u{9b}2J\\u{202e}ü\u{fffd}\n");
    }

    #[test]
    fn only_lowlat_styles_pass() {
        let own = lowlat_tune_report::catalogue_table(lowlat_catalogue::CATALOGUE.settings(), 80);
        assert!(own.contains('\u{1b}'));
        assert_eq!(own_styles(&own), own);
        for (given, shown) in [
            ("a\u{1b}[1mb\u{1b}[0m\n", "a\u{1b}[1mb\u{1b}[0m\n"),
            ("a\u{1b}[8mb", "a\\u{1b}[8mb"),
            ("a\u{1b}[1;41mb\u{1b}]0;title\u{7}", "a\\u{1b}[1;41mb\\u{1b}]0;title\\u{7}"),
            ("\u{1b}", "\\u{1b}"),
            ("\u{1b}[1\u{9b}2J\u{202e}", "\\u{1b}[1\\u{9b}2J\\u{202e}"),
        ] {
            assert_eq!(own_styles(given), shown);
        }
    }
}
