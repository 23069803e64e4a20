//! Evaluates a profile's sections on a host, plug-in by plug-in.

use super::{
    Entry, MergedProfile, Tree, Unit,
    functions::search,
    options::{BIASES, CHOICES, file_of, kib, reason, service, target_of, unquoted},
};
use crate::import::{Request, Wishes, number_of, path_of};
use lowlat_host::{HostSnapshot, Reading, snapshot::component_matches};
use lowlat_settings::change::{Target, nic};
use std::collections::{BTreeMap, BTreeSet};

/// Reads a profile and the ones it includes. Errors: TuneD rejects a file, or one cannot be read.
pub fn read(path: &str, tree: &dyn Tree, host: &HostSnapshot) -> Result<Wishes, String> {
    let mut profile = MergedProfile::load(&[path], tree, host)?;
    if let Some((name, includer)) = profile.missing.first() {
        return Err(format!("{includer} includes the profile {name}, which is not installed"));
    }
    let wishes = Wishes {
        unread: std::mem::take(&mut profile.unread),
        is_certain: !profile.units.is_empty(),
        ..Wishes::default()
    };
    let mut reader = Reader { profile: &profile, tree, host, wishes, taken: BTreeSet::new() };
    let mut units: Vec<&Unit> = profile.units.iter().collect();
    units.sort_by_key(|unit| unit.priority.unwrap_or(0));
    for unit in units {
        reader.read(unit);
    }
    Ok(reader.wishes)
}

/// Plug-ins whose sections name devices of the snapshot.
const DEVICE_PLUGINS: [&str; 4] = ["cpu", "disk", "net", "irq"];

struct Reader<'a> {
    profile: &'a MergedProfile<'a>,
    tree: &'a dyn Tree,
    host: &'a HostSnapshot,
    wishes: Wishes,
    /// Devices of a plug-in that an earlier section applies to.
    taken: BTreeSet<(&'a str, String)>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, unit: &'a Unit) {
        let section = format!("[{}]", unit.name);
        match self.profile.applies(unit) {
            Ok(true) => {}
            Ok(false) if !unit.is_enabled => return self.wishes.leave(section, "is switched off"),
            Ok(false) => return self.wishes.leave(section, "TuneD skips this section on this host"),
            Err(why) => {
                return self
                    .wishes
                    .leave(section, format!("whether it applies to this host is not known: {why}"));
            }
        }
        if unit.entries.is_empty() {
            let why = reason(unit, "").filter(|_| unit.plugin == "rtentsk");
            return self.wishes.leave(section, why.unwrap_or("sets nothing that stays"));
        }
        let devices = self.devices(unit);
        let (line, others): (Vec<&Entry>, Vec<&Entry>) = unit
            .entries
            .iter()
            .partition(|entry| unit.plugin == "bootloader" && entry.key.starts_with("cmdline"));
        self.command_line(unit, &line);
        for entry in others {
            let place = format!("[{}] {}", unit.name, entry.key);
            let written = match unit.plugin.as_str() {
                "sysctl" | "systemd" => unquoted(&entry.value),
                _ => &entry.value,
            };
            match (self.value(written), &devices) {
                (Ok(value), Ok(devices)) => self.one(&place, unit, &entry.key, &value, devices),
                (Err(why), _) => self.wishes.leave(place, why),
                (_, Err(why)) => self.wishes.leave(place, why.clone()),
            }
        }
    }

    /// A value after expansion. Errors: the reason why it is unknown or cannot be expanded.
    fn value(&self, written: &str) -> Result<String, String> {
        let value = self.profile.expand(written)?;
        match value.split_once("${").and_then(|(_, rest)| rest.split_once('}')) {
            Some((name, _)) if name.starts_with("f:") => Err(format!("TuneD cannot compute ${{{name}}}")),
            Some((name, _)) => Err(format!("the profile does not define ${{{name}}}")),
            None => Ok(value.trim().to_owned()),
        }
    }

    /// The devices of a section's plug-in, without those that earlier sections have taken.
    fn devices(&mut self, unit: &'a Unit) -> Result<Vec<String>, String> {
        let all: Vec<String> = match unit.plugin.as_str() {
            "cpu" => self.host.topology.online.iter().map(|cpu| format!("cpu{cpu}")).collect(),
            "disk" => self.host.disks.iter().map(|disk| disk.name.clone()).collect(),
            "net" => self.host.nics.iter().map(|nic| nic.name.clone()).collect(),
            "irq" => {
                let irqs = self.host.interrupts.irqs.iter().map(|irq| format!("irq{}", irq.number));
                irqs.chain(["DEFAULT".to_owned()]).collect()
            }
            _ => Vec::new(),
        };
        let rules = self.profile.expand(&unit.devices)?;
        if rules.contains(['?', '[']) {
            return Err(format!("lowlat cannot evaluate devices={rules}"));
        }
        let (none, some): (Vec<&str>, Vec<&str>) = rules
            .split([',', ' ', '\n', '\t'])
            .filter(|rule| !rule.is_empty())
            .partition(|rule| rule.starts_with('!'));
        let is_meant = |device: &str| {
            (some.is_empty() || some.iter().any(|rule| component_matches(rule, device)))
                && !none.iter().any(|rule| component_matches(&rule[1..], device))
        };
        let own = all.into_iter().filter(|device| is_meant(device));
        Ok(own.filter(|device| self.taken.insert((&unit.plugin, device.clone()))).collect())
    }

    fn one(&mut self, place: &str, unit: &Unit, key: &str, value: &str, devices: &[String]) {
        let host = self.host;
        let file = file_of(&unit.plugin, key, value);
        let nic_kind = nic::KINDS.iter().find(|kind| !kind.tuned.is_empty() && kind.tuned == key);
        match (unit.plugin.as_str(), key) {
            ("sysctl", _) => {
                let target = Target::Sysctl { key: key.replace('/', ".") };
                self.ask(place, vec![target], |reader, target| Some(reader.modified(target, value)));
            }
            ("sysfs", _) => self.sysfs(place, key, value),
            ("vm", "transparent_hugepages" | "transparent_hugepage")
                if host.kernel.tokens().all("transparent_hugepage").next().is_some() =>
            {
                self.wishes.leave(place, "TuneD leaves it to transparent_hugepage= on the command line");
            }
            ("scheduler", _) if key.starts_with("sched_") || key.starts_with("numa_balancing_") => {
                let target = self.scheduler_file(key);
                self.ask(place, vec![target], |_, _| Some(value.to_owned()));
            }
            ("scheduler", "isolated_cores") => self.isolate(place, unit, value),
            ("scheduler", _) if key.starts_with("group.") => self.group(place, value),
            ("irq", "affinity") => self.irqs(place, value, devices),
            // systemd starts every process there from the next boot on.
            ("systemd", "cpu_affinity") => self.list(place, vec![Target::UserProcesses], value),
            ("irqbalance", "banned_cpus") => {
                let (path, key) =
                    ("/etc/sysconfig/irqbalance".to_owned(), "IRQBALANCE_BANNED_CPULIST".to_owned());
                self.list(place, vec![Target::FileKey { path, key }], value);
            }
            ("net", _) if nic_kind.is_some() => {
                let words: Vec<&str> =
                    value.split([' ', '\t', '\n', ',', ':']).filter(|word| !word.is_empty()).collect();
                for (kind, pair) in
                    nic_kind.iter().flat_map(|kind| words.chunks(2).map(move |pair| (kind, pair)))
                {
                    let [name, value] = pair else { continue };
                    let targets = devices.iter().map(|nic| kind.of(nic, *name)).collect();
                    self.ask(place, targets, |_, target| {
                        target.kind().present(host).is_known().then(|| (*value).to_owned())
                    });
                }
            }
            ("service", _) => service(place, key, value, &mut self.wishes),
            _ => match file {
                Some((path, value)) => self.file(place, (&unit.plugin, key), &path, value, devices),
                None => self.wishes.leave(place, reason(unit, key).unwrap_or_default()),
            },
        }
    }

    /// Requests the value of each target; targets with the same value are one request.
    fn ask(&mut self, place: &str, targets: Vec<Target>, value: impl Fn(&Self, &Target) -> Option<String>) {
        let mut by_value: BTreeMap<String, Vec<Target>> = BTreeMap::new();
        for target in targets {
            if let Some(value) = value(self, &target) {
                by_value.entry(value).or_default().push(target);
            }
        }
        if by_value.is_empty() {
            self.wishes.leave(place, "TuneD finds nothing on this host that it would set");
        }
        for (value, targets) in by_value {
            self.wishes.requests.push(Request { place: place.to_owned(), targets, value });
        }
    }

    /// Requests a CPU list for some targets.
    fn list(&mut self, place: &str, targets: Vec<Target>, value: &str) {
        match self.profile.expand(&format!("${{f:cpulist_pack:{value}}}")) {
            Ok(list) if !list.is_empty() => self.ask(place, targets, |_, _| Some(list.clone())),
            _ if value.is_empty() => self.wishes.leave(place, "is empty: nothing is set"),
            _ => self.wishes.refuse(place, format!("\"{value}\" is not a CPU list")),
        }
    }

    fn file(
        &mut self,
        place: &str,
        (plugin, key): (&str, &str),
        path: &str,
        value: &str,
        devices: &[String],
    ) {
        let of = |device: &String| {
            path.replace('*', device).replace('#', device.trim_start_matches(|c: char| !c.is_ascii_digit()))
        };
        let paths: Vec<String> = match devices {
            _ if !path.contains(['*', '#']) => vec![path.to_owned()],
            _ if !DEVICE_PLUGINS.contains(&plugin) => self.tree.glob(path),
            devices => devices.iter().map(of).collect(),
        };
        let targets = paths.iter().map(|path| target_of(path)).collect();
        self.ask(place, targets, |reader, target| {
            let alternatives = || value.split('|').map(str::trim);
            let path = path_of(target).unwrap_or_default();
            let choices =
                CHOICES.iter().find_map(|(end, choices)| Some(path.strip_suffix(end)?.to_owned() + choices));
            let choices = choices.map(|path| reader.tree.read(&path)).unwrap_or_default();
            let is_possible = |one: &&str| match key {
                "energy_perf_bias" => BIASES.iter().any(|(word, _)| word == one),
                _ => choices.text().split_whitespace().any(|choice| choice == *one),
            };
            let one = alternatives().find(is_possible).or(alternatives().next()).unwrap_or_default();
            match key {
                // Policies have the number of their first CPU.
                "boost" if reader.present(target).is_absent() => None,
                "boost" | "no_turbo" => Some(number_of(one).to_owned()),
                "readahead" => Some(reader.modified(target, &kib(one))),
                "energy_perf_bias" => Some(
                    BIASES.iter().find(|(word, _)| *word == one).map_or(one, |(_, number)| number).to_owned(),
                ),
                _ => Some(reader.modified(target, one)),
            }
        });
    }

    fn present(&self, target: &Target) -> Reading<String> {
        match (target.kind().present(self.host), path_of(target)) {
            (Reading::Absent, Some(path)) => self.tree.read(&path),
            (found, _) => found,
        }
    }

    /// The value after TuneD's operators: `>` and `<` raise or lower the present one.
    fn modified(&self, target: &Target, value: &str) -> String {
        let Some(limit) = value.strip_prefix(['>', '<']).map(str::trim) else { return value.to_owned() };
        let present = self.present(target);
        match (limit.parse::<i128>(), present.text().trim().parse::<i128>()) {
            (Ok(number), Ok(now)) if value.starts_with('>') => number.max(now).to_string(),
            (Ok(number), Ok(now)) => number.min(now).to_string(),
            _ => limit.to_owned(),
        }
    }

    fn sysfs(&mut self, place: &str, path: &str, value: &str) {
        let paths = match path {
            _ if !path.starts_with("/sys/") => {
                return self.wishes.leave(place, "TuneD writes only below /sys");
            }
            _ if path.contains(['?', '[']) => {
                return self.wishes.leave(place, "lowlat evaluates only * in names of files");
            }
            _ if path.contains('*') => self.tree.glob(path),
            _ => vec![path.to_owned()],
        };
        let targets = paths.into_iter().map(|path| Target::File { path }).collect();
        self.ask(place, targets, |_, _| Some(value.to_owned()));
    }

    /// The file of a parameter of the scheduler: Linux 5.13 moved it to debugfs, and 6.6 renamed one.
    fn scheduler_file(&self, key: &str) -> Target {
        let name = key
            .strip_prefix("sched_")
            .map_or_else(|| key.replacen("numa_balancing_", "numa_balancing/", 1), str::to_owned);
        let name = if name == "base_slice_ns" { "min_granularity_ns" } else { name.as_str() };
        let debug = |name: &str| Target::File { path: format!("/sys/kernel/debug/sched/{name}") };
        let renamed = if name == "min_granularity_ns" { "base_slice_ns" } else { name };
        let places = [Target::Sysctl { key: format!("kernel.{key}") }, debug(name), debug(renamed)];
        let [.., last] = &places;
        places.iter().find(|target| !self.present(target).is_absent()).unwrap_or(last).clone()
    }

    /// `isolated_cores` moves interrupts and threads to the other CPUs.
    fn isolate(&mut self, place: &str, unit: &Unit, value: &str) {
        let option = |key: &str| {
            let written = unit.entries.iter().find(|entry| entry.key == key);
            written.and_then(|entry| self.profile.expand(&entry.value).ok()).unwrap_or_default()
        };
        let host = self.host;
        let irqs = host.interrupts.irqs.iter().filter(|irq| irq.is_managed != Reading::Known(true));
        let irqs = irqs.map(|irq| Target::IrqAffinity { irq: irq.number, actions: irq.actions.clone() });
        let threads = host.tasks.kernel_threads.iter().filter(|thread| !thread.is_bound);
        let threads =
            threads.map(|one| Target::KernelThreadAffinity { comm: one.comm.clone(), pid: one.pid });
        let mut targets: Vec<Target> = [Target::UserProcesses].into_iter().chain(threads).collect();
        if number_of(&option("irq_process")) != "0" {
            targets.extend(irqs);
        }
        if option("default_irq_smp_affinity") != "ignore" {
            targets.push(Target::DefaultIrqAffinity);
        }
        match self.profile.expand(&format!("${{f:cpulist_invert:{value}}}")) {
            Ok(others) if !others.is_empty() => self.list(place, targets, &others),
            Ok(_) => self.wishes.leave(place, "leaves no CPU for anything else"),
            Err(why) => self.wishes.leave(place, why),
        }
    }

    /// `RULE:POLICY:PRIORITY:AFFINITY:PATTERN` for threads whose names match.
    fn group(&mut self, place: &str, value: &str) {
        let parts: Vec<&str> = value.splitn(5, ':').collect();
        let [_, policy, priority, _, pattern] = parts.as_slice() else {
            return self.wishes.leave(place, "changes nothing");
        };
        let policy = match *policy {
            "f" => "SCHED_FIFO",
            "r" => "SCHED_RR",
            "o" => "SCHED_OTHER",
            "b" => "SCHED_BATCH",
            _ => return self.wishes.leave(place, "keeps the policy of the threads"),
        };
        let threads = &self.host.tasks.kernel_threads;
        let is_match = |comm: &str| search(pattern, &format!("[{comm}]"));
        if let Some(Err(why)) = threads.iter().map(|one| is_match(&one.comm)).find(Result::is_err) {
            return self.wishes.leave(place, why.why());
        }
        let meant = threads.iter().filter(|one| is_match(&one.comm) == Ok(true));
        let targets = meant
            .map(|one| Target::KernelThreadScheduling { comm: one.comm.clone(), pid: one.pid })
            .collect();
        let value = if priority == &"0" { policy.to_owned() } else { format!("{policy} {priority}") };
        self.ask(place, targets, |_, _| Some(value.clone()));
    }

    fn irqs(&mut self, place: &str, value: &str, devices: &[String]) {
        let irqs =
            self.host.interrupts.irqs.iter().filter(|irq| devices.contains(&format!("irq{}", irq.number)));
        let mut targets: Vec<Target> =
            irqs.map(|irq| Target::IrqAffinity { irq: irq.number, actions: irq.actions.clone() }).collect();
        targets
            .extend(devices.iter().filter(|device| *device == "DEFAULT").map(|_| Target::DefaultIrqAffinity));
        self.list(place, targets, value);
    }

    /// The words that TuneD adds to the command line. `-` takes words from those that it would add.
    fn command_line(&mut self, unit: &Unit, entries: &[&Entry]) {
        let mut parts: Vec<(String, String)> = Vec::new();
        for entry in entries {
            let place = format!("[{}] {}", unit.name, entry.key);
            let value = unquoted(&entry.value);
            let Some(removed) = value.strip_prefix('-') else {
                let escaped = value.strip_prefix('\\').filter(|rest| rest.starts_with(['\\', '+', '-']));
                parts.push((place, value.strip_prefix('+').or(escaped).unwrap_or(value).to_owned()));
                continue;
            };
            let removed: Vec<&str> = removed.split_whitespace().collect();
            let is_kept = |word: &&str| !removed.contains(word);
            if parts.iter().any(|(_, part)| part.split_whitespace().any(|word| removed.contains(&word))) {
                for (_, part) in &mut parts {
                    *part = part.split_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ");
                }
            } else {
                let why = "takes words from those that TuneD adds, and none of them is among those";
                self.wishes.leave(place, why);
            }
        }
        for (place, part) in parts {
            match self.value(&part) {
                Ok(value) => {
                    for word in value.split_whitespace() {
                        let (name, value) = word.split_once('=').unwrap_or((word, ""));
                        self.wishes.boot(format!("{place}: {name}"), name, Some(value));
                    }
                }
                Err(why) => self.wishes.leave(place, why),
            }
        }
    }
}
