//! Cache allocation as resctrl shows it: groups of CPUs, and the ways and the bandwidth that each may use.

use crate::{CpuId, CpuSet, HostSnapshot};
use std::collections::BTreeMap;

/// Mount point of resctrl.
pub const MOUNT: &str = "/sys/fs/resctrl";
/// The group of all CPUs that belong to no other.
pub const DEFAULT_GROUP: &str = "default";
/// Files that show resctrl, and the numbers of caches that its domains have.
pub const READS: &[&str] = &[
    "/sys/fs/resctrl/schemata",
    "/sys/fs/resctrl/*/schemata",
    "/sys/fs/resctrl/*/cpus_list",
    "/sys/fs/resctrl/info/*/cbm_mask",
    "/sys/fs/resctrl/info/*/min_cbm_bits",
    "/sys/fs/resctrl/info/*/shareable_bits",
    "/sys/fs/resctrl/info/*/num_closids",
    "/sys/fs/resctrl/info/MB/bandwidth_gran",
    "/sys/fs/resctrl/info/MB/min_bandwidth",
    "/sys/devices/system/cpu/cpu*/cache/index2/id",
    "/sys/devices/system/cpu/cpu*/cache/index3/id",
];

/// The value of each domain, by its number: a mask of ways, or a bandwidth.
pub type Domains = BTreeMap<u32, u64>;

/// The state of mounted resctrl.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resctrl {
    /// Resources that can be allocated, by name: "L3", "L2CODE", "MB".
    pub resources: BTreeMap<String, Resource>,
    /// The groups beside the default group, by name.
    pub groups: BTreeMap<String, Group>,
    /// The values of the default group.
    pub default: Schemata,
}

/// Limits of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resource {
    /// All ways; none for a bandwidth.
    pub mask: Option<u64>,
    /// Minimum number of ways (min_cbm_bits).
    pub bits_min: u32,
    /// Ways that devices also use.
    pub shareable: u64,
    /// Number of groups, the default group included.
    pub groups_max: u32,
    /// Steps in which a bandwidth is set.
    pub step: u64,
    pub bandwidth_min: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    pub cpus: CpuSet,
    pub schemata: Schemata,
}

/// The values of a group for each resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schemata(pub BTreeMap<String, Domains>);

impl Schemata {
    /// Parses the lines of a file `schemata`. Lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(|line| parse_line(line.trim())).collect())
    }

    /// The lines in canonical form: "L3:0=ff0;1=ff0".
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, domains)| {
            let is_mask = is_cache(name);
            let one = |(domain, value): (&u32, &u64)| {
                if is_mask { format!("{domain}={value:x}") } else { format!("{domain}={value}") }
            };
            format!("{name}:{}", domains.iter().map(one).collect::<Vec<_>>().join(";"))
        })
    }
}

impl Group {
    /// The group as one line, as plans contain it: "cpus=1-3 L3:0=ff0 MB:0=100". Without CPUs for the default group.
    pub fn to_line(&self) -> String {
        let cpus = (!self.cpus.is_empty()).then(|| format!("cpus={}", self.cpus.to_list()));
        cpus.into_iter().chain(self.schemata.lines()).collect::<Vec<_>>().join(" ")
    }

    /// Parses such a line; `None` if a word does not fit.
    pub fn parse_line(line: &str) -> Option<Self> {
        let mut group = Self::default();
        for word in line.split(' ') {
            if let Some(cpus) = word.strip_prefix("cpus=") {
                group.cpus = CpuSet::parse_list(cpus).ok()?;
            } else {
                let (name, domains) = parse_line(word)?;
                group.schemata.0.insert(name, domains);
            }
        }
        Some(group)
    }
}

fn parse_line(line: &str) -> Option<(String, Domains)> {
    let (name, rest) = line.split_once(':')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let radix = if is_cache(name) { 16 } else { 10 };
    let domain = |text: &str| {
        let (domain, value) = text.trim().split_once('=')?;
        Some((domain.parse().ok()?, u64::from_str_radix(value.trim(), radix).ok()?))
    };
    let domains: Domains = rest.split(';').map(domain).collect::<Option<_>>()?;
    is_name(name).then(|| (name.to_owned(), domains))
}

/// True if a resource is a cache, whose values are masks of ways.
fn is_cache(name: &str) -> bool {
    level_of(name).is_some()
}

/// The level of a resource's cache: 3 for "L3" and, with code and data apart, "L3CODE".
pub fn level_of(name: &str) -> Option<u8> {
    let level = name.strip_prefix('L')?.trim_end_matches("CODE").trim_end_matches("DATA");
    level.parse().ok()
}

impl Resctrl {
    /// Reads resctrl's state from a snapshot; `None` if resctrl is not mounted.
    pub fn of(host: &HostSnapshot) -> Option<Self> {
        let text = |path: &str| host.file(path).into_known();
        let default = Schemata::parse(&text(&format!("{MOUNT}/schemata"))?);
        let resource = |name: &String| {
            let of = |file: &str| text(&format!("{MOUNT}/info/{name}/{file}"));
            let hex = |file: &str| of(file).and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
            let number = |file: &str| of(file).and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            Resource {
                mask: hex("cbm_mask"),
                bits_min: u32::try_from(number("min_cbm_bits")).unwrap_or(0),
                shareable: hex("shareable_bits").unwrap_or(0),
                groups_max: u32::try_from(number("num_closids")).unwrap_or(0),
                step: number("bandwidth_gran"),
                bandwidth_min: number("min_bandwidth"),
            }
        };
        let resources = default.0.keys().map(|name| (name.clone(), resource(name))).collect();
        let mut groups = BTreeMap::new();
        for (path, reading) in host.files_matching("/sys/fs/resctrl/*/schemata") {
            let (Some(name), Some(schemata)) = (path.split('/').nth(4), reading.known()) else { continue };
            let cpus = text(&format!("{MOUNT}/{name}/cpus_list")).unwrap_or_default();
            let cpus = CpuSet::parse_list(cpus.trim()).unwrap_or_default();
            groups.insert(name.to_owned(), Group { cpus, schemata: Schemata::parse(schemata) });
        }
        Some(Self { resources, groups, default })
    }

    /// The group of this name; the default group has no CPUs here.
    pub fn group(&self, name: &str) -> Option<Group> {
        if name == DEFAULT_GROUP {
            return Some(Group { cpus: CpuSet::new(), schemata: self.default.clone() });
        }
        self.groups.get(name).cloned()
    }

    /// True if the default group may use everything, as after mounting.
    pub fn is_default_whole(&self) -> bool {
        self.default.0.iter().all(|(name, domains)| {
            let whole = match self.resources.get(name).and_then(|resource| resource.mask) {
                Some(mask) => mask,
                None => domains.values().copied().max().unwrap_or(0).max(100),
            };
            domains.values().all(|value| *value == whole)
        })
    }
}

/// The CPUs of each cache of a level, by the number that resctrl's domains have.
pub fn domains(host: &HostSnapshot, level: u8) -> BTreeMap<u32, CpuSet> {
    let mut domains: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for (path, reading) in host.files_matching(&format!("/sys/devices/system/cpu/cpu*/cache/index{level}/id"))
    {
        let cpu = path.split('/').nth(5).and_then(|name| name.strip_prefix("cpu")?.parse::<CpuId>().ok());
        let id = reading.known().and_then(|text| text.trim().parse().ok());
        if let (Some(cpu), Some(id)) = (cpu, id) {
            domains.entry(id).or_default().insert(cpu);
        }
    }
    domains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;

    #[test]
    fn lines_are_read_as_the_kernel_prints_them_and_written_in_one_form() {
        let text = "    MB:0= 100;1=  50\n    L3:0=007ff;1=00ff0\nL3CODE:0=f\nnonsense\n";
        let lines: Vec<String> = Schemata::parse(text).lines().collect();
        assert_eq!(lines, ["L3:0=7ff;1=ff0", "L3CODE:0=f", "MB:0=100;1=50"]);
    }

    #[test]
    fn a_group_is_one_line_and_back() {
        let line = "cpus=1-3,8 L3:0=ff0 MB:0=100";
        let group = Group::parse_line(line).unwrap();
        assert_eq!((group.to_line().as_str(), group.cpus.to_list().as_str()), (line, "1-3,8"));
        for bad in ["", "cpus=x", "L3:0", "L3:0=xyz", "$(id):0=1", "L3:0=1  MB:0=1", "cpus=1 ;id"] {
            assert_eq!(Group::parse_line(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_mounted_tree_shows_resources_and_groups() {
        let mut host = HostSnapshot::default();
        assert_eq!(Resctrl::of(&host), None);
        for (path, text) in [
            ("/sys/fs/resctrl/schemata", "L3:0=7ff\nMB:0=100\n"),
            ("/sys/fs/resctrl/info/L3/cbm_mask", "7ff\n"),
            ("/sys/fs/resctrl/info/L3/shareable_bits", "600\n"),
            ("/sys/fs/resctrl/info/L3/min_cbm_bits", "1\n"),
            ("/sys/fs/resctrl/pqos/schemata", "L3:0=f\nMB:0=100\n"),
            ("/sys/fs/resctrl/pqos/cpus_list", "2-3\n"),
            ("/sys/devices/system/cpu/cpu0/cache/index3/id", "0\n"),
            ("/sys/devices/system/cpu/cpu2/cache/index3/id", "1\n"),
        ] {
            host.files.insert(path.to_owned(), Reading::Known(text.to_owned()));
        }
        let found = Resctrl::of(&host).unwrap();
        assert_eq!(found.resources["L3"].mask, Some(0x7ff));
        assert_eq!(found.resources["L3"].shareable, 0x600);
        assert_eq!(found.groups["pqos"].to_line(), "cpus=2-3 L3:0=f MB:0=100");
        assert!(found.is_default_whole());
        assert_eq!(domains(&host, 3).len(), 2);
    }
}
