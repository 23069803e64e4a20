//! Ticks of ITCH 5.0: best bid and offer of each instrument, from a capture or a plain file.

use super::{TICKS_MAX, Tick, Ticks, after_ns, doubts};
use lowlat_feed::itch::{Books, Messages, Symbols, parse};
use lowlat_node::Refusal;
use std::path::Path;

/// Instruments if no symbols are named.
const INSTRUMENTS: u32 = 80;

/// The books' symbols for a list of the user; the first ones if it is empty.
pub(crate) fn symbols_of(symbols: &[String], instruments: u32) -> Option<Symbols> {
    if symbols.is_empty() { Some(Symbols::First(instruments)) } else { Symbols::only(symbols) }
}

/// The refusal of a file of ITCH; `reason` is what is wrong, and what to do.
pub(crate) fn not_itch(path: &Path, reason: &str) -> Refusal {
    Refusal::new(format!("cannot read {} as ITCH 5.0: {reason}", path.display()))
}

impl Ticks {
    /// Reads the messages of a capture or a plain file: its bytes, and a sentence if they end early. `path` names it in
    /// errors.
    pub fn from_itch(
        path: &Path,
        (bytes, cut): (Vec<u8>, Option<String>),
        symbols: &[String],
        channel: Option<&str>,
    ) -> Result<Self, Refusal> {
        let wrong = |reason: String| not_itch(path, &reason);
        let books_of = symbols_of(symbols, INSTRUMENTS).ok_or_else(|| {
            wrong("a symbol is empty or has more than 8 characters\nhint: correct --symbols".to_owned())
        })?;
        let mut books = Books::new(books_of);
        let (mut ticks, mut first_ns, mut damaged, mut is_full) = (Vec::new(), None, 0_u64, false);
        let read = Messages { bytes: &bytes, channel }.each(&mut |message| {
            let Ok(message) = parse(message) else {
                damaged += 1;
                return true;
            };
            if let Some(quote) = books.apply(&message) {
                ticks.push(Tick { after_ns: after_ns(&ticks, &mut first_ns, message.time_ns), quote });
            }
            is_full = ticks.len() >= TICKS_MAX;
            !is_full
        });
        let read = read.map_err(|error| wrong(error.to_string()))?;
        if ticks.is_empty() {
            return Err(wrong(format!(
                "none of its messages makes a quote of these symbols, and {damaged} are damaged\nhint: name other --symbols, or a file with orders on both sides of a book"
            )));
        }
        let counted =
            [(books.unapplied(), "messages did not fit the books"), (damaged, "messages are damaged")];
        let of_file = |said: String| format!("{}: {said}.", path.display());
        let mut doubts = doubts(path, &counted, is_full);
        doubts.extend(read.doubts().into_iter().chain(cut).map(of_file));
        let findings = read.gaps().into_iter().map(of_file).collect();
        Ok(Self { list: ticks, names: books.symbols().collect(), doubts, findings, ..Self::default() })
    }
}
