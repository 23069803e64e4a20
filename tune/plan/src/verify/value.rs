//! Values that a snapshot has: files of the kernel, CPU masks, parameters of interfaces.

use super::judge::{Claim, Scene, UnjudgedTarget, unreadable};
use super::{CulpritKind, Row, Standing, culprit};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::change::{Change, Kind, Mechanism, MissingValue};

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, kind: &dyn Kind) -> Row {
    let mask = match kind.facts().mechanism {
        Mechanism::Mask { path } => Some(path),
        _ => None,
    };
    let observed = kind.present(&scene.latest);
    let after = change.after.as_str();
    let is_planned = observed.known().is_some_and(|value| match mask {
        Some(_) => scene.same_lists(value, after),
        None => kind.is_same(value, after),
    });
    let without_effect = observed.known().and_then(|value| kind.without_effect(&scene.latest, value, after));
    let rivals = kind.facts().rivals;
    let claims = rivals.iter().flat_map(|rival| culprit::of(scene, rival)).map(|claim| match mask {
        Some(_) => with_list(claim),
        None => claim,
    });
    let look = UnjudgedTarget {
        at,
        change,
        what: kind.facts().title,
        observed,
        is_planned,
        claims: claims.collect(),
    };
    match (&look.observed, without_effect) {
        (Reading::Known(_), Some(why)) if is_planned => look.row(Standing::Ineffective, why),
        (Reading::Known(_), without_effect) => {
            let row = look.judge(scene);
            let is_by_unknown = row.by.as_ref().is_some_and(|by| by.kind == CulpritKind::Unknown);
            match without_effect.filter(|_| is_by_unknown) {
                Some(note) => Row { standing: Standing::Ineffective, by: None, note, ..row },
                None => row,
            }
        }
        (missing, _) => {
            let meaning = if missing.is_absent() {
                kind.missing(&scene.latest)
            } else {
                MissingValue::Unreadable(None)
            };
            let place = mask.map_or_else(String::new, |path| format!("{path}: "));
            match meaning {
                MissingValue::Gone(note) => look.row(Standing::Gone, note),
                MissingValue::Unreadable(Some(note)) => look.row(Standing::Unreadable, note),
                MissingValue::Unreadable(None) => {
                    let note = format!("{place}{}", unreadable(missing));
                    look.row(Standing::Unreadable, note)
                }
            }
        }
    }
}

/// The claim with a list of CPUs instead of a mask: files contain masks, plans lists.
fn with_list(claim: Claim) -> Claim {
    let list = |value: String| CpuSet::parse_mask(&value).map(|cpus| cpus.to_list()).unwrap_or(value);
    Claim { value: claim.value.map(list), ..claim }
}
