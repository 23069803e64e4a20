//! Missing data files.

use crate::{
    damage::{Damage, Problem},
    layout::data_name,
};
use std::{fs, ops::Range, path::Path};

/// Largest number of consecutive missing files that are listed.
const NAMED_MAX: usize = 16;

/// Whether a file exists, as far as this user can see.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reports the files with these numbers, up to a limit.
pub fn missing(folder: &Path, numbers: Range<u64>) -> impl Iterator<Item = Damage> {
    numbers.take(NAMED_MAX).map(|number| Damage {
        file: folder.join(data_name(number)),
        offset: 0,
        bytes: 0,
        problem: Problem::FileMissing,
    })
}
