//! Judges of small files: compares each knob of a setting with the wanted value.

use super::{missing, satisfies};
use crate::{Context, Judgement, Setting};
use lowlat_host::Reading;

/// Maximum number of places that a finding names. A host with a thousand CPUs has as many files.
const PLACES_SHOWN_MAX: usize = 8;

/// Compares every knob that `reads` matches with the wanted value, and names the files that differ.
pub fn files(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    let (mut good, mut bad, mut unread) = (0, Vec::new(), Vec::new());
    for (path, reading) in setting.reads.iter().flat_map(|glob| context.host.files_matching(glob)) {
        match reading {
            Reading::Known(value) if value.is_empty() => {
                unread.push((path, Reading::unparsable(path, value, "a value")));
            }
            Reading::Known(value) if satisfies(context, &want, chosen_word(value)) => good += 1,
            Reading::Known(value) => bad.push((path, chosen_word(value).to_owned())),
            Reading::Absent => {}
            other => unread.push((path, other.clone())),
        }
    }
    if let Some((_, value)) = bad.first() {
        let all = bad.len() + good;
        let observed = if all == 1 { value.clone() } else { format!("{value} ({} of {all})", bad.len()) };
        let seen_at = bad.iter().take(PLACES_SHOWN_MAX).map(|(path, _)| (*path).to_owned()).collect();
        return Judgement { seen_at, ..Judgement::wrong(observed, "") };
    }
    let place = setting.reads.first().copied().unwrap_or_default();
    match (good, unread.first()) {
        (0, Some((path, reading))) => missing(reading, path),
        (0, None) => {
            Judgement::not_applicable(format!("{} does not exist on this host", setting.reads.join(", ")))
        }
        (good, Some((path, reading))) => {
            let why = missing(reading, path);
            let because =
                format!("{good} files are as wanted, {} contain no value: {}", unread.len(), why.because);
            Judgement { because, ..why }
        }
        _ => Judgement::good(want.text(context).unwrap_or_default()).at(place),
    }
}

/// The word in brackets of a sysfs choice (`always [madvise] never`), or the whole text.
pub fn chosen_word(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}
