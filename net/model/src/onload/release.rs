//! Archives of Onload by name.

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

/// Support of a host by a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelFit {
    /// Its release notes name the distribution or the kernel in this line.
    Supported(String),
    /// Its release notes have these lines of the kind, and the host is in none of them.
    Unsupported(Vec<String>),
    /// The release notes are missing or do not tell.
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
}

/// Distributions and kernels in a line of the release notes, such as "Red Hat Enterprise Linux 9.4 - 9.8".
struct Supported<'a> {
    line: &'a str,
    /// Ranges of major and minor version, both inclusive.
    versions: Vec<[(u32, u32); 2]>,
}

/// Parses "8.10", "24.04.1", "12", "5.11" and "7.0(*)".
fn version(word: &str) -> Option<(u32, u32)> {
    let mut parts = word.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next().map_or(Some(0), |minor| minor.parse().ok())?))
}

impl<'a> Supported<'a> {
    /// The list under "This package can be installed on:". Only the first one is that of the release itself.
    fn list(notes: &'a str) -> impl Iterator<Item = Self> {
        let lines =
            notes.lines().skip_while(|line| !line.trim_end().ends_with("can be installed on:")).skip(1);
        lines.map_while(|line| line.trim_start().strip_prefix("- ")).map(|line| {
            let mut versions: Vec<[(u32, u32); 2]> = Vec::new();
            let mut is_range = false;
            for word in line.split_ascii_whitespace() {
                match (version(word), versions.last_mut()) {
                    (Some(to), Some(last)) if is_range => last[1] = to,
                    (Some(one), _) => versions.push([one, one]),
                    (None, _) => {}
                }
                is_range = matches!(word, "-" | "to");
            }
            Self { line: line.trim_end(), versions }
        })
    }

    fn names(&self, wanted: (u32, u32)) -> bool {
        self.versions.iter().any(|[from, to]| (*from..=*to).contains(&wanted))
    }
}

/// Returns whether a release supports a host, by its notes, the release of the running kernel such as "6.1.0-40-amd64" and
/// the name of the distribution. Enterprise distributions put newer code into kernels of an old version, so there the
/// distribution's version decides.
pub fn fit(notes: &str, kernel: &str, distribution: &str) -> KernelFit {
    let of_distribution = || distribution.split_ascii_whitespace().find_map(version);
    // "4.18.0-553.el8_10.x86_64": that of the kernel, which the driver is built for.
    let of_kernel = kernel.split_once(".el").map(|(_, el)| {
        let own = el.split('.').next().filter(|own| own.contains('_'));
        own.map_or_else(of_distribution, |own| version(&own.replace('_', ".")))
    });
    let (family, wanted) = if let Some(wanted) = of_kernel {
        (Some("Red Hat"), wanted)
    } else {
        let family = ["Ubuntu", "Debian"].into_iter().find(|name| distribution.starts_with(name));
        (family, of_distribution())
    };
    let is_of_family = |row: &Supported<'_>| family.is_some_and(|family| row.line.contains(family));
    let is_of_kernel = |row: &Supported<'_>| of_kernel.is_none() && row.line.contains("kernels");
    let mut others = Vec::new();
    for row in Supported::list(notes) {
        let wanted = match (is_of_family(&row), is_of_kernel(&row)) {
            (true, _) => wanted,
            (_, true) => version(kernel),
            (false, false) => continue,
        };
        let Some(wanted) = wanted else { return KernelFit::Unknown };
        if row.names(wanted) {
            return KernelFit::Supported(row.line.to_owned());
        }
        others.push(row.line.to_owned());
    }
    if others.is_empty() { KernelFit::Unknown } else { KernelFit::Unsupported(others) }
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
            Self::Supported(line) => write!(f, "supported by its release notes: {line}"),
            Self::Unsupported(lines) => {
                write!(f, "not supported: its release notes name {}", lines.join("; "))
            }
            Self::Unknown => write!(f, "unknown: the ReleaseNotes in the archive do not tell"),
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
    fn hosts_are_judged_by_the_notes_of_the_release() {
        let notes = "Onload-9.9.0\n============\n\n This package can be installed on:\n - Red Hat Enterprise Linux 8.10\n \
                     - Red Hat Enterprise Linux 9.4 - 9.8(*)\n - Canonical Ubuntu Server LTS 24.04 and 26.04\n \
                     - Debian 12 \"Bookworm\"\n - kernel.org Linux kernels 5.11 - 7.0(*)\n\nOlder\n \
                     This package can be installed on:\n - Red Hat Enterprise Linux 7.9\n";
        let fits = |kernel: &str, distribution: &str| fit(notes, kernel, distribution);
        let supported = |line: &str| KernelFit::Supported(line.to_owned());
        let rhel = supported("Red Hat Enterprise Linux 8.10");
        assert_eq!(fits("4.18.0-553.el8_10.x86_64", "Rocky Linux 8.10 (Green Obsidian)"), rhel);
        assert_eq!(fits("4.18.0-553.el8.x86_64", "Red Hat Enterprise Linux 8.10 (Ootpa)"), rhel);
        assert_eq!(
            fits("5.14.0-427.el9_6.x86_64", "AlmaLinux 9.4 (Seafoam Ocelot)"),
            supported("Red Hat Enterprise Linux 9.4 - 9.8(*)")
        );
        let none = fits("5.14.0-362.el9_3.x86_64", "Red Hat Enterprise Linux 9.3 (Plow)");
        assert_eq!(
            none.to_string(),
            "not supported: its release notes name Red Hat Enterprise Linux 8.10; Red Hat Enterprise Linux 9.4 - 9.8(*)"
        );
        assert!(matches!(fits("3.10.0-1160.el7.x86_64", "CentOS Linux 7 (Core)"), KernelFit::Unsupported(_)));
        assert_eq!(fits("4.18.0-553.el8.x86_64", ""), KernelFit::Unknown);
        let ubuntu = "Canonical Ubuntu Server LTS 24.04 and 26.04";
        assert_eq!(fits("6.8.0-45-generic", "Ubuntu 24.04.1 LTS"), supported(ubuntu));
        let kernels = supported("kernel.org Linux kernels 5.11 - 7.0(*)");
        assert_eq!(fits("6.14.0-15-generic", "Ubuntu 25.04"), kernels, "the kernel's line counts too");
        assert_eq!(
            fits("6.1.0-40-amd64", "Debian GNU/Linux 12 (bookworm)"),
            supported("Debian 12 \"Bookworm\"")
        );
        assert_eq!(fits("6.12.1-arch1-1", "Arch Linux"), kernels);
        assert!(matches!(fits("7.3.0-arch1-1", "Arch Linux"), KernelFit::Unsupported(_)));
        assert!(matches!(
            fits("5.10.0-30-amd64", "Debian GNU/Linux 11 (bullseye)"),
            KernelFit::Unsupported(_)
        ));
        let older =
            " This package can be installed on:\n - Linux kernels 3.0 - 4.19\n - Debian 8 \"Jessie\"\n";
        assert!(matches!(fit(older, "6.1.0-40-amd64", "Debian GNU/Linux 12"), KernelFit::Unsupported(_)));
        assert_eq!(fit("", "6.1.0-40-amd64", "Debian GNU/Linux 12"), KernelFit::Unknown);
        assert_eq!(fit("Notes\n", "", ""), KernelFit::Unknown);
    }
}
