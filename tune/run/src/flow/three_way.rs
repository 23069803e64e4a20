//! The three states of a target that another tool has changed, as text.

use lowlat_host::digest;
use lowlat_plan::outcome::{StateText, ThreeWay};
use lowlat_undo::{Conflict, FileState, State};

/// Maximum number of characters of a file in a conflict.
const TEXT_CHARS_MAX: usize = 64 << 10;

/// The conflicts of a rollback, one for each target. With several steps on one target: the state before the
/// first step, the one that the last step wrote, and the present one. `conflicts` start with the last step.
pub(super) fn three_ways<'a>(conflicts: impl Iterator<Item = &'a Conflict>) -> Vec<ThreeWay> {
    let mut all: Vec<ThreeWay> = Vec::new();
    for conflict in conflicts {
        let before = text_of(&conflict.old);
        match all.iter_mut().find(|known| known.name == conflict.name) {
            Some(known) => known.before = before,
            None => all.push(ThreeWay {
                name: conflict.name.clone(),
                plan: conflict.plan.clone(),
                before,
                by_lowlat: text_of(&conflict.ours),
                now: text_of(&conflict.present),
            }),
        }
    }
    all
}

fn text_of(state: &State) -> StateText {
    match state {
        State::Absent => StateText::Absent,
        State::Value(text) => StateText::Value { text: text.trim_end().to_owned() },
        State::Link { to, .. } => StateText::Link { to: to.clone() },
        State::File(file) => text_of_file(file),
    }
}

fn text_of_file(file: &FileState) -> StateText {
    let attributes = format!("{}:{} {:04o}", file.uid, file.gid, file.mode);
    match std::str::from_utf8(&file.bytes) {
        Ok(text) if !text.contains('\0') => {
            let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
            StateText::File { is_cut: cut.len() < text.len(), text: cut, attributes }
        }
        _ => StateText::Binary {
            bytes: u64::try_from(file.bytes.len()).unwrap_or(u64::MAX),
            digest: digest(&String::from_utf8_lossy(&file.bytes)),
            attributes,
        },
    }
}
