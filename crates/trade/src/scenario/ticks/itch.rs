//! Ticks of ITCH 5.0: best bid and offer of each instrument, from a capture or a plain file.

use super::{TICKS_MAX, Tick, Ticks, TicksError, after_ns, doubts};
use lowlat_feed::itch::{Books, Messages, RecordedMessages, Symbols, parse};
use std::path::Path;

/// Instruments if no symbols are named.
const INSTRUMENTS: u32 = 80;

/// The books' symbols for a list of the user; the first ones if it is empty.
pub(crate) fn symbols_of(symbols: &[String], instruments: u32) -> Option<Symbols> {
    if symbols.is_empty() { Some(Symbols::First(instruments)) } else { Symbols::only(symbols) }
}

impl Ticks {
    /// Reads the messages of a capture or a plain file; `path` names it in errors.
    pub fn from_itch(path: &Path, bytes: &[u8], symbols: &[String]) -> Result<Self, TicksError> {
        let wrong = |reason: String| TicksError::Itch { path: path.to_owned(), reason };
        let symbols = symbols_of(symbols, INSTRUMENTS)
            .ok_or_else(|| wrong("a symbol has 1 to 8 characters; found a longer or empty one".to_owned()))?;
        let mut books = Books::new(symbols);
        let (mut ticks, mut first_ns, mut damaged, mut is_full) = (Vec::new(), None, 0_u64, false);
        let read = Messages(bytes).each(&mut |message| {
            let Ok(message) = parse(message) else {
                damaged += 1;
                return true;
            };
            if let Some(quote) = books.apply(&message) {
                ticks.push(Tick {
                    after_ns: after_ns(&ticks, &mut first_ns, message.time_ns),
                    instrument: quote.instrument,
                    bid: quote.bid,
                    ask: quote.ask,
                    last: quote.last,
                    bid_size: quote.bid_size,
                    ask_size: quote.ask_size,
                });
            }
            is_full = ticks.len() >= TICKS_MAX;
            !is_full
        });
        let RecordedMessages { counts, foreign } = read.map_err(|error| wrong(error.to_string()))?;
        if ticks.is_empty() {
            return Err(wrong("it has no quote of these symbols".to_owned()));
        }
        let counted = [
            (counts.missing, "messages are missing in the capture, so quotes may be wrong"),
            (books.unapplied(), "messages did not fit the books"),
            (damaged, "messages are damaged"),
            (foreign, "datagrams are not MoldUDP64"),
        ];
        let doubts = doubts(path, &counted, is_full);
        Ok(Self { list: ticks, names: books.symbols().collect(), doubts })
    }
}
