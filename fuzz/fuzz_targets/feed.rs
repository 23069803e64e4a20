//! Input of md, td and the exchange from the network: datagrams of a feed, their sequence, messages of orders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_feed::{
    gateway::{MESSAGE_BYTES, Message},
    quotes,
    sequence::{Counts, Tracker},
};

fuzz_target!(|bytes: &[u8]| {
    let mut tracker = Tracker::default();
    // Several datagrams, each behind its length.
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(*length) * 8));
        rest = behind;
        match quotes::decode(datagram) {
            Ok((head, quotes)) => {
                let count = quotes.count();
                assert_eq!(count, usize::from(head.count()));
                assert!(usize::from(tracker.enter(&head, u32::from(*length))) <= count);
            }
            Err(error) => {
                tracker.malformed(0);
                let _ = error.to_string();
            }
        }
    }
    assert_eq!(Counts::of(tracker.counts().words()), *tracker.counts());
    if let Some(message) = bytes.first_chunk::<MESSAGE_BYTES>()
        && let Ok(decoded) = Message::decode(message)
    {
        assert_eq!(decoded.encode(), *message);
    }
});
