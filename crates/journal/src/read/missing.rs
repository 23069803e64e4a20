//! Data files that are missing.

use crate::{
    damage::{Damage, Problem},
    layout::data_name,
};
use std::{fs, ops::Range, path::Path};

/// Missing files in a row that are named.
const NAMED_MAX: usize = 16;

/// Whether a file exists, as far as this user may see.
pub fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
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
