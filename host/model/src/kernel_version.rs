//! Kernel versions, for settings that exist only from or up to a version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The leading numbers of a kernel release: 6, 1 and 0 in 6.1.0-25-amd64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct KernelVersion {
    pub major: u16,
    pub minor: u16,
    pub patch: u16,
}

impl KernelVersion {
    /// A version without a patch number.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: 0 }
    }

    /// Parses the leading `major.minor[.patch]` of a release; `None` without at least `major.minor`.
    pub fn parse(release: &str) -> Option<Self> {
        let numbers = release.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut parts = numbers.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().ok());
        Some(Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next().flatten().unwrap_or(0),
        })
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch > 0 { write!(f, ".{}", self.patch) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_real_releases() {
        let of = |text| KernelVersion::parse(text).map(|v| (v.major, v.minor, v.patch));
        assert_eq!(of("6.1.0-25-amd64"), Some((6, 1, 0)));
        assert_eq!(of("4.18.0-147.5.1.el8_1.x86_64"), Some((4, 18, 0)));
        assert_eq!(of("6.18.44-fc-v669"), Some((6, 18, 44)));
        assert_eq!(of("7.0-rc1"), Some((7, 0, 0)));
        assert_eq!(of("linux"), None);
        assert_eq!(of("6"), None);
        assert!(KernelVersion::new(5, 13) < KernelVersion::new(6, 6));
    }
}
