use super::{LAYOUT, PAGE_BYTES, page, recorded_files, recorded_formats};
use crate::{CpuCursor, Decoder, EventFormat, Page, PageLayout, TickMap, TraceFormats, check_entry_layout};
use proptest::{collection::vec, prelude::*};

fn check_page(decoder: &mut Decoder, cursor: &mut CpuCursor, bytes: &[u8]) {
    let mut events = Vec::new();
    decoder.page(cursor, bytes, &mut events);
    assert!(events.len() <= Decoder::events_max(bytes.len()), "{} of {}", events.len(), bytes.len());
    if let Ok(page) = Page::parse(bytes, &LAYOUT) {
        assert!(page.entries().count() <= Page::entries_max(bytes.len()) + 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..PAGE_BYTES)) {
        let mut decoder = Decoder::new(&recorded_formats(), TickMap::identity(1_000_000_000));
        check_page(&mut decoder, &mut CpuCursor::default(), &bytes);
    }

    #[test]
    fn any_entries_are_answered(stamp in any::<u64>(), words in vec(any::<u32>(), 0..1_000)) {
        let mut decoder = Decoder::new(&recorded_formats(), TickMap::identity(1_000_000_000));
        let data = words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        check_page(&mut decoder, &mut CpuCursor::default(), &page(stamp, &[data]));
    }

    /// Real pages with a few changed bytes: most of their entries still reach the decoder.
    #[test]
    fn changed_pages_are_answered(changes in vec((0..6 * PAGE_BYTES, any::<u8>()), 1..50)) {
        let mut bytes = super::fixture("busy-cpu.bin.gz");
        for (at, value) in changes {
            bytes[at] = value;
        }
        let mut decoder = Decoder::new(&recorded_formats(), TickMap::identity(1_000_000_000));
        let mut cursor = CpuCursor::default();
        bytes.chunks(PAGE_BYTES).for_each(|page| check_page(&mut decoder, &mut cursor, page));
    }

    #[test]
    fn any_text_is_answered(text in "(name:|ID:|field:|[a-z \\[\\]*]|offset:|size:|signed:|[0-9]|;|\n|\t){0,200}") {
        let _ = EventFormat::parse("any/event", &text);
        let _ = PageLayout::parse(&text);
        let _ = check_entry_layout(&text);
    }

    /// Fields at any offset of a hostile format.
    #[test]
    fn any_offsets_are_answered(offset in any::<usize>(), size in 0_usize..20, bytes in vec(any::<u8>(), 0..64)) {
        let files = recorded_files();
        let formats = TraceFormats::parse(&files["header_page"], &files["header_event"], "", |tracepoint| {
            let text = files.get(&tracepoint.path())?;
            let (common, own) = text.split_once("common_pid")?;
            let own = own.replace("offset:", &format!("offset:{};other:", offset % 100));
            Some(format!("{common}common_pid{}", own.replace("size:", &format!("size:{size};other:"))))
        }).unwrap();
        let mut decoder = Decoder::new(&formats, TickMap::identity(1));
        let mut record = recorded_id("sched/sched_switch").to_ne_bytes().to_vec();
        record.extend(bytes);
        record.resize(record.len().next_multiple_of(4), 0);
        let mut entry = super::head(0, 1).to_vec();
        entry.extend((u32::try_from(record.len()).unwrap() + 4).to_ne_bytes());
        entry.extend(record);
        check_page(&mut decoder, &mut CpuCursor::default(), &page(0, &[entry]));
    }
}

fn recorded_id(path: &str) -> u16 {
    EventFormat::parse(path, &recorded_files()[path]).unwrap().id
}
