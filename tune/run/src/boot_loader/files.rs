//! Reads files that are about to be changed.

use super::{BootLoaderError, FileChange};
use lowlat_host::Reading;
use lowlat_host::cmdline::LINE_BYTES_MAX;
use lowlat_host_run::{Root, root::FILE_BYTES_MAX};
use lowlat_plan::boot_files::{self, entry_order::EntryFile};
use lowlat_settings::change::BootToken;
use lowlat_undo::{FileState, State};

/// Maximum number of entries in a directory; boot menus have a few.
const ENTRIES_MAX: usize = 512;
/// Command line of kernels that are installed later.
pub(super) const KERNEL_COMMAND_LINE: &str = "/etc/kernel/cmdline";
/// The vendor's command line, used if /etc/kernel/cmdline is missing.
pub(super) const VENDOR_COMMAND_LINE: &str = "/usr/lib/kernel/cmdline";

/// The bytes of a file; none if it is missing.
pub(super) fn bytes(root: &Root, path: &str) -> Result<Option<Vec<u8>>, BootLoaderError> {
    match root.read_bytes(path) {
        Reading::Known(bytes) if bytes.len() as u64 >= FILE_BYTES_MAX => {
            let fault = format!("found {} bytes or more, expected less than {FILE_BYTES_MAX}", bytes.len());
            Err(BootLoaderError::file(path, fault, "check this file"))
        }
        Reading::Known(bytes) => Ok(Some(bytes)),
        Reading::Absent => Ok(None),
        Reading::Denied => Err(BootLoaderError::Denied { path: path.to_owned() }),
        Reading::Unparsable(why) => Err(BootLoaderError::file(path, why, "check this file")),
    }
}

/// The text of a file, byte for byte; none if it is missing.
pub(super) fn text(root: &Root, path: &str) -> Result<Option<String>, BootLoaderError> {
    let Some(bytes) = bytes(root, path)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let fault = format!("byte {} is not UTF-8, expected text", error.utf8_error().valid_up_to());
        BootLoaderError::file(path, fault, "correct the file")
    })
}

/// The distribution's ID of os-release(5): "rhel".
pub(super) fn os_id(root: &Root) -> String {
    let release = root.read("/etc/os-release");
    let id = release.text().lines().find_map(|line| line.strip_prefix("ID=")).unwrap_or_default();
    id.trim_matches(['"', '\'']).to_owned()
}

/// A change of one variable of GRUB's block. Links are followed, as for a file.
pub(super) fn variable(root: &Root, path: &str, variable: &'static str, value: String) -> FileChange {
    let path = root.real_path(path).into_known().unwrap_or_else(|| path.to_owned());
    FileChange { path, variable: Some(variable), new: State::Value(value) }
}

/// A change of a file that keeps its mode and owner; a new file belongs to root and is readable by all.
/// Links are followed: the file changes, not the link to it.
pub(super) fn change(root: &Root, path: &str, bytes: impl Into<Vec<u8>>) -> FileChange {
    let path = root.real_path(path).into_known().unwrap_or_else(|| path.to_owned());
    let mut state = FileState::of_root(bytes, 0o644);
    if let Reading::Known(present) = root.ownership(&path) {
        (state.mode, state.uid, state.gid) = (present.mode, present.uid, present.gid);
    }
    FileChange { path, variable: None, new: State::File(state) }
}

/// The sorted names in a directory; none if it does not exist.
pub(super) fn names(root: &Root, directory: &str) -> Result<Vec<String>, BootLoaderError> {
    let mut names = match root.list(directory) {
        Reading::Known(names) => names,
        Reading::Denied => return Err(BootLoaderError::Denied { path: directory.to_owned() }),
        Reading::Absent | Reading::Unparsable(_) => return Ok(Vec::new()),
    };
    names.sort();
    Ok(names)
}

/// The entries of a directory of the Boot Loader Specification, by name; empty if the directory is missing.
pub(super) fn entries(root: &Root, directory: &str) -> Result<Vec<EntryFile>, BootLoaderError> {
    let names = names(root, directory)?;
    let ids = names.iter().filter_map(|name| name.strip_suffix(".conf")).take(ENTRIES_MAX);
    let mut entries = Vec::new();
    for id in ids {
        if let Some(text) = text(root, &format!("{directory}/{id}.conf"))? {
            entries.push(EntryFile { id: id.to_owned(), text });
        }
    }
    Ok(entries)
}

/// The change of the command line for kernels that are installed later; none if they copy the running
/// kernel's.
pub(super) fn later_kernels(
    root: &Root,
    tokens: &[BootToken],
) -> Result<Option<FileChange>, BootLoaderError> {
    if let Some(line) = text(root, KERNEL_COMMAND_LINE)? {
        return Ok(Some(change(root, KERNEL_COMMAND_LINE, boot_files::edited_file(&line, tokens))));
    }
    let vendor = text(root, VENDOR_COMMAND_LINE)?;
    Ok(vendor.map(|line| FileChange {
        path: KERNEL_COMMAND_LINE.to_owned(),
        variable: None,
        new: State::File(FileState::of_root(boot_files::edited_file(&line, tokens), 0o644)),
    }))
}

/// Rejects a line that the kernel would truncate.
pub(super) fn check_length(place: &str, line: &str) -> Result<(), BootLoaderError> {
    if line.len() <= LINE_BYTES_MAX {
        return Ok(());
    }
    Err(BootLoaderError::Refused(format!(
        "{place}: the command line would have {} bytes, and the kernel truncates it after {LINE_BYTES_MAX}; remove unneeded \
         parameters, and plan again",
        line.len()
    )))
}

/// The result of a query for the next line; an error becomes a reading without a value.
pub(super) fn as_reading<T>(result: Result<Option<T>, BootLoaderError>) -> Reading<T> {
    match result {
        Ok(value) => Reading::from_option(value),
        Err(BootLoaderError::Denied { .. }) => Reading::Denied,
        Err(BootLoaderError::File { path, fault, .. }) => {
            Reading::unparsable(path, &fault, "a file of a boot loader")
        }
        Err(other) => Reading::unparsable("boot loader", &other.to_string(), "a command line"),
    }
}
