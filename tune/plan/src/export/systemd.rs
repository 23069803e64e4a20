//! The guide's one-time.service and its script, made safe, with the files that they need.

use super::brief::Brief;
use super::shell::{CORE, IRQS, SERVICES, THREADS, UNDO};
use super::steps::{Step, functions, run_all, steps, table};
use super::text::{each_after, note, shell_word};
use super::{ExportedFile, Format, sysctl};
use crate::{LeftOut, warnings::TUNED_INSTALLED};
use lowlat_host::CpuSet;

pub(super) const FORMAT: Format = Format {
    name: "systemd",
    about: "one-time.service with its script of ten steps, and run_sysjit.sh",
    files,
};

const UNIT: &str = include_str!("sh/one-time.service");
const MACHINERY: &str = include_str!("sh/systemd.sh");
const MAIN: &str = include_str!("sh/systemd-main.sh");
const RUN_SYSJIT: &str = include_str!("sh/run_sysjit.sh");
const README: &str = include_str!("sh/systemd-readme.txt");
const IRQBALANCE: &str = "irqbalance.service";

fn files(brief: &Brief<'_>) -> Vec<ExportedFile> {
    let steps = steps(brief);
    let sysctl = sysctl::file(brief);
    let file = |path: &str, is_program, text| ExportedFile { path: path.to_owned(), is_program, text };
    let mut files = service(brief, &steps);
    files.push(file("opt/run_sysjit.sh", true, run_sysjit(brief)));
    files.push(file("README", false, readme(brief, &steps, &sysctl.path)));
    files.push(file("expected-cmdline", false, format!("{}\n", brief.planned_line())));
    files.push(file(&format!("etc/sysctl.d/{}", sysctl.path), false, sysctl.text));
    files
}

/// The unit, its script, and the drop-in that keeps irqbalance from undoing it.
pub(super) fn service(brief: &Brief<'_>, steps: &[Step]) -> Vec<ExportedFile> {
    let file = |path: &str, is_program, text| ExportedFile { path: path.to_owned(), is_program, text };
    let mut files = vec![
        file("etc/systemd/system/one-time.service", false, unit(brief)),
        file("usr/local/bin/oneshot_script.sh", true, script(brief, steps)),
    ];
    if brief.context.host.services.units.contains_key(IRQBALANCE) {
        let text = brief.header("Keeps irqbalance off isolated CPUs.")
            + &format!("[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST={}\n", brief.isolated());
        files.push(file(&format!("etc/systemd/system/{IRQBALANCE}.d/60-lowlat.conf"), false, text));
    }
    files
}

/// True for settings to list as left out: a service cannot set boot parameters, and the packet filter has its own step.
fn is_told(left: &LeftOut) -> bool {
    let told_elsewhere =
        ["service.one_time", "service.netfilter", "sysctl.file.100-lowlatency", "service.tuned.include"];
    left.layer != "boot" && !told_elsewhere.contains(&left.setting.as_str())
}

fn unit(brief: &Brief<'_>) -> String {
    let head = brief.header("Sets run-time values for low latency once per boot.");
    head + &UNIT.replace("@PROFILE@", &brief.context.profile.to_string())
}

fn script(brief: &Brief<'_>, steps: &[Step]) -> String {
    let mut text = String::from("#!/bin/sh\n");
    text += &brief.header("The steps of guide 57037, section 4.3.3.1.2, made safe.");
    text += "#\n";
    text += &note(
        "Each old value is saved in /run before it is changed; `stop` restores it. Failures are reported, and the \
         exit code is 1. A second `start` changes nothing.",
    );
    text += &each_after("#\n", [brief.left_out("# ", is_told)]);
    text += &format!(
        "set -u\n\nstate_below_root=/run/lowlat-one-time\nplan_id={}\nonline_cpus={}\n",
        shell_word(&brief.plan.id()),
        shell_word(&brief.context.host.topology.online.to_list()),
    );
    text += &functions(steps);
    text += &run_all(steps);
    for part in [CORE, IRQS, THREADS, SERVICES, MACHINERY, UNDO, MAIN] {
        text += part;
    }
    text
}

fn run_sysjit(brief: &Brief<'_>) -> String {
    let mut text = String::from("#!/bin/sh\n");
    text += &brief.header("Measures interruptions of the isolated CPUs, as the guide's run_sysjit.sh does.");
    let one_by_one = |cpus: &CpuSet| cpus.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    text += &format!(
        "set -u\n\ncpus={}\ncpus_one_by_one={}\nhousekeeping={}\n",
        shell_word(&brief.isolated().to_list()),
        shell_word(&one_by_one(brief.isolated())),
        shell_word(&brief.housekeeping().to_list()),
    );
    text += RUN_SYSJIT;
    text
}

fn readme(brief: &Brief<'_>, steps: &[Step], sysctl: &str) -> String {
    let mut text = brief.readme_head("one-time.service and its script");
    text += &README.replace("@SYSCTL@", sysctl);
    text += &table(steps);
    let warnings = brief.warnings("", |warning| warning != TUNED_INSTALLED);
    text + &each_after("\n", [warnings, brief.left_out("", is_told)])
}
