//! TuneD's active profile and its mode: "lowlat manual".

use crate::change::{Kind, KindFacts, Mechanism, Part, grammar::POLICY};

pub(super) struct TunedProfileKind;

impl Kind for TunedProfileKind {
    fn facts(&self) -> KindFacts<'_> {
        KindFacts {
            title: "TuneD's profile".to_owned(),
            part: Part::Tuned,
            how_to_find: "to find the cause: `journalctl -u tuned` shows when the profile was switched"
                .to_owned(),
            ..KindFacts::of("TuneD's profile and mode", Mechanism::TunedProfile, &[], &POLICY)
        }
    }
}
