//! Every sample of a run, a file for each size: the raw files of sfnt-pingpong.

use crate::results::PreparedFile;
use lowlat_net::pingpong::PingpongRecord;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// The files of a run by size.
pub type RawFiles = BTreeMap<u32, PreparedFile>;

/// Checks the files before the run.
pub fn prepare(prefix: Option<&Path>, sizes: &[u32]) -> anyhow::Result<RawFiles> {
    let Some(prefix) = prefix else { return Ok(RawFiles::new()) };
    let file = |size: u32| {
        let mut path = OsString::from(prefix);
        path.push(format!("-{size}.dat"));
        Ok((size, PreparedFile::prepare(&PathBuf::from(path), "--raw")?))
    };
    sizes.iter().copied().map(file).collect()
}

/// The files with their texts: a line for each sample. A size that was not measured has no file.
pub fn texts<'a>(
    files: &'a RawFiles,
    record: &PingpongRecord,
) -> Vec<(&'a PreparedFile, anyhow::Result<String>)> {
    let lines = |samples_ns: &[u64]| {
        let mut text = String::with_capacity(samples_ns.len() * 6);
        for ns in samples_ns {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{ns}");
        }
        text
    };
    let measured = record.sizes.iter().filter_map(|size| Some((files.get(&size.size_bytes)?, size)));
    measured.map(|(file, size)| (file, Ok(lines(&size.samples_ns)))).collect()
}
