//! Profiles of TuneD.

mod expand;
mod functions;
mod ini;
mod options;
mod plugins;
mod profile;

pub use ini::Entry;
pub(crate) use options::file_of;
pub(crate) use plugins::read;
pub use profile::{MergedProfile, Unit};

use lowlat_host::Reading;

/// The files of a host, and those of the profile.
pub trait Tree {
    /// The text of a file.
    fn read(&self, path: &str) -> Reading<String>;
    /// The paths that match a glob with `*`.
    fn glob(&self, pattern: &str) -> Vec<String>;
}
