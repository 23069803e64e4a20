//! Data files that are not there.

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
