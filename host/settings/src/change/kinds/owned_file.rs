//! A whole file that lowlat owns.

use crate::change::{
    Kind, KindFacts, Mechanism, Part,
    grammar::{PATH, TEXT},
    kind::watch,
};

pub(super) struct OwnedFile<'a> {
    pub(super) path: &'a str,
}

impl Kind for OwnedFile<'_> {
    fn facts(&self) -> KindFacts<'_> {
        KindFacts {
            part: Part::Files,
            how_to_find: watch(self.path),
            ..KindFacts::of(self.path, Mechanism::OwnedFile { path: self.path }, &[(&PATH, self.path)], &TEXT)
        }
    }
}
