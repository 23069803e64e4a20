//! A recording, read like from C.
#![allow(clippy::borrow_as_ptr, reason = "as C gives addresses")]

use lowlat_capi::*;
use lowlat_journal::read;
use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr, slice,
};

/// A copy of the recording with one byte of its data changed.
fn damaged() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(golden().join("00000001.journal")).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 0xff;
    std::fs::write(folder.path().join("00000001.journal"), bytes).unwrap();
    folder
}

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../journal/tests/golden/v1")
}

fn last_error() -> String {
    // SAFETY: a text of the library, which ends with a zero.
    unsafe { CStr::from_ptr(lowlat_last_error()) }.to_str().unwrap().to_owned()
}

#[test]
fn a_recording_has_its_time_of_day() {
    let folder = CString::new(golden().to_str().unwrap()).unwrap();
    let (mut journal, mut offset_ns) = (ptr::null_mut(), 0);
    // SAFETY: texts and pointers are local.
    unsafe {
        let version = lowlat_abi_version();
        lowlat_journal_open_version(version, folder.as_ptr(), ptr::null(), &mut journal);
        assert_eq!(lowlat_journal_realtime_offset(journal, &mut offset_ns), Status::Ok, "{}", last_error());
        assert_eq!(offset_ns, 1_700_000_000_000_000_000);
        assert_ne!(lowlat_journal_realtime_offset(journal, ptr::null_mut()), Status::Ok);
        assert_ne!(lowlat_journal_realtime_offset(ptr::null(), &mut offset_ns), Status::Ok);
        lowlat_journal_close(journal);
    }
}

/// (stream, sequence or lost, payload) of every event.
fn read_in_c(streams: Option<&CStr>) -> Vec<(String, u64, Vec<u8>)> {
    let folder = CString::new(golden().to_str().unwrap()).unwrap();
    let (mut journal, mut event, mut all) = (ptr::null_mut(), ptr::null(), Vec::new());
    // SAFETY: texts and pointers are local, and events are read before the next call.
    unsafe {
        let pattern = streams.map_or(ptr::null(), CStr::as_ptr);
        assert_eq!(
            lowlat_journal_open_version(lowlat_abi_version(), folder.as_ptr(), pattern, &mut journal),
            Status::Ok,
            "{}",
            last_error()
        );
        loop {
            match lowlat_journal_next(journal, &mut event) {
                Status::Ok => {}
                Status::End => break,
                status => panic!("{status:?}: {}", last_error()),
            }
            let event = &*event;
            let stream = CStr::from_ptr(event.stream).to_str().unwrap().to_owned();
            if event.kind == LOWLAT_EVENT_RECORD {
                let record = &*event.record;
                let payload = slice::from_raw_parts(record.payload, record.payload_bytes).to_vec();
                all.push((stream, record.sequence, payload));
            } else {
                assert_eq!(event.kind, LOWLAT_EVENT_LOST);
                assert!(!event.text.is_null());
                all.push((stream, event.lost, Vec::new()));
            }
        }
        assert_eq!(lowlat_journal_next(journal, &mut event), Status::End);
        assert_eq!(lowlat_journal_close(journal), Status::Ok);
    }
    all
}

#[test]
fn c_and_rust_read_the_same_from_a_recording() {
    let recording = read::Recording::open(&golden()).unwrap();
    let name = |stream: u32| recording.streams()[usize::try_from(stream).unwrap()].name.clone();
    let (mut merge, mut payload, mut expected) = (read::Merge::of_all(&recording), Vec::new(), Vec::new());
    loop {
        match merge.next(&mut payload) {
            read::JournalRead::Record(found) => {
                expected.push((name(found.stream), found.record.sequence, payload.clone()));
            }
            read::JournalRead::Gap(gap) => expected.push((name(gap.stream), gap.count(), Vec::new())),
            read::JournalRead::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(read_in_c(None), expected);
    let first = &recording.streams()[0].name;
    let of_first: Vec<_> = expected.into_iter().filter(|(stream, ..)| stream == first).collect();
    assert!(!of_first.is_empty());
    assert_eq!(read_in_c(Some(&CString::new(first.as_str()).unwrap())), of_first);
}

#[test]
fn invalid_recordings_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = CString::new(folder.path().to_str().unwrap()).unwrap();
    let golden = CString::new(golden().to_str().unwrap()).unwrap();
    let mut journal = ptr::null_mut();
    // SAFETY: texts and pointers are local; NULL is reported.
    unsafe {
        assert_eq!(
            lowlat_journal_open_version(lowlat_abi_version(), path.as_ptr(), ptr::null(), &mut journal),
            Status::Journal
        );
        assert!(last_error().contains(folder.path().to_str().unwrap()), "{}", last_error());
        assert_eq!(
            lowlat_journal_open_version(
                lowlat_abi_version(),
                golden.as_ptr(),
                c"nobody".as_ptr(),
                &mut journal
            ),
            Status::Journal
        );
        assert!(last_error().contains("nobody"), "{}", last_error());
        assert_eq!(
            lowlat_journal_open_version(lowlat_abi_version(), ptr::null(), ptr::null(), &mut journal),
            Status::Argument
        );
        assert_eq!(lowlat_journal_next(ptr::null_mut(), &mut ptr::null()), Status::Argument);
        assert_eq!(lowlat_journal_close(ptr::null_mut()), Status::Ok);
    }
    assert!(journal.is_null());
}

#[test]
fn damage_is_reported_with_its_place_and_other_records_are_read() {
    let folder = damaged();
    let path = CString::new(folder.path().to_str().unwrap()).unwrap();
    let (mut journal, mut event, mut told, mut records) = (ptr::null_mut(), ptr::null(), Vec::new(), 0);
    // SAFETY: texts and pointers are local, and events are read before the next call.
    unsafe {
        assert_eq!(
            lowlat_journal_open_version(lowlat_abi_version(), path.as_ptr(), ptr::null(), &mut journal),
            Status::Ok,
            "{}",
            last_error()
        );
        while lowlat_journal_next(journal, &mut event) == Status::Ok {
            match (*event).kind {
                LOWLAT_EVENT_DAMAGE => told.push(CStr::from_ptr((*event).text).to_str().unwrap().to_owned()),
                LOWLAT_EVENT_RECORD => records += 1,
                _ => {}
            }
        }
        assert_eq!(lowlat_journal_close(journal), Status::Ok);
    }
    let file = folder.path().join("00000001.journal").display().to_string();
    assert!(
        !told.is_empty() && told.iter().all(|words| words.contains(&file) && words.contains("byte")),
        "{told:?}"
    );
    assert!(records > 0, "{told:?}");
}
