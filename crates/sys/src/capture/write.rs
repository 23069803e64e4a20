//! Writes a capture: to a file beside the target that then takes its place.

use super::{CaptureError, assemble::CaptureTree};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

pub(super) fn write(tree: &CaptureTree, out: &Path) -> Result<(), CaptureError> {
    let path = out.display().to_string();
    let Some(name) = out.file_name() else { return Err(CaptureError::NoFileName { path }) };
    let scratch = out.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let written = write_scratch(tree, &scratch)
        .and_then(|()| fs::rename(&scratch, out))
        .and_then(|()| sync_folder(out));
    written.map_err(|source| {
        // What failed is told; a scratch file that cannot be taken away either adds nothing to that.
        let _ = fs::remove_file(&scratch);
        CaptureError::Write { path, source }
    })
}

fn write_scratch(tree: &CaptureTree, scratch: &PathBuf) -> io::Result<()> {
    match fs::remove_file(scratch) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = File::options().write(true).create_new(true).mode(0o600).open(scratch)?;
    let gzip = GzBuilder::new().mtime(0).write(BufWriter::new(file), Compression::default());
    let file = write_tar(tree, gzip)?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}

fn sync_folder(out: &Path) -> io::Result<()> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// The same tree gives the same bytes: sorted, and without times, owners or modes of the host.
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
