//! Recordings.

use crate::{
    LOWLAT_ABI_VERSION,
    error::{Status, fail, guard, null},
    join::{optional, other_version, path},
    records::{Event, LOWLAT_EVENT_DAMAGE, LOWLAT_EVENT_LOST, Record, RecordStamp},
    text::Text,
};
use lowlat_journal::read::{JournalRead, Merge, OpenError, Recording};
use self_cell::self_cell;
use std::{ffi::c_char, path::Path, ptr};

/// Largest description of damage, in bytes: it contains a file name.
const WORDS_BYTES: usize = 4096;
/// Largest stream name, in bytes (255 in a recording).
const NAME_BYTES: usize = 264;

self_cell!(
    struct Reading {
        owner: Recording,
        #[not_covariant]
        dependent: Merge,
    }
);

/// A recording that is read from start to end, with the records of the selected streams in order of time.
pub struct JournalHandle {
    reading: Reading,
    payload: Vec<u8>,
    name: Text<NAME_BYTES>,
    words: Text<WORDS_BYTES>,
    record: Record,
    event: Event,
    is_broken: bool,
}

/// lowlat_journal_open, which programs call, with the version of its header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_journal_open_version(
    abi_version: u32,
    folder: *const c_char,
    streams: *const c_char,
    journal: *mut *mut JournalHandle,
) -> Status {
    let open = || {
        if abi_version != LOWLAT_ABI_VERSION {
            return Err(other_version(&format_args!("open a recording with interface {abi_version}")));
        }
        if journal.is_null() {
            return Err(null("journal"));
        }
        // SAFETY: NULL, or zero-terminated texts, as the caller guarantees.
        let (folder, pattern) =
            unsafe { (path(folder, "folder")?, optional(streams, "streams")?.unwrap_or("*")) };
        let made = JournalHandle::open(folder, pattern).map_err(|error| fail(Status::Journal, &error))?;
        // SAFETY: not NULL, and the caller guarantees space for a pointer.
        unsafe { journal.write(Box::into_raw(Box::new(made))) };
        Ok(())
    };
    guard(open, || ())
}

/// Returns the next event: LOWLAT_EVENT_RECORD, LOWLAT_EVENT_LOST or LOWLAT_EVENT_DAMAGE. The status is
/// LOWLAT_STATUS_END if there is none. The event is valid until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_journal_next(
    journal: *mut JournalHandle,
    event: *mut *const Event,
) -> Status {
    // SAFETY: NULL or a journal that is not in use otherwise, as the caller guarantees.
    let Some(journal) = (unsafe { journal.as_mut() }) else { return null("journal") };
    if journal.is_broken {
        return fail(
            Status::Internal,
            &"this journal has failed before\nhint: release it with lowlat_journal_close",
        );
    }
    // Until the call returns.
    journal.is_broken = true;
    let next = || {
        if event.is_null() {
            return Err(null("event"));
        }
        let found = journal.next().ok_or_else(|| fail(Status::End, &"the recording has no more records"))?;
        // SAFETY: not NULL, and the caller guarantees space for a pointer.
        unsafe { event.write(found) };
        Ok(())
    };
    let status = guard(next, || ());
    journal.is_broken = status == Status::Internal;
    status
}

/// Sets `offset_ns` to what a record's times need for the time of day, in ns since 1970 in UTC. The status is
/// LOWLAT_STATUS_JOURNAL if the recording has no clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_journal_realtime_offset(
    journal: *const JournalHandle,
    offset_ns: *mut i64,
) -> Status {
    let find = || {
        // SAFETY: NULL or a journal that is not in use otherwise, as the caller guarantees.
        let journal = unsafe { journal.as_ref() }.ok_or_else(|| null("journal"))?;
        if offset_ns.is_null() {
            return Err(null("offset_ns"));
        }
        let found = journal.reading.borrow_owner().realtime_offset_ns();
        let found = found.and_then(|found| i64::try_from(found).ok());
        let found =
            found.ok_or_else(|| fail(Status::Journal, &"no file of the recording has its time of day"))?;
        // SAFETY: not NULL, and the caller guarantees space for a number.
        unsafe { offset_ns.write(found) };
        Ok(())
    };
    guard(find, || ())
}

/// Releases a recording. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_journal_close(journal: *mut JournalHandle) -> Status {
    let close = || {
        if !journal.is_null() {
            // SAFETY: it came from Box::into_raw in `lowlat_journal_open_version`, and the caller does not use it any
            // more.
            drop(unsafe { Box::from_raw(journal) });
        }
        Ok(())
    };
    guard(close, || ())
}

impl JournalHandle {
    fn open(folder: &Path, pattern: &str) -> Result<Self, OpenError> {
        let recording = Recording::open(folder)?;
        let chosen = recording.choose(&[pattern])?;
        let stamp = RecordStamp::default();
        let (stream, payload) = (ptr::null(), ptr::null());
        Ok(Self {
            reading: Reading::new(recording, |recording| Merge::new(recording, &chosen)),
            payload: Vec::new(),
            name: Text::new(),
            words: Text::new(),
            record: Record { stream, payload, payload_bytes: 0, sequence: 0, received_ns: 0, stamp },
            event: Event::new(0),
            is_broken: false,
        })
    }

    fn next(&mut self) -> Option<*const Event> {
        let payload = &mut self.payload;
        let read = self.reading.with_dependent_mut(|_, merge| merge.next(payload));
        self.event = match read {
            JournalRead::Record(found) => {
                self.set_name(found.stream);
                self.record = Record {
                    stream: self.name.as_ptr(),
                    payload: self.payload.as_ptr(),
                    payload_bytes: self.payload.len(),
                    sequence: found.record.sequence,
                    received_ns: 0,
                    stamp: RecordStamp::of(&found.record.stamp),
                };
                Event::of_record(&self.record)
            }
            JournalRead::Gap(gap) => {
                self.set_name(gap.stream);
                self.words.set(gap.why());
                let (stream, text) = (self.name.as_ptr(), self.words.as_ptr());
                Event { stream, text, lost: gap.count(), ..Event::new(LOWLAT_EVENT_LOST) }
            }
            JournalRead::Damaged(damage) => {
                self.words.set_to(&damage);
                Event { text: self.words.as_ptr(), ..Event::new(LOWLAT_EVENT_DAMAGE) }
            }
            JournalRead::Nothing | JournalRead::Ended => return None,
        };
        Some(ptr::from_ref(&self.event))
    }

    fn set_name(&mut self, stream: u32) {
        let streams = self.reading.borrow_owner().streams();
        let entry = usize::try_from(stream).ok().and_then(|at| streams.get(at));
        self.name.set(entry.map_or("", |entry| entry.name.as_str()));
    }
}
