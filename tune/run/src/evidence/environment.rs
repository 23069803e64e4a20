//! The environment of a unit's programs: as its files set it, and as a running one has it.

use lowlat_host::{Reading, snapshot::Assignment};
use lowlat_host_run::{
    Root,
    environment::{lines, of_file, sources, text, words},
};
use lowlat_plan::verify::RunningVariable;

/// The unit of a drop-in: "irqbalance.service" for "/etc/systemd/system/irqbalance.service.d/60-x.conf".
pub(super) fn unit_of(path: &str) -> Option<String> {
    let (directory, _) = path.rsplit_once('/')?;
    let unit = directory.rsplit('/').next()?.strip_suffix(".d")?;
    (directory.contains("/systemd/system/") && unit.contains('.')).then(|| unit.to_owned())
}

/// Every assignment of a unit's environment; the last one wins.
pub(super) fn read(root: &Root, unit: &str) -> Vec<Assignment> {
    let mut sources = sources(root, unit);
    for path in &sources.files {
        sources.assignments.extend(text(root, path).iter().flat_map(|text| of_file(path, text)));
    }
    sources.assignments
}

/// The variables that `drop_in` sets, as a running process of the unit has them; empty if none is running.
/// Other variables are not read, because environments contain secrets.
pub(super) fn running(root: &Root, unit: &str, drop_in: &str) -> Vec<RunningVariable> {
    let groups = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];
    let pid = groups.iter().find_map(|group| {
        let pids = text(root, &format!("{group}/{unit}/cgroup.procs"))?;
        pids.lines().next()?.trim().parse::<u32>().ok()
    });
    let Some(pid) = pid else { return Vec::new() };
    let environment = root.read_bytes(&format!("/proc/{pid}/environ"));
    let keys = lines(drop_in).filter_map(|(_, line)| line.strip_prefix("Environment="));
    let keys = keys.flat_map(words).filter_map(|word| word.split_once('=').map(|(key, _)| key.to_owned()));
    let value_of = |key: &str, bytes: &[u8]| {
        let mut variables = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        variables.find_map(|variable| {
            variable.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
        })
    };
    keys.map(|key| {
        let value = environment.as_ref().and_then(|bytes| Reading::from_option(value_of(&key, bytes)));
        RunningVariable { unit: unit.to_owned(), key, value }
    })
    .collect()
}
