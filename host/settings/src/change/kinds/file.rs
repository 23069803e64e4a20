//! Files: values of /sys, /proc and debugfs, keys below /proc/sys, lines and files in /etc.

use crate::{
    change::{
        Kind, KindFacts, Mechanism, Part, Rival,
        grammar::{NUMBERS, PATH, SYSCTL, TEXT, WORD},
        kind::watch,
    },
    judge::chosen_word,
    same_meaning,
};
use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    snapshot::{CpuFreq, glob_matches, sysctl_path},
};

/// A file of /sys, /proc or debugfs that contains a value.
pub(super) struct File<'a> {
    pub(super) path: &'a str,
}

impl Kind for File<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let path = self.path.to_owned();
        KindFacts {
            rivals: vec![Rival::Path(path.clone())],
            how_to_find: watch(self.path),
            ..KindFacts::of(self.path, Mechanism::Value { path }, &[(&PATH, self.path)], &WORD)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        match field(self.path) {
            Some(field) if host.file(self.path).is_absent() => (field.get)(host, self.path),
            _ => host.file(self.path).map(|text| chosen_word(text.trim()).to_owned()),
        }
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        match field(self.path) {
            Some(field) if host.file(self.path).is_absent() => (field.put)(host, self.path, value),
            _ => {
                host.files.insert(self.path.to_owned(), Reading::Known(value.to_owned()));
            }
        }
    }

    /// Compares by meaning; a mask equals the list of its CPUs.
    fn is_same(&self, a: &str, b: &str) -> bool {
        // The watchdog file is named a mask but contains a list (kernel/watchdog.c).
        let is_mask =
            MASKS.iter().any(|end| self.path.ends_with(end)) && !self.path.ends_with("watchdog_cpumask");
        let planned = || CpuSet::parse_list(b).or_else(|_| CpuSet::parse_mask(b));
        same_meaning(a, b)
            || is_mask && matches!((CpuSet::parse_mask(a), planned()), (Ok(a), Ok(b)) if a == b)
    }
}

/// Files whose content is a mask, by the end of their path.
const MASKS: [&str; 4] = ["cpumask", "rps_cpus", "xps_cpus", "smp_affinity"];

/// A file that the snapshot has as a separate field instead of by its path.
struct Field {
    glob: &'static str,
    get: fn(&HostSnapshot, &str) -> Reading<String>,
    put: fn(&mut HostSnapshot, &str, &str),
}

fn field(path: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| glob_matches(field.glob, path))
}

const FIELDS: &[Field] = &[
    Field {
        glob: "/sys/kernel/mm/transparent_hugepage/enabled",
        get: |host, _| host.memory.thp_enabled.clone(),
        put: |host, _, value| host.memory.thp_enabled = Reading::Known(value.to_owned()),
    },
    Field {
        glob: "/sys/kernel/mm/transparent_hugepage/defrag",
        get: |host, _| host.memory.thp_defrag.clone(),
        put: |host, _, value| host.memory.thp_defrag = Reading::Known(value.to_owned()),
    },
    Field {
        glob: "/sys/kernel/mm/ksm/run",
        get: |host, _| host.memory.ksm_run.as_ref().map(u32::to_string),
        put: |host, path, value| host.memory.ksm_run = number(path, value),
    },
    Field {
        glob: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        get: |host, _| host.cpu.clocksource.clone(),
        put: |host, _, value| host.cpu.clocksource = Reading::Known(value.to_owned()),
    },
    Field {
        glob: "/sys/block/*/queue/scheduler",
        get: |host, path| {
            let disk = host.disks.iter().find(|disk| disk.name == part(path, 3));
            disk.map(|disk| disk.scheduler.clone()).unwrap_or_default()
        },
        put: |host, path, value| {
            for disk in host.disks.iter_mut().filter(|disk| disk.name == part(path, 3)) {
                disk.scheduler = Reading::Known(value.to_owned());
            }
        },
    },
    Field {
        glob: "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
        get: |host, path| policy(host, path).map_or(Reading::Absent, |policy| policy.governor.clone()),
        put: |host, path, value| {
            for policy in policies(host, path) {
                policy.governor = Reading::Known(value.to_owned());
            }
        },
    },
    Field {
        glob: "/sys/devices/system/cpu/*/cpufreq/energy_performance_preference",
        get: |host, path| {
            policy(host, path).map_or(Reading::Absent, |policy| policy.energy_performance_preference.clone())
        },
        put: |host, path, value| {
            for policy in policies(host, path) {
                policy.energy_performance_preference = Reading::Known(value.to_owned());
            }
        },
    },
    Field {
        glob: "/sys/devices/system/cpu/*/cpufreq/scaling_min_freq",
        get: |host, path| {
            let min = policy(host, path).map(|policy| policy.scaling_min_khz.as_ref().map(u64::to_string));
            min.unwrap_or_default()
        },
        put: |host, path, value| {
            for policy in policies(host, path) {
                policy.scaling_min_khz = number(path, value);
            }
        },
    },
];

fn part(path: &str, at: usize) -> &str {
    path.split('/').nth(at).unwrap_or_default()
}

fn number<T: std::str::FromStr>(path: &str, value: &str) -> Reading<T> {
    Reading::Known(value.to_owned()).parse(path, "a number", |text| text.parse().ok())
}

/// The policy of the CPU in the path.
fn policy<'a>(host: &'a HostSnapshot, path: &str) -> Option<&'a CpuFreq> {
    let cpu = part(path, 5).strip_prefix("cpu")?.parse().ok()?;
    host.cpu.frequency.iter().find(|policy| policy.cpus.contains(cpu))
}

fn policies<'a>(host: &'a mut HostSnapshot, path: &str) -> impl Iterator<Item = &'a mut CpuFreq> {
    let cpu = part(path, 5).strip_prefix("cpu").and_then(|number| number.parse().ok());
    host.cpu.frequency.iter_mut().filter(move |policy| cpu.is_some_and(|cpu| policy.cpus.contains(cpu)))
}

/// A key below /proc/sys.
pub(super) struct Sysctl<'a> {
    pub(super) key: &'a str,
}

impl Kind for Sysctl<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let path = sysctl_path(self.key);
        KindFacts {
            separator: " = ",
            rivals: vec![Rival::Sysctl(self.key.to_owned())],
            how_to_find: watch(&path),
            ..KindFacts::of(self.key, Mechanism::Value { path }, &[(&SYSCTL, self.key)], &NUMBERS)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        host.sysctl(self.key).map(|text| chosen_word(text.trim()).to_owned())
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        host.files.insert(sysctl_path(self.key), Reading::Known(value.to_owned()));
    }

    /// Reverse path filtering uses the larger of an interface's value and the one for all
    /// (Documentation/networking/ip-sysctl.rst).
    fn without_effect(&self, host: &HostSnapshot, observed: &str, after: &str) -> Option<String> {
        let name = self.key.strip_prefix("net.ipv4.conf.")?.strip_suffix(".rp_filter")?;
        if matches!(name, "all" | "default") || !same_meaning(observed, after) {
            return None;
        }
        let all = host.sysctl("net.ipv4.conf.all.rp_filter");
        let (all, planned): (u32, u32) = (all.text().trim().parse().ok()?, after.trim().parse().ok()?);
        (all > planned).then(|| {
            format!(
                "net.ipv4.conf.all.rp_filter is {all}, and the kernel uses the larger of the two for {name}"
            )
        })
    }
}

/// One `key=value` line of a file of another package that supports no drop-ins.
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

/// A whole file that lowlat owns.
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
