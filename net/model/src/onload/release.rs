//! Archives of Onload by name.

use lowlat_host::kernel_version::KernelVersion;
use std::fmt;

/// Release of Onload or of one of its products, by the name of its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Name without its ending, which is also that of the folder in it: "openonload-201811-u1".
    pub name: String,
    /// For example "201811-u1" or "9.2.1".
    pub version: String,
    /// One of ".tgz", ".tar.gz" and ".zip".
    pub ending: &'static str,
}

const ENDINGS: [&str; 3] = [".tgz", ".tar.gz", ".zip"];

/// Newest kernel at the time of the dated releases, by month: no driver is written for kernels of the future.
const KERNELS_BY_MONTH: [(u32, KernelVersion); 6] = [
    (201_502, KernelVersion::new(3, 19)),
    (201_509, KernelVersion::new(4, 2)),
    (201_606, KernelVersion::new(4, 6)),
    (201_710, KernelVersion::new(4, 13)),
    (201_805, KernelVersion::new(4, 16)),
    (201_811, KernelVersion::new(4, 20)),
];

/// Kernels of numbered releases, from their release notes.
const KERNELS_BY_NUMBER: [(&str, KernelVersion, KernelVersion); 1] =
    [("9.2.", KernelVersion::new(5, 11), KernelVersion::new(7, 0))];

/// Support of a kernel by a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFit {
    /// Its release notes name the kernel.
    Supported,
    /// Its release notes name kernels from the first to the second, and not this one.
    Unsupported(KernelVersion, KernelVersion),
    /// The kernel is newer than this one, which was the newest at the time of the release.
    Newer(KernelVersion),
    /// Nothing is known about the release: its ReleaseNotes name the kernels.
    Unknown,
}

impl Release {
    /// Parses the name of an archive: "openonload-201606-u1.3.tgz", "onload-9.2.1.zip".
    pub fn parse(file_name: &str) -> Option<Self> {
        let (name, ending) =
            ENDINGS.iter().find_map(|ending| Some((file_name.strip_suffix(ending)?, *ending)))?;
        let (product, version) = name.split_once('-')?;
        let is_product = matches!(product, "openonload" | "onload" | "enterpriseonload" | "cloudonload");
        (is_product && (is_dated(version) || is_numbered(version) || is_built(version))).then(|| Self {
            name: name.to_owned(),
            version: version.to_owned(),
            ending,
        })
    }

    /// Returns whether the release supports a kernel, by its name such as "6.1.0-40-amd64". Enterprise distributions put
    /// newer code into kernels of an old version, so there the version says nothing.
    pub fn fit(&self, kernel_release: &str) -> KernelFit {
        let Some(kernel) = KernelVersion::parse(kernel_release.trim()) else { return KernelFit::Unknown };
        if kernel_release.contains(".el") {
            return KernelFit::Unknown;
        }
        if let Some((_, from, to)) = KERNELS_BY_NUMBER.iter().find(|row| self.version.starts_with(row.0)) {
            let kernel = (kernel.major, kernel.minor);
            let is_inside = ((from.major, from.minor)..=(to.major, to.minor)).contains(&kernel);
            return if is_inside { KernelFit::Supported } else { KernelFit::Unsupported(*from, *to) };
        }
        let month = self.version.get(..6).filter(|_| is_dated(&self.version));
        let month: Option<u32> = month.and_then(|month| month.parse().ok());
        let newest = KERNELS_BY_MONTH.iter().rev().find(|row| month.is_some_and(|month| month >= row.0));
        match newest {
            Some((_, newest)) if (kernel.major, kernel.minor) > (newest.major, newest.minor) => {
                KernelFit::Newer(*newest)
            }
            _ => KernelFit::Unknown,
        }
    }
}

/// True for versions such as "201502", "201811-u1" and "201606-u1.3".
fn is_dated(version: &str) -> bool {
    let (month, update) = version.split_once('-').unwrap_or((version, "u1"));
    let is_month = month.len() == 6 && is_number(month) && matches!(month[4..].parse(), Ok(1..=12_u32));
    let update = update.strip_prefix('u');
    is_month
        && update.is_some_and(|update| update.split('.').count() <= 2 && update.split('.').all(is_number))
}

/// True for versions such as "9.0.2" and "8.1.2.26".
fn is_numbered(version: &str) -> bool {
    (3..=4).contains(&version.split('.').count()) && version.split('.').all(is_number)
}

/// True for versions that onload_mkdist makes: the day, or the start of the commit.
fn is_built(version: &str) -> bool {
    version.len() == 8 && version.starts_with("20") && is_number(version)
        || version.len() == 7 && version.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for KernelFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supported => write!(f, "supported by its release notes"),
            Self::Unsupported(from, to) => {
                write!(
                    f,
                    "not supported: its release notes name {}.{} to {}.{}",
                    from.major, from.minor, to.major, to.minor
                )
            }
            Self::Newer(newest) => write!(
                f,
                "newer than any at its release ({}.{}): its driver will probably not build",
                newest.major, newest.minor
            ),
            Self::Unknown => write!(f, "unknown to lowlat: see the ReleaseNotes in the archive"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_download_page() {
        for (file, version) in [
            ("openonload-201502.tgz", "201502"),
            ("openonload-201811-u1.tgz", "201811-u1"),
            ("openonload-201606-u1.3.tgz", "201606-u1.3"),
            ("onload-9.2.1.zip", "9.2.1"),
            ("onload-8.1.2.26.tar.gz", "8.1.2.26"),
            ("enterpriseonload-6.0.1.27.tgz", "6.0.1.27"),
            ("onload-ef17681.tgz", "ef17681"),
            ("onload-20261104.tgz", "20261104"),
        ] {
            assert_eq!(
                Release::parse(file).map(|release| release.version).as_deref(),
                Some(version),
                "{file}"
            );
        }
        for file in [
            "openonload-201811-u1.tgz.md5",
            "openonload-201811-ReleaseNotes.txt",
            "openonload-201606-preview1.zip",
            "openonload-201813.tgz",
            "openonload-2018é.tgz",
            "openonload-201811-u.tgz",
            "onload-9.tgz",
            "sfnettest-1.5.0.tgz",
            "",
        ] {
            assert_eq!(Release::parse(file), None, "{file}");
        }
    }

    #[test]
    fn kernels_fit_or_are_known_not_to() {
        let fit = |file: &str, kernel: &str| Release::parse(file).unwrap().fit(kernel);
        assert_eq!(fit("onload-9.2.1.tgz", "6.12.0-1-amd64\n"), KernelFit::Supported);
        assert!(matches!(fit("onload-9.2.1.tgz", "7.3.0"), KernelFit::Unsupported(..)));
        assert_eq!(fit("onload-9.2.1.tgz", "4.18.0-553.el8_10.x86_64"), KernelFit::Unknown, "supported");
        let newest = KernelFit::Newer(KernelVersion::new(4, 20));
        assert_eq!(fit("openonload-201811-u1.tgz", "6.1.0-40-amd64"), newest);
        assert_eq!(fit("openonload-201811-u1.tgz", "3.10.0-1160.el7.x86_64"), KernelFit::Unknown);
        assert_eq!(fit("onload-9.0.2.tgz", "6.1.0"), KernelFit::Unknown);
        assert_eq!(fit("onload-20261104.tgz", "6.1.0"), KernelFit::Unknown);
    }
}
