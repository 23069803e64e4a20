//! TuneD's active profile and its mode: "lowlat manual".

use crate::change::{
    Kind, Mechanism, Part,
    grammar::{POLICY, misfit},
};

pub(super) struct TunedProfileKind;

impl Kind for TunedProfileKind {
    fn name(&self) -> String {
        "TuneD's profile and mode".to_owned()
    }

    fn title(&self) -> String {
        "TuneD's profile".to_owned()
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&POLICY, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::TunedProfile
    }

    fn part(&self) -> Part {
        Part::Tuned
    }

    fn how_to_find(&self) -> String {
        "to find the cause: `journalctl -u tuned` shows when the profile was switched".to_owned()
    }
}
