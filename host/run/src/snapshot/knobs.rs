//! Reads the small files that the settings of the catalogue name.

use crate::Root;
use lowlat_host::Reading;
use std::collections::BTreeMap;

/// Directories that every kernel has. If one is missing, the absence of a file below it proves nothing.
const EVERYWHERE: [&str; 4] = ["/proc/sys", "/sys/devices", "/sys/kernel", "/sys/module"];

/// Reads the files that match these globs; a path without a glob is kept even if it is absent.
pub(super) fn read(root: &Root, globs: &[&str]) -> BTreeMap<String, Reading<String>> {
    let mut files = BTreeMap::new();
    for folder in EVERYWHERE.iter().filter(|_| !globs.is_empty()) {
        root.or_unread(folder, root.list(folder));
    }
    for &glob in globs {
        let paths = if glob.contains('*') { root.glob(glob) } else { vec![glob.to_owned()] };
        for path in paths {
            let reading = root.read(&path);
            files.insert(path, reading);
        }
    }
    files
}
