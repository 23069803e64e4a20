//! Parameters of the kernel.

use super::super::{BootSource, Refusal};
use super::*;

fn source(path: &str, variable: &str, parameters: &str) -> BootSource {
    BootSource { path: path.into(), line: 6, variable: variable.into(), parameters: parameters.into() }
}

#[test]
fn what_waits_for_the_reboot_is_pending_until_the_boot_has_another_id() {
    let case = Case::new(Bench::trading().line("ro")).line(&["nohz_full=1-7,9-15"]).with(|case| {
        case.applied_boot_id = THIS_BOOT;
        case.bench.host.topology.nohz_full = Reading::Known(CpuSet::new());
        case.ticks = Some(proof([900, 1], TickLoad::Spinner));
    });
    case.says("nohz_full=", Standing::Pending, &["waits for the reboot"]);
    case.says("CPUs without a tick (nohz_full)", Standing::Pending, &[]);
    case.says("ticks of CPU 1", Standing::Pending, &[]);
    assert_eq!(case.verify().outcome(), super::super::Outcome::Pending);
    let rebooted = case.with(|case| case.applied_boot_id = "an earlier boot");
    rebooted.says("nohz_full=", Standing::Lost, &[]);
    assert_eq!(rebooted.verify().outcome(), super::super::Outcome::NotHeld);
}

#[test]
fn what_the_next_entry_lacks_does_not_come_with_the_reboot() {
    let next = |line: &str, applied: &'static str| {
        Case::new(Bench::trading().line("ro")).line(&["skew_tick=1"]).with(|case| {
            case.applied_boot_id = applied;
            case.evidence.next_boot_line = Reading::Known(line.into());
        })
    };
    next("ro skew_tick=1", THIS_BOOT).says("skew_tick=", Standing::Pending, &[]);
    next("ro", THIS_BOOT).says("skew_tick=", Standing::Lost, &["a reboot will not activate it"]);
    next("ro skew_tick=1", "an earlier boot").says(
        "skew_tick=",
        Standing::Lost,
        &["another entry", "reboot"],
    );
}

/// In no boot is a culprit invented for a line that was never written.
#[test]
fn a_refused_command_line_is_refused_in_every_boot() {
    let why =
        "this host boots with Limine; set nohz_full=1-7,9-15 manually in /boot/limine.conf; then reboot";
    let case = |line: &str, applied: &'static str| {
        let words = &["nohz_full=1-7,9-15", "skew_tick=1"];
        Case::new(Bench::trading().line(line)).line(words).with(|case| {
            case.applied_boot_id = applied;
            case.bench.host.topology.nohz_full = Reading::Known(CpuSet::new());
            case.ticks = Some(proof([900, 1], TickLoad::Spinner));
            let target = case.plan.changes[0].target.clone();
            case.evidence.refused = vec![Refusal { target, reason: why.into() }];
        })
    };
    for applied in [THIS_BOOT, "an earlier boot"] {
        let refused = case("ro", applied);
        for what in ["nohz_full=", "skew_tick=", "CPUs without a tick (nohz_full)", "ticks of CPU 1"] {
            let row = refused.says(what, Standing::Refused, &["set nohz_full=1-7,9-15 manually"]);
            assert!(row.by.is_none() && !row.note.contains("tune apply"), "{}", row.note);
        }
        assert_eq!(refused.verify().outcome(), super::super::Outcome::NotHeld);
        case("ro nohz_full=2-3", applied).says("nohz_full=", Standing::Refused, &["nohz_full=2-3"]);
        // Set manually, in part and for the next boot.
        let in_part = case("ro skew_tick=1", applied);
        in_part.says("skew_tick=", Standing::Held, &[]);
        in_part.says("nohz_full=", Standing::Refused, &[]);
        let later = case("ro", applied).with(|case| {
            case.evidence.next_boot_line = Reading::Known("ro skew_tick=1 nohz_full=1-7,9-15".into());
        });
        later.says("nohz_full=", Standing::Pending, &["waits for the reboot"]);
        assert_eq!(later.verify().outcome(), super::super::Outcome::Pending);
    }
}

#[test]
fn a_parameter_from_elsewhere_is_named_by_file_line_and_variable() {
    let case = Case::new(Bench::trading().line("ro nohz_full=2-3")).line(&["nohz_full=1-7,9-15"]);
    case.says("nohz_full=", Standing::Overridden, &["unknown", "grep -rs"]);
    let case = case.with(|case| {
        case.evidence.boot = vec![
            source("/boot/loader/entries/a.conf", "options", "ro nohz_full=2-3"),
            source("/etc/default/grub", "GRUB_CMDLINE_LINUX", "nohz_full=2,3"),
        ];
    });
    case.says(
        "nohz_full=",
        Standing::Overridden,
        &["/etc/default/grub:6", "nohz_full=2-3 in GRUB_CMDLINE_LINUX"],
    );
}

#[test]
fn two_values_on_one_line_are_told() {
    let case =
        Case::new(Bench::trading().line("ro skew_tick=1 skew_tick=0")).line(&["skew_tick=1"]).with(|case| {
            case.evidence.boot = vec![source("/etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE", "skew_tick=0")];
        });
    case.says("skew_tick=", Standing::Overridden, &["/etc/tuned/bootcmdline:6", "more than once"]);
}

#[test]
fn a_value_that_does_not_win_overrides_nothing() {
    let built_in =
        source("/boot/config-6.1", "CONFIG_CMDLINE, which the kernel was built with", "skew_tick=0");
    let case = |line: &str, planned: &str| {
        let case = Case::new(Bench::trading().line(line)).line(&[planned]);
        case.with(|case| case.evidence.boot = vec![built_in.clone()])
    };
    case("skew_tick=0 ro skew_tick=1", "skew_tick=1").says("skew_tick=", Standing::Held, &[]);
    case("skew_tick=1 ro skew_tick=0", "skew_tick=1").says(
        "skew_tick=",
        Standing::Overridden,
        &["/boot/config-6.1"],
    );
}

#[test]
fn tuned_s_own_parameters_are_its_profile_s() {
    let case = Case::new(Bench::trading().line("ro skew_tick=0")).line(&["skew_tick=1"]);
    let case =
        case.with(|case| case.evidence.tuned = vec![tuned("bootloader", "cmdline_x", "+quiet skew_tick=0")]);
    case.says("skew_tick=", Standing::Overridden, &["/usr/lib/tuned/balanced/tuned.conf:7", "[bootloader]"]);
}

#[test]
fn a_kernel_update_that_wrote_the_entry_anew_is_told() {
    let case = Case::new(Bench::trading().line("ro")).line(&["nohz_full=1-7,9-15"]).with(|case| {
        case.plan.host.kernel_release = Reading::Known("6.1.0-25".into());
        case.bench.host.kernel.release = Reading::Known("6.1.0-28".into());
    });
    case.says("nohz_full=", Standing::Lost, &["from 6.1.0-25 to 6.1.0-28"]);
    assert!(case.verify().warnings.iter().any(|warning| warning.contains("6.1.0-28 is running")));
}

#[test]
fn a_kernel_without_adaptive_ticks_ignores_the_parameter() {
    let bench = Bench::trading().line("ro nohz_full=1-7,9-15").config(&["RCU_NOCB_CPU"]);
    let case = Case::new(bench).line(&["nohz_full=1-7,9-15"]);
    case.says("nohz_full=", Standing::Ineffective, &["without CONFIG_NO_HZ_FULL", "is absent"]);
    let off = Case::new(Bench::trading().line("ro nohz=off nohz_full=1-7,9-15").with(|bench| {
        bench.host.topology.nohz_full = Reading::Known(CpuSet::new());
    }))
    .line(&["nohz_full=1-7,9-15"]);
    off.says("nohz_full=", Standing::Ineffective, &["nohz_full is empty", "nohz=off"]);
    off.says("CPUs without a tick (nohz_full)", Standing::Ineffective, &["nohz=off"]);
}

#[test]
fn isolcpus_without_domain_does_not_isolate_from_the_scheduler() {
    let line = "isolcpus=managed_irq,1-7,9-15";
    let case = Case::new(Bench::trading().line(line)).line(&[line]);
    case.says("isolcpus=", Standing::Ineffective, &["without the flag domain"]);
    let whole = "isolcpus=managed_irq,domain,1-7,9-15";
    let bench = |isolated: &str| {
        Bench::trading().line("isolcpus=domain,managed_irq,1-7,9-15").with(|bench| {
            bench.host.topology.isolated = Reading::Known(list(isolated));
        })
    };
    Case::new(bench("1-7,9-15")).line(&[whole]).says("isolcpus=", Standing::Held, &[]);
    let part = Case::new(bench("1-3")).line(&[whole]);
    part.says("isolcpus=", Standing::Ineffective, &["isolated is 1-3"]);
    part.says("isolated CPUs", Standing::Ineffective, &["1-3"]);
}

#[test]
fn isolated_cpuset_partitions_count_as_isolated() {
    let case =
        Case::new(Bench::trading().line("isolcpus=1-7,9-15")).line(&["isolcpus=1-7,9-15"]).with(|case| {
            case.bench.host.topology.isolated = Reading::Known(CpuSet::new());
            case.bench.host.services.cpuset_partitions = vec![lowlat_host::snapshot::CpusetPartition {
                group: "/lowlat".into(),
                state: "isolated".into(),
                cpus: Reading::Known(list("1-7,9-15")),
            }];
        });
    case.says("isolated CPUs", Standing::Held, &["1-7,9-15"]);
}

#[test]
fn a_partition_is_held_only_while_the_kernel_isolates_its_cpus() {
    let of = |state: Option<&str>| {
        let target = Target::CpusetPartition { slice: "lowlat.slice".into() };
        Case::new(Bench::trading()).change(target, "none", "1-7,9-15").with(|case| {
            case.bench.host.topology.isolated = Reading::Known(CpuSet::new());
            let partition = state.map(|state| lowlat_host::snapshot::CpusetPartition {
                group: "/lowlat.slice".into(),
                state: state.into(),
                cpus: Reading::Known(list("1-7,9-15")),
            });
            case.bench.host.services.cpuset_partitions = partition.into_iter().collect();
        })
    };
    let what = "isolated partition lowlat.slice";
    of(Some("isolated")).says(what, Standing::Held, &[]);
    of(Some("isolated")).says("isolated CPUs", Standing::Held, &["1-7,9-15"]);
    of(None).says(what, Standing::Lost, &[]);
    let invalid = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
    of(Some(invalid)).says(what, Standing::Ineffective, &["not exclusive"]);
}

#[test]
fn a_parameter_of_a_module_shows_in_sysfs() {
    let path = "/sys/module/rcutree/parameters/nohz_full_patience_delay";
    assert_eq!(super::super::module_path("rcutree.nohz_full_patience_delay").as_deref(), Some(path));
    for odd in ["nohz", ".x", "x.", "../a.b", "a.b/c"] {
        assert_eq!(super::super::module_path(odd), None, "{odd}");
    }
    let word = "somemodule.some_flag=1";
    let path = "/sys/module/somemodule/parameters/some_flag";
    let case = |shown: &str| Case::new(Bench::trading().line(word).knob(path, shown)).line(&[word]);
    case("Y").says("somemodule.some_flag=", Standing::Held, &[]);
    case("N").says("somemodule.some_flag=", Standing::Ineffective, &["some_flag is N"]);
}

#[test]
fn what_was_set_again_after_the_start_is_blamed_on_who_did() {
    let word = "transparent_hugepage=never";
    let bench = Bench::trading()
        .line(word)
        .with(|bench| bench.host.memory.thp_enabled = Reading::Known("always".into()));
    let case = Case::new(bench).line(&[word]);
    let tuned_case =
        case.with(|case| case.evidence.tuned = vec![tuned("vm", "transparent_hugepages", "always")]);
    tuned_case.says(
        "transparent_hugepage=",
        Standing::Overridden,
        &["tuned.conf:7", "transparent_hugepages = always"],
    );
}

#[test]
fn a_line_that_cannot_be_read_leaves_every_parameter_open() {
    let case = Case::new(Bench::trading().with(|bench| bench.host.kernel.command_line = Reading::Denied))
        .line(&["skew_tick=1", "quiet"]);
    case.says("skew_tick=", Standing::Unreadable, &["as root"]);
    case.says("quiet", Standing::Unreadable, &[]);
}

#[test]
fn a_parameter_that_was_taken_off_must_stay_off() {
    let target = || Target::CommandLine {
        tokens: vec![BootToken {
            setting: "boot.nohz_full".into(),
            name: "nohz".into(),
            value: None,
            before: Some("nohz=off".into()),
        }],
    };
    let case = |line: &str| Case::new(Bench::trading().line(line)).change(target(), "nohz=off ro", "ro");
    case("ro").says("nohz=", Standing::Held, &[]);
    case("ro nohz=off").says("nohz=", Standing::Lost, &["nohz=off"]);
}
