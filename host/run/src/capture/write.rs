//! Writes a capture completely or not at all.

use super::assemble::CaptureTree;
use crate::output::{FileAccess, OutputCause, OutputError, OutputFile};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

pub(super) fn write(tree: &CaptureTree, out: &Path) -> Result<(), OutputError> {
    let output = OutputFile::new(out, FileAccess::Private)?;
    let unfinished = output.create()?;
    let gzip = unfinished.writer()?;
    write_gzip(tree, gzip)
        .map_err(|source| OutputError { path: out.into(), cause: OutputCause::Io(source) })?;
    unfinished.finish()
}

fn write_gzip(tree: &CaptureTree, file: File) -> io::Result<()> {
    let gzip = GzBuilder::new().mtime(0).write(BufWriter::new(file), Compression::default());
    write_tar(tree, gzip)?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

/// The same tree results in the same bytes: sorted, and without the host's times, owners or modes.
fn write_tar(tree: &CaptureTree, gzip: GzEncoder<BufWriter<File>>) -> io::Result<GzEncoder<BufWriter<File>>> {
    let mut tar = tar::Builder::new(gzip);
    for (list, lines) in &tree.notes {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        append(&mut tar, list, text.as_bytes())?;
    }
    for folder in tree.folders.iter().filter(|folder| *folder != "/") {
        let mut header = header(tar::EntryType::Directory, 0o755, 0);
        tar.append_data(&mut header, relative(folder), io::empty())?;
    }
    for (path, bytes) in &tree.files {
        append(&mut tar, path, bytes)?;
    }
    for (path, target) in &tree.links {
        let mut header = header(tar::EntryType::Symlink, 0o777, 0);
        tar.append_link(&mut header, relative(path), target)?;
    }
    tar.into_inner()
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let size = u64::try_from(bytes.len()).map_err(io::Error::other)?;
    tar.append_data(&mut header(tar::EntryType::Regular, 0o644, size), relative(path), bytes)
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}
