//! Data files that are not there.

use super::{Recording, file::FileEnd, index::FileIndex};
use crate::{
    damage::{Damage, Problem},
    layout::data_name,
};
use std::{ops::Range, path::Path};

/// Missing files in a row that are named.
const NAMED_MAX: usize = 16;

/// Whether a data file is there, as far as this user may see.
pub fn is_there(folder: &Path, number: u64) -> bool {
    folder.join(data_name(number)).exists()
}

/// Names the files of these numbers, up to a bound.
pub fn missing(folder: &Path, numbers: Range<u64>) -> impl Iterator<Item = Damage> {
    numbers.take(NAMED_MAX).map(|number| Damage {
        file: folder.join(data_name(number)),
        offset: 0,
        bytes: 0,
        problem: Problem::FileMissing,
    })
}

/// The file that was to follow the last one, when that says that one does and none is there. A writer makes the next file
/// before it says so.
pub fn missing_behind(folder: &Path, last: u64, index: &FileIndex) -> Option<Damage> {
    let goes_on = matches!(index.scan.end, FileEnd::Ended { goes_on: true });
    let next = last + 1;
    (goes_on && !is_there(folder, next)).then(|| missing(folder, next..next + 1).next())?
}

/// [`missing_behind`] for the last file of a recording, if that can be opened.
pub fn missing_at_end(recording: &Recording) -> Option<Damage> {
    let at = recording.files().len().checked_sub(1)?;
    let file = recording.open_file(at).ok()?;
    missing_behind(recording.folder(), recording.files().get(at)?.number, &recording.index(at, &file))
}
