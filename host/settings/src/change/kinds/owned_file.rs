//! A whole file that lowlat owns.

use crate::change::{
    Kind, Mechanism, Part,
    grammar::{PATH, TEXT, misfit},
    kind::watch,
};

pub(super) struct OwnedFile<'a> {
    pub(super) path: &'a str,
}

impl Kind for OwnedFile<'_> {
    fn name(&self) -> String {
        self.path.to_owned()
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&PATH, self.path), (&TEXT, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::OwnedFile { path: self.path }
    }

    fn part(&self) -> Part {
        Part::Files
    }

    fn how_to_find(&self) -> String {
        watch(self.path)
    }
}
