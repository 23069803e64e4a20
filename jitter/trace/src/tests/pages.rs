use super::{LAYOUT, PAGE_BYTES, entry, page, page_with};
use crate::{MissedEvents, Page, PageError};

/// The times and records of a page.
fn read(bytes: &[u8]) -> Vec<Result<(u64, Vec<u8>), PageError>> {
    let page = Page::parse(bytes, &LAYOUT).unwrap();
    page.entries().map(|entry| entry.map(|entry| (entry.stamp, entry.record.to_vec()))).collect()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn short_records_carry_their_length_in_the_head() {
    let bytes = page(1_000, &[entry(1, 0, &[7]), entry(2, 30, &[8, 9]), entry(28, 1, &[5; 28])]);
    assert_eq!(
        read(&bytes),
        [Ok((1_000, words(&[7]))), Ok((1_030, words(&[8, 9]))), Ok((1_031, words(&[5; 28])))]
    );
}

#[test]
fn long_records_carry_it_in_the_first_word() {
    // 4 bytes of length, then 120; and one whose length is not a multiple of 4.
    let mut long = vec![124];
    long.extend([3; 30]);
    let bytes = page(10, &[entry(0, 5, &long), entry(0, 5, &[4 + 6, 1, 2]), entry(1, 5, &[9])]);
    let uneven = words(&[1, 2])[..6].to_vec();
    assert_eq!(read(&bytes), [Ok((15, words(&[3; 30]))), Ok((20, uneven)), Ok((25, words(&[9])))]);
}

#[test]
fn padding_ends_a_page_and_discarded_entries_are_stepped_over() {
    let discarded = entry(29, 40, &[12, 0, 0]);
    let bytes =
        page(0, &[entry(1, 1, &[7]), discarded, entry(1, 2, &[8]), entry(29, 0, &[]), entry(1, 1, &[9])]);
    assert_eq!(read(&bytes), [Ok((1, words(&[7]))), Ok((43, words(&[8])))]);
    // A discarded entry without a delta has the value 1.
    assert_eq!(read(&page(0, &[entry(29, 1, &[4]), entry(1, 2, &[8])])), [Ok((2, words(&[8])))]);
}

#[test]
fn longer_times_are_added() {
    let bytes = page(100, &[entry(30, 3, &[1]), entry(1, 2, &[7])]);
    assert_eq!(read(&bytes), [Ok((100 + (1 << 27) + 3 + 2, words(&[7])))]);
    let bytes = page(0, &[entry(30, (1 << 27) - 1, &[u32::MAX]), entry(1, 0, &[7])]);
    assert_eq!(read(&bytes), [Ok(((1 << 59) - 1, words(&[7])))]);
}

#[test]
fn absolute_times_keep_the_upper_bits() {
    let high = 5_u64 << 59;
    let absolute = |stamp: u64, next: u32| {
        let low = stamp & ((1 << 59) - 1);
        let bytes =
            entry(31, u32::try_from(low & ((1 << 27) - 1)).unwrap(), &[u32::try_from(low >> 27).unwrap()]);
        [bytes, entry(1, next, &[7])].concat()
    };
    let at = |start: u64, stamp: u64| {
        read(&page(start, &[absolute(stamp, 4)]))
            .into_iter()
            .map(|entry| entry.unwrap().0)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(1_000, 5_000), [5_004]);
    assert_eq!(at(high + 1_000, high + 5_000), [high + 5_004]);
    // The 59 bits wrap between the page's stamp and the entry's.
    let before_wrap = (1_u64 << 59) - 10;
    assert_eq!(at(high + before_wrap, high + (1 << 59) + 20), [high + (1 << 59) + 24]);
    assert_eq!(at(before_wrap, (1 << 59) + 20), [(1 << 59) + 24]);
    // Slightly earlier is not a wrap.
    assert_eq!(at(high + 5_000, high + 4_000), [high + 4_004]);
    // The topmost bits wrap with them.
    assert_eq!(at(u64::MAX - 9, 20), [24]);
}

#[test]
fn what_was_lost_before_is_reported() {
    let missed = |flags: u64, behind: &[u8]| {
        let bytes = page_with(50, flags, &[entry(1, 0, &[7])], behind);
        let page = Page::parse(&bytes, &LAYOUT).unwrap();
        assert_eq!(page.entries().count(), 1, "flags are no part of the length");
        page.missed
    };
    let count = 1_234_u64.to_ne_bytes();
    assert_eq!(missed(0, &count), MissedEvents::Nothing);
    assert_eq!(missed(1 << 31 | 1 << 30, &count), MissedEvents::Count(1_234));
    assert_eq!(missed(1 << 31, &count), MissedEvents::Some, "the value there is not a count");
    assert_eq!(missed(1 << 31 | 1 << 30, &[]), MissedEvents::Some, "a count of zero is none");
    let negative = u64::MAX << 31;
    assert_eq!(missed(negative, &[]), MissedEvents::Some, "as kernels of 64 bits have it");
    assert_eq!(missed(negative | 1 << 30, &count), MissedEvents::Count(1_234));
}

#[test]
fn a_full_page_has_no_room_for_the_count() {
    let entries = vec![entry(1, 1, &[7]); (PAGE_BYTES - 16) / 8];
    let bytes = page_with(0, 1 << 31 | 1 << 30, &entries, &[]);
    let page = Page::parse(&bytes, &LAYOUT).unwrap();
    assert_eq!(page.missed, MissedEvents::Some);
    assert_eq!(page.entries().count(), 510);
    assert!(510 <= Page::entries_max(PAGE_BYTES));
}

#[test]
fn damage_is_reported_once_and_ends_the_page() {
    for (damaged, found) in [
        (entry(5, 0, &[1, 2]), 20),
        (entry(0, 0, &[3]), 3),
        (entry(0, 0, &[u32::MAX, 1]), u64::from(u32::MAX) - 4),
        (entry(29, 7, &[400]), 396),
        (entry(0, 0, &[]), 0),
        (entry(30, 0, &[]), 0),
        (entry(31, 0, &[]), 0),
        (vec![1, 2, 3], 3),
    ] {
        let entries = read(&page(0, &[entry(1, 0, &[7]), damaged.clone()]));
        assert_eq!(entries.len(), 2, "{damaged:?}");
        assert_eq!(entries[1].as_ref().unwrap_err().found, found, "{damaged:?}");
    }
}

#[test]
fn heads_that_are_cut_or_too_large_are_errors() {
    let bytes = page(0, &[entry(1, 0, &[7])]);
    for length in [0, 7, 8, 15, 16, 20] {
        let error = Page::parse(&bytes[..length], &LAYOUT).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
    let mut bytes = bytes;
    bytes[8..16].copy_from_slice(&4081_u64.to_ne_bytes());
    let error = Page::parse(&bytes, &LAYOUT).unwrap_err();
    assert_eq!((error.offset, error.found), (8, 4081));
}
