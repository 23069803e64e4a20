//! ITCH 5.0: packets of MoldUDP64, captures, plain files, and the books that their messages make.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_feed::itch::{Books, Messages, Symbols, decode, parse};
use std::sync::{LazyLock, Mutex};

/// Made once: books take their memory at the start.
static BOOKS: LazyLock<Mutex<Books>> = LazyLock::new(|| Mutex::new(Books::new(Symbols::First(8))));

fuzz_target!(|bytes: &[u8]| {
    let mut books = BOOKS.lock().unwrap();
    let mut apply = |message: &[u8]| {
        if let Ok(message) = parse(message)
            && let Some(quote) = books.apply(&message)
        {
            assert!(quote.instrument < 8);
        }
        true
    };
    if let Ok((head, messages)) = decode(bytes) {
        let mut count = 0;
        messages.for_each(|message| {
            apply(message);
            count += 1;
        });
        assert_eq!(count, head.count());
    }
    if let Err(error) = (Messages { bytes, channel: None }).each(&mut apply) {
        assert!(!error.to_string().is_empty());
    }
});
