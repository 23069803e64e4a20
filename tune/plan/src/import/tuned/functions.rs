//! TuneD's functions, as far as the facts of a host answer them. Commands are never run.

use super::expand::{Scope, Stop};
use lowlat_host::{CPU_ID_MAX, CpuSet, Reading, snapshot::OriginKind};
use regex_lite::Regex;

/// Generations of Intel's processors before Ice Lake, as the kernel names their counters.
const BEFORE_ICE_LAKE: [&str; 5] = ["sandybridge", "ivybridge", "haswell", "broadwell", "skylake"];

/// Calls a function. None if TuneD leaves the call as written: for a wrong number of arguments, and after an assertion.
pub fn call(scope: &Scope<'_>, name: &str, arguments: &[String]) -> Result<Option<String>, Stop> {
    let list = |separator: &str| unpacked(&arguments.join(separator));
    let online = || match &scope.host.topology.online {
        online if online.is_empty() => Err(Stop::unknown("the online CPUs of this host are not known")),
        online => Ok(online),
    };
    let value = match (name, arguments) {
        ("strip", [_, ..]) => arguments.concat().trim().to_owned(),
        ("log", [_, ..]) => arguments.concat(),
        ("assertion", [what, a, b]) if a != b => return Err(refused(what)),
        ("assertion_non_equal", [what, a, b]) if a == b => return Err(refused(what)),
        ("assertion" | "assertion_non_equal", _) => return Ok(None),
        ("regex_search_ternary", [text, pattern, yes, no]) => {
            if search(pattern, text)? { yes } else { no }.clone()
        }
        ("cpuinfo_check", [_, _, ..]) => {
            let text = scope.file("/proc/cpuinfo")?;
            first_match(arguments, |pattern| search(&format!("(?m){pattern}"), &text))?
        }
        ("lscpu_check", [_, _, ..]) => first_match(arguments, |pattern| in_lscpu(scope, pattern))?,
        ("virt_check", [inside, outside]) => match &scope.host.virtualization.is_virtual {
            Reading::Known(true) => inside.clone(),
            Reading::Known(false) => outside.clone(),
            _ => return Err(Stop::unknown("it is not known whether this host is a virtual machine")),
        },
        ("check_net_queue_count", [count]) if is_digits(count) => count.clone(),
        // TuneD may use the CPUs of process 1.
        ("check_net_queue_count", [_]) => match &scope.host.tasks.first_process_cpus {
            Reading::Known(cpus) => cpus.iter().count().to_string(),
            _ => return Err(Stop::unknown("the CPUs that TuneD may use are not known")),
        },
        ("intel_recommended_pstate", []) => match scope.file("/sys/devices/cpu/caps/pmu_name")?.as_str() {
            "" => "disable".to_owned(),
            name if BEFORE_ICE_LAKE.contains(&name) => "disable".to_owned(),
            _ => "active".to_owned(),
        },
        ("calc_isolated_cores", [] | [_]) => match arguments.first() {
            Some(count) if !is_digits(count) => return Ok(None),
            count => joined(&isolated(scope, count.map_or(Ok(1), |count| number(count))?)?),
        },
        ("cpulist_unpack", _) => joined(&list(",,")?),
        ("cpulist_pack", _) => list(",,")?.to_list(),
        ("cpulist_invert", _) => joined(&online()?.difference(&list(",,")?)),
        ("cpulist_online", _) => joined(&list(",")?.intersection(online()?)),
        ("cpulist_present", _) => match &scope.host.topology.present {
            Reading::Known(present) => joined(&list(",,")?.intersection(present)),
            _ => return Err(Stop::unknown("the present CPUs of this host are not known")),
        },
        ("cpulist2hex", _) => mask(&list(",,")?),
        ("cpulist2hex_invert", _) => mask(&online()?.difference(&list(",,")?)),
        ("exec", [command, option]) if command == "uname" && option == "-r" => {
            let release = scope.host.kernel.release.known();
            release.ok_or_else(|| Stop::unknown("the kernel's release is not known"))?.clone() + "\n"
        }
        ("exec", [_, ..]) => {
            return Err(Stop::unknown(format!(
                "only TuneD runs the command `{}` of ${{f:exec}}",
                arguments.join(" ")
            )));
        }
        _ => return Err(Stop::unknown(format!("only TuneD computes ${{f:{name}}}"))),
    };
    Ok(Some(value))
}

impl Scope<'_> {
    /// The text of a file of the host; empty if it does not exist.
    pub fn file(&self, path: &str) -> Result<String, Stop> {
        match self.tree.read(path) {
            Reading::Known(text) => Ok(text),
            // A capture lacks files that no reader asked for.
            Reading::Absent if self.host.origin.kind == OriginKind::Live => Ok(String::new()),
            _ => Err(Stop::unknown(format!("{path} was not read"))),
        }
    }

    /// The output of `uname -a`, without the operating system.
    pub fn uname(&self) -> Result<String, Stop> {
        let kernel = &self.host.kernel;
        let parts = [&kernel.release, &kernel.build, &kernel.machine].map(Reading::known);
        let [Some(release), Some(build), Some(machine)] = parts else {
            return Err(Stop::unknown("release, build or machine of the kernel are not known"));
        };
        let name = self.file("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(format!("Linux {name} {release} {build} {machine}"))
    }
}

/// True if a Python pattern matches anywhere in a text.
pub fn search(pattern: &str, text: &str) -> Result<bool, Stop> {
    let unknown = || Stop::unknown(format!("lowlat cannot evaluate the pattern \"{pattern}\""));
    // The two dialects differ in characters beyond ASCII, and in what `$` matches before a last line feed.
    if !text.is_ascii() && pattern.contains('\\') || text.ends_with('\n') && pattern.contains('$') {
        return Err(unknown());
    }
    Regex::new(pattern).map(|regex| regex.is_match(text)).map_err(|_| unknown())
}

fn refused(what: &str) -> Stop {
    Stop::Refused(format!("TuneD rejects the profile on this host: its assertion \"{what}\" fails"))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Result<u32, Stop> {
    text.parse().map_err(|_| Stop::unknown(format!("lowlat cannot compute with \"{text}\"")))
}

/// The text after the first pattern that matches; otherwise the last argument if it has no partner.
fn first_match(arguments: &[String], is_match: impl Fn(&str) -> Result<bool, Stop>) -> Result<String, Stop> {
    for pair in arguments.chunks(2) {
        match pair {
            [pattern, text] if is_match(pattern)? => return Ok(text.clone()),
            [fallback] => return Ok(fallback.clone()),
            _ => {}
        }
    }
    Ok(String::new())
}

/// True if `lscpu` prints a matching line. Only patterns that start with the name of a known line can be evaluated.
fn in_lscpu(scope: &Scope<'_>, pattern: &str) -> Result<bool, Stop> {
    let cpu = &scope.host.cpu;
    let number = |reading: &Reading<u32>| reading.as_ref().map(u32::to_string);
    let lines = [
        ("Architecture", scope.host.kernel.machine.clone()),
        ("Vendor ID", cpu.vendor.clone()),
        ("Model name", cpu.model_name.clone()),
        ("CPU family", number(&cpu.family)),
        ("Model", number(&cpu.model)),
        ("Stepping", number(&cpu.stepping)),
    ];
    let rest_of = |name: &str| pattern.trim_start_matches('^').strip_prefix(name);
    let asked = lines
        .iter()
        .find(|(name, _)| rest_of(name).is_some_and(|rest| rest.starts_with([':', '\\', '\n', ' ', '.'])));
    match asked {
        Some((name, Reading::Known(value))) => search(pattern, &format!("{name}:          {value}")),
        _ => Err(Stop::unknown(format!("what lscpu prints for \"{pattern}\" is not known"))),
    }
}

/// All CPUs but the first ones of each package.
fn isolated(scope: &Scope<'_>, kept: u32) -> Result<CpuSet, Stop> {
    let packages = &scope.host.topology.packages;
    if packages.is_empty() {
        return Err(Stop::unknown("the packages of this host are not known"));
    }
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    Ok(packages.iter().flat_map(|package| package.cpus.iter().skip(kept)).collect())
}

fn joined(cpus: &CpuSet) -> String {
    cpus.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

/// A mask in words of 8 digits.
fn mask(cpus: &CpuSet) -> String {
    cpus.to_mask_padded(32 * (cpus.highest().unwrap_or(0) / 32 + 1))
}

/// The CPUs of a list as TuneD reads it: numbers, ranges, and `^` or `!` before exclusions. Empty if it is not a list.
fn unpacked(list: &str) -> Result<CpuSet, Stop> {
    let (mut found, mut excluded) = (CpuSet::new(), CpuSet::new());
    for item in list.trim_matches(['\'', '"']).split(',').filter(|item| !item.is_empty()) {
        let (item, into) = match item.strip_prefix(['^', '!']) {
            Some(item) => (item, &mut excluded),
            None => (item, &mut found),
        };
        // Masks, and other texts that Python accepts as numbers.
        if item.contains(['x', 'X', '+', '_']) || !item.is_ascii() {
            return Err(Stop::unknown(format!("lowlat cannot read the CPU list \"{list}\"")));
        }
        // TuneD ignores everything from a second dash on.
        let (start, rest) = item.split_once('-').unwrap_or((item, item));
        let ends = [start, rest.split('-').next().unwrap_or_default()].map(str::trim);
        if !ends.iter().all(|end| is_digits(end)) {
            return Ok(CpuSet::new());
        }
        let [start, end] = [number(ends[0])?, number(ends[1])?];
        if end > CPU_ID_MAX {
            return Err(Stop::unknown(format!("CPU {end} is beyond the kernel's limit")));
        }
        into.extend(start..=end);
    }
    Ok(found.difference(&excluded))
}
