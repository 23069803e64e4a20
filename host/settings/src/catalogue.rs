//! A catalogue: rows as data, so that planning and verification do not depend on their texts.

use crate::{Setting, judge};
use lowlat_host::spelling;

/// A catalogue of settings, in families.
#[derive(Debug, Clone, Copy)]
pub struct Catalogue {
    families: &'static [&'static [Setting]],
}

impl Catalogue {
    /// Creates a catalogue of these families.
    pub const fn new(families: &'static [&'static [Setting]]) -> Self {
        Self { families }
    }

    pub fn settings(self) -> impl Iterator<Item = &'static Setting> {
        self.families.iter().copied().flatten()
    }

    /// Finds the setting with this id.
    pub fn find(self, id: &str) -> Option<&'static Setting> {
        self.settings().find(|setting| setting.id == id)
    }

    /// Iterates over the ids of all settings.
    pub fn ids(self) -> impl Iterator<Item = &'static str> {
        self.settings().map(|setting| setting.id)
    }

    /// Returns the id whose spelling is closest to `id`, if one is close.
    pub fn nearest(self, id: &str) -> Option<&'static str> {
        spelling::nearest(id, self.ids())
    }

    /// Every file (glob) that a setting reads, which a snapshot must include among its knobs.
    pub fn knob_globs(self) -> Vec<&'static str> {
        let globs = self.settings().flat_map(|setting| setting.reads.iter().copied());
        sorted(globs.collect())
    }

    /// Every kernel configuration option that a setting or judge reads, without `CONFIG_`.
    pub fn config_options(self) -> Vec<&'static str> {
        let options = self.settings().flat_map(|setting| setting.needs.config.iter().copied());
        sorted(options.chain(judge::CONFIG_OPTIONS.iter().chain(judge::DEBUG_OPTIONS).copied()).collect())
    }
}

fn sorted(mut names: Vec<&'static str>) -> Vec<&'static str> {
    names.sort_unstable();
    names.dedup();
    names
}
