//! Regenerates index files.

use super::{OpenError, Recording, index::IndexOrigin};
use crate::{
    layout,
    record::{Disk, Storage},
};

/// Writes index files that are missing or unusable, and returns their number. Files without an end, and damaged
/// ones, get none: they are scanned.
pub fn write_missing_indexes(recording: &Recording) -> Result<u64, OpenError> {
    let mut written = 0;
    for at in 0..recording.files().len() {
        let Ok(file) = recording.open_file(at) else { continue };
        let index = recording.index(at, &file);
        let is_stored = index.origin == IndexOrigin::Stored;
        let Some(bytes) =
            recording.number().filter(|_| !is_stored).and_then(|number| index.encode(&file, number))
        else {
            continue;
        };
        let path = recording.folder().join(layout::index_name(file.number));
        Disk.write_whole(&path, &bytes).map_err(|source| OpenError::Index { path, source })?;
        written += 1;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        read::recording::list,
        testing::{Maker, options},
    };
    use std::{
        fs,
        path::{Path, PathBuf},
    };
    use tempfile::TempDir;

    /// At least four data files; the last one has no end unless the writer finishes.
    fn make(folder: &Path, is_finished: bool) {
        let mut maker = Maker::new(folder, options(), &["one"]);
        for block in 0..120 {
            maker.records(0, 20 * block..20 * block + 20);
        }
        if is_finished {
            maker.files.finish().unwrap();
        }
    }

    fn indexes(folder: &Path) -> Vec<PathBuf> {
        let numbers = list(folder).unwrap().data;
        numbers.into_iter().map(|number| folder.join(layout::index_name(number))).collect()
    }

    fn write(folder: &Path) -> Result<u64, OpenError> {
        write_missing_indexes(&Recording::open(folder).unwrap())
    }

    #[test]
    fn missing_or_damaged_indexes_are_regenerated_unchanged() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), true);
        let paths = indexes(folder.path());
        assert!(paths.len() > 2);
        let before: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(write(folder.path()).unwrap(), 0, "none is missing");
        fs::remove_file(&paths[0]).unwrap();
        fs::write(&paths[1], &before[1][..before[1].len() - 1]).unwrap();
        // Intact, but of another file.
        fs::write(&paths[2], &before[0]).unwrap();
        assert_eq!(write(folder.path()).unwrap(), 3);
        let after: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(after, before);
        assert_eq!(write(folder.path()).unwrap(), 0);
    }

    #[test]
    fn files_without_an_end_and_damaged_ones_get_no_index() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), false);
        let paths = indexes(folder.path());
        let (last, ended) = paths.split_last().unwrap();
        assert!(!last.exists());
        for path in ended {
            fs::remove_file(path).unwrap();
        }
        let damaged = folder.path().join(layout::data_name(1));
        let mut bytes = fs::read(&damaged).unwrap();
        // The magic of its second block, without which it is not a block.
        let second = bytes.windows(8).enumerate().filter(|(_, bytes)| *bytes == layout::BLOCK_MAGIC).nth(1);
        let at = second.unwrap().0;
        bytes[at] ^= 1;
        fs::write(&damaged, &bytes).unwrap();
        assert_eq!(write(folder.path()).unwrap(), ended.len() as u64 - 1);
        assert!(!last.exists() && !paths[0].exists() && paths[1].exists());
    }

    #[test]
    fn an_index_that_cannot_be_written_is_reported() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), true);
        let path = indexes(folder.path()).remove(0);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), b"").unwrap();
        let told = write(folder.path()).unwrap_err().to_string();
        assert!(
            told.contains(&path.display().to_string()) && told.contains("reads work without it"),
            "{told}"
        );
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(
            left.into_iter().all(|name| !name.to_string_lossy().ends_with("tmp")),
            "no part of it is left"
        );
    }
}
