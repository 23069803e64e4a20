//! Files that lowlat owns.

use super::Gathering;
use lowlat_undo::{FileState, State, TargetSpec, UndoError};

/// The start of such a file, by which people and lowlat recognize it.
pub(super) const HEADER: &str = "# Written by lowlat";
const HEADER_LINE: &str = "# Written by lowlat; changes are lost when it applies a plan.\n";
const MODE: u32 = 0o644;

pub(super) fn prepare(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    let after = gathering.after(change);
    let text = if after.starts_with(HEADER) { after.to_owned() } else { format!("{HEADER_LINE}{after}") };
    let spec = TargetSpec::file(path);
    let Some(old) = gathering.present(change, &spec)? else { return Ok(()) };
    let new = match &old {
        State::Absent => FileState::of_root(text, MODE),
        State::File(file) if file.bytes.starts_with(HEADER.as_bytes()) => {
            FileState { bytes: text.into_bytes(), mtime: None, ..file.clone() }
        }
        other => {
            gathering
                .leave(change, format!("{path} is {other} that lowlat did not write; move it away first"));
            return Ok(());
        }
    };
    gathering.step(change, spec, old, State::File(new))
}
