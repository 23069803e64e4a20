//! The sysctl file of the guide, and whether its values take effect.

use super::{GUIDE, HAZARDS, SYSCTL};
use lowlat_host::{
    Reading,
    snapshot::{Assignment, sysctl_path},
};
use lowlat_settings::{Context, Impact, Judgement, Setting, Verdict, Want, change, judge};

const GUIDE_FILE: &str = "/etc/sysctl.d/100-lowlatency.conf";

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "sysctl.file.100-lowlatency",
    change: change::sysctl::guide_file,
    name: GUIDE_FILE,
    reason: "The guide keeps its sysctls in one file and applies it with `sysctl -p` from its script. At \
             boot the files of sysctl.d are applied in order of their names, and the last assignment of a \
             key wins.",
    impact: Impact::Medium,
    effective: "For every key the file has the last assignment, and the key exists in /proc/sys.",
    guide: Want::State("present, complete, and overridden by no other file"),
    hazard: "The guide says that 100- sorts last. Names are compared as text, so 100-lowlatency sorts before \
             50-default and 99-sysctl, which win. A name such as 99-zz-lowlatency sorts last. Keys that no \
             longer exist make `sysctl -p` report errors.",
    sources: &[GUIDE, "guide 57037 section 4.3.3.1.2 step 0", HAZARDS, "sysctl.d(5)"],
    judge: file,
    ..SYSCTL
}];

fn file(context: &Context<'_>, _: &Setting) -> Judgement {
    let assignments = &context.host.kernel.sysctl_files;
    let own: Vec<&Assignment> = assignments.iter().filter(|line| line.path == GUIDE_FILE).collect();
    if own.is_empty() {
        return Judgement::wrong("missing or empty", "").at(GUIDE_FILE);
    }
    let overridden: Vec<String> = own
        .iter()
        .filter_map(|line| {
            let last = assignments.iter().rfind(|other| other.key == line.key)?;
            (last.path != line.path && last.value != line.value)
                .then(|| format!("{} by {}", line.key, last.path))
        })
        .collect();
    let gone: Vec<String> = own
        .iter()
        .filter(|line| context.host.files.get(&sysctl_path(&line.key)) == Some(&Reading::Absent))
        .map(|line| line.key.clone())
        .collect();
    let judgement = match (overridden.is_empty(), gone.is_empty()) {
        (false, _) => Judgement::new(
            Verdict::Shadowed,
            format!("{} keys are overridden: {}", overridden.len(), judge::some_of(&overridden, 4)),
            "these files sort after it and win at boot",
        ),
        (true, false) => Judgement::new(
            Verdict::Ineffective,
            format!("{} keys do not exist: {}", gone.len(), judge::some_of(&gone, 6)),
            "this kernel no longer has them, so nothing is set",
        ),
        (true, true) => Judgement::good(format!("{} keys", own.len())),
    };
    judgement.at(GUIDE_FILE)
}
