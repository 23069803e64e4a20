//! One `key=value` line of a file of another package that supports no drop-ins.

use crate::change::{
    Kind, KindFacts, Mechanism, Part,
    grammar::{PATH, WORD},
    kind::watch,
};

pub(super) struct FileKey<'a> {
    pub(super) path: &'a str,
    pub(super) key: &'a str,
}

impl Kind for FileKey<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let mechanism = Mechanism::FileKey { path: self.path, key: self.key };
        let names = [(&PATH, self.path), (&WORD, self.key)];
        KindFacts {
            separator: " = ",
            part: Part::Files,
            how_to_find: watch(self.path),
            ..KindFacts::of(format!("{} {}", self.path, self.key), mechanism, &names, &WORD)
        }
    }
}
