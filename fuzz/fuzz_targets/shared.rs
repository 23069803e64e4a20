//! Memory that another process wrote: segments, rings, tables of latest positions, interest, inboxes. Whatever the words are,
//! nothing panics and nothing runs for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_ipc::{
    inbox::{Inbox, STREAMS_MAX},
    index_ring,
    interest::Interest,
    latest,
    region::{Heap, Region},
    stream::{Reader, Segment},
};
use std::sync::{Arc, atomic::Ordering};

fuzz_target!(|input: (u8, Vec<(u16, u64)>)| {
    let (kind, changes) = input;
    let heap = Arc::new(Heap::zeroed(8192));
    let change = || {
        for (at, word) in &changes {
            heap.words()[usize::from(*at) % 1024].store(*word, Ordering::Relaxed);
        }
    };
    match kind % 5 {
        0 => {
            let made = Segment::create(Arc::clone(&heap), 4096, 1, 1, 0, Default::default());
            drop(made);
            change();
            let Ok(segment) = Segment::open(heap.clone()) else { return };
            // The successor of a dead writer looks for its last record.
            let _ = Reader::last(segment);
            let Ok(segment) = Segment::open(heap.clone()) else { return };
            let (mut reader, mut payload) = (Reader::from_start(segment), Vec::new());
            for (_, position) in &changes {
                let _ = reader.read_at(*position, &mut payload);
            }
            (0..200).for_each(|_| { let _ = reader.next(&mut payload); });
        }
        1 => {
            let Some(mut pusher) = index_ring::create(Arc::clone(&heap), 64) else { return };
            (0..70).for_each(|entry| { let _ = pusher.push(entry); });
            change();
            (0..70).for_each(|entry| { let _ = pusher.push(entry); });
            let Some(mut taker) = index_ring::open(heap.clone()) else { return };
            (0..300).for_each(|_| { let _ = taker.next(); });
            // A successor resumes a dead publisher's ring, after arbitrary changes of its words.
            change();
            let Some(mut pusher) = index_ring::resume(heap.clone()) else { return };
            (0..70).for_each(|entry| { let _ = (pusher.last(), pusher.oldest(), pusher.push(entry)); });
            let Some(mut taker) = index_ring::open(heap.clone()) else { return };
            (0..300).for_each(|_| { let _ = taker.take(); });
        }
        2 => {
            let Some(mut putter) = latest::create(Arc::clone(&heap), 64) else { return };
            (0..64).for_each(|number| { let _ = putter.put(number, u64::from(number) * 64); });
            change();
            let Some(mut taker) = latest::open(heap.clone()) else { return };
            (0..300).for_each(|_| { let _ = taker.take(); });
        }
        3 => {
            change();
            let Some(inbox) = Inbox::new(heap.clone()) else { return };
            assert!(inbox.take_ready(|_| ()) <= STREAMS_MAX);
            let _ = (inbox.is_ready(), inbox.claim(), inbox.woken_and_missed());
        }
        _ => {
            change();
            let Some(table) = Interest::open(heap.clone()) else { return };
            (0..100).for_each(|instrument| table.each(instrument, |_| ()));
        }
    }
});
