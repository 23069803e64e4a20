//! Reads the small files that the settings of the catalogue name.

use crate::Root;
use lowlat_host::Reading;
use std::collections::BTreeMap;

/// Reads the files that match these globs; a path without a glob is kept even if it is absent.
pub(super) fn read(root: &Root, globs: &[&str]) -> BTreeMap<String, Reading<String>> {
    let mut files = BTreeMap::new();
    for &glob in globs {
        let paths = if glob.contains('*') { root.glob(glob) } else { vec![glob.to_owned()] };
        for path in paths {
            let reading = root.read(&path);
            files.insert(path, reading);
        }
    }
    files
}
