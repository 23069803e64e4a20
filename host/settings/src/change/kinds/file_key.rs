//! One `key=value` line of a file of another package that supports no drop-ins.

use crate::change::{
    Kind, Mechanism, Part,
    grammar::{PATH, WORD, misfit},
    kind::watch,
};

pub(super) struct FileKey<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
}

impl Kind for FileKey<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.path, self.key)
    }

    fn separator(&self) -> &'static str {
        " = "
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&PATH, self.path), (&WORD, self.key), (&WORD, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::FileKey { path: self.path, key: self.key }
    }

    fn part(&self) -> Part {
        Part::Files
    }

    fn how_to_find(&self) -> String {
        watch(self.path)
    }
}
