//! Rows for newer kernels, and for the kernel's build options.

use crate::{CATALOGUE, testing::Bench, testing::junk, testing::list};
use lowlat_host::Reading;
use lowlat_settings::{Verdict, change::Proposal};
use std::collections::BTreeMap;

fn proposal(bench: &Bench, id: &str) -> Proposal {
    CATALOGUE.find(id).unwrap().proposal(&bench.context())
}

/// The changes that a row proposes: target and value.
fn steps(bench: &Bench, id: &str) -> Vec<(String, String)> {
    let steps = proposal(bench, id).steps;
    steps.iter().map(|step| (step.target.kind().facts().name, step.after.clone())).collect()
}

/// The parameters that a row proposes, with their values; none for one that is removed.
fn tokens(bench: &Bench, id: &str) -> Vec<(String, Option<String>)> {
    proposal(bench, id).tokens.into_iter().map(|token| (token.name, token.value)).collect()
}

fn newest() -> Bench {
    Bench::trading().kernel(7, 3).line("ro").config(&["SCHED_CLASS_EXT", "SCHED_CACHE", "PREEMPT_DYNAMIC"])
}

#[test]
fn the_kernel_is_built_for_isolated_cpus() {
    for (id, option) in
        [("kernel.config.no_hz_full", "NO_HZ_FULL"), ("kernel.config.rcu_nocb_cpu", "RCU_NOCB_CPU")]
    {
        Bench::trading().config(&[option]).says(id, Verdict::Good, &["y"]);
        Bench::trading().config(&["SMP"]).says(id, Verdict::Wrong, &["not set", "boot a kernel"]);
        Bench::trading().says(id, Verdict::Unknown, &["/boot/config"]);
        assert!(!proposal(&Bench::trading().config(&["SMP"]), id).left_out.is_empty());
    }
    let id = "kernel.config.debug";
    Bench::trading().config(&["SMP"]).says(id, Verdict::Good, &[]);
    let two = Bench::trading().config(&["KASAN", "PROVE_LOCKING"]);
    two.says(id, Verdict::Wrong, &["CONFIG_KASAN, CONFIG_PROVE_LOCKING"]);
    let module = two.with(|bench| {
        let options = [("KASAN", "n"), ("PROVE_LOCKING", "m")];
        let config = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        bench.host.kernel.config = Reading::Known(BTreeMap::from(config));
    });
    module.says(id, Verdict::Good, &[]);
    let id = "kernel.config.preempt_rt";
    Bench::trading().config(&["PREEMPT_RT"]).says(id, Verdict::NotApplicable, &["y"]);
    Bench::trading().config(&["SMP"]).says(id, Verdict::NotApplicable, &["not set"]);
}

#[test]
fn lazy_preemption_is_seen_in_debugfs_or_on_the_line() {
    let (id, path) = ("boot.preempt", "/sys/kernel/debug/sched/preempt");
    newest().knob(path, "full (lazy)").says(id, Verdict::Wrong, &["lazy"]);
    newest().knob(path, "(full) lazy").says(id, Verdict::Good, &["full"]);
    newest().knob(path, "none voluntary (full) lazy").kernel(6, 13).says(id, Verdict::Good, &["full"]);
    newest().line("preempt=lazy").says(id, Verdict::Wrong, &["preempt=lazy"]);
    newest().line("preempt=lazy").knob(path, "(full) lazy").says(id, Verdict::Good, &["full"]);
    newest().says(id, Verdict::Unknown, &[path]);
    newest().knob(path, "full lazy").says(id, Verdict::Unknown, &["full lazy"]);
    newest().kernel(6, 12).knob(path, "none (voluntary) full").says(id, Verdict::Good, &["no lazy"]);
    newest().kernel(6, 1).says(id, Verdict::Good, &["no lazy"]);
    newest().kernel(5, 11).says(id, Verdict::NotApplicable, &["5.12"]);
    let lazy = newest().knob(path, "full (lazy)");
    assert_eq!(tokens(&lazy, id), [("preempt".to_owned(), Some("full".to_owned()))]);
}

#[test]
fn pressure_is_accounted_for_unless_built_or_switched_off() {
    let id = "boot.psi";
    let bench = |line: &str, options: &[&str]| Bench::trading().line(line).config(options);
    bench("ro", &["PSI"]).says(id, Verdict::Wrong, &["on"]);
    bench("psi=0", &["PSI"]).says(id, Verdict::Good, &[]);
    bench("ro", &["PSI", "PSI_DEFAULT_DISABLED"]).says(id, Verdict::Good, &["PSI_DEFAULT_DISABLED"]);
    bench("psi=1", &["PSI", "PSI_DEFAULT_DISABLED"]).says(id, Verdict::Wrong, &["psi=1"]);
    bench("ro", &["SMP"]).says(id, Verdict::NotApplicable, &["CONFIG_PSI"]);
    Bench::trading().line("ro").says(id, Verdict::Unknown, &["/boot/config"]);
    assert_eq!(tokens(&bench("ro", &["PSI"]), id), [("psi".to_owned(), Some("0".to_owned()))]);
}

#[test]
fn detection_of_split_locks_stays_on() {
    let id = "boot.split_lock_detect";
    Bench::trading().line("ro").says(id, Verdict::Good, &["default"]);
    Bench::trading().line("split_lock_detect=fatal").says(id, Verdict::Good, &["fatal"]);
    let off = Bench::trading().line("split_lock_detect=off");
    off.says(id, Verdict::Wrong, &["off"]);
    assert_eq!(tokens(&off, id), [("split_lock_detect".to_owned(), None)]);
}

#[test]
fn calls_of_efi_stay_on_housekeeping_cpus() {
    let id = "boot.efi_runtime";
    let bench = |line: &str, cpus: &str| {
        Bench::trading().line(line).config(&["EFI"]).with(|bench| {
            bench.host.firmware.is_uefi = Reading::Known(true);
            bench.host.tasks.workqueue_cpus = Reading::Known(list(cpus));
        })
    };
    bench("ro", "0,8").says(id, Verdict::Good, &["0,8"]);
    bench("ro", "0-15").says(id, Verdict::Wrong, &["isolated"]);
    bench("efi=debug,noruntime", "0-15").says(id, Verdict::Good, &[]);
    bench("efi=noruntime efi=runtime", "0-15").says(id, Verdict::Wrong, &[]);
    let built_off = bench("ro", "0-15").config(&["EFI_DISABLE_RUNTIME"]);
    built_off.says(id, Verdict::Good, &["EFI_DISABLE_RUNTIME"]);
    bench("efi=runtime", "0-15").config(&["EFI_DISABLE_RUNTIME"]).says(id, Verdict::Wrong, &[]);
    let bios = bench("ro", "0-15").with(|bench| bench.host.firmware.is_uefi = Reading::Known(false));
    bios.says(id, Verdict::NotApplicable, &["UEFI"]);
    let unread = bench("ro", "0").with(|bench| bench.host.tasks.workqueue_cpus = Reading::Denied);
    unread.says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn devices_without_translation_need_their_risk_accepted() {
    let (id, path) = ("boot.iommu_pt", "/sys/kernel/iommu_groups/0/type");
    let bench = |line: &str, kind: &str| Bench::trading().line(line).knob(path, kind);
    bench("ro", "DMA-FQ").says(id, Verdict::Wrong, &["DMA-FQ"]);
    bench("ro", "identity").says(id, Verdict::Good, &[]);
    bench("amd_iommu=on iommu=pt", "identity").says(id, Verdict::Good, &[]);
    bench("iommu=pt", "DMA").says(id, Verdict::Ineffective, &["translates"]);
    Bench::trading().line("iommu=pt").says(id, Verdict::Good, &[]);
    Bench::trading().line("ro").says(id, Verdict::Unknown, &[path]);
    let none = Bench::trading().line("ro").with(|bench| bench.host.firmware.iommu_count = Reading::Known(0));
    none.says(id, Verdict::NotApplicable, &["no IOMMU"]);
    assert_eq!(CATALOGUE.find(id).unwrap().risk, lowlat_settings::Risk::Security);
}

#[test]
fn a_serial_console_is_kept_silent() {
    let (row, level) = ("boot.console_serial", "sysctl.kernel.printk");
    let bench = |line: &str, printk: &str| Bench::trading().line(line).sysctl("kernel.printk", printk);
    let serial = bench("console=tty0 console=ttyS1,115200n8", "7\t4\t1\t7");
    serial.says(row, Verdict::Wrong, &["console=ttyS1"]);
    serial.says(level, Verdict::Wrong, &["console=ttyS1"]);
    assert_eq!(steps(&serial, level), [("kernel.printk".to_owned(), "4 4 1 7".to_owned())]);
    assert!(proposal(&serial, row).is_empty());
    let quiet = bench("console=ttyS0", "4 4 1 7");
    quiet.says(row, Verdict::Good, &["ttyS0", "no warnings"]);
    quiet.says(level, Verdict::Good, &[]);
    bench("console=tty0", "7 4 1 7").says(row, Verdict::Good, &["none"]);
    bench("console=tty0", "7 4 1 7").says(level, Verdict::Good, &["no console is serial"]);
    bench("ro", "7 4 1").says(level, Verdict::Unknown, &["four numbers"]);
}

#[test]
fn the_mesh_runs_at_its_highest_frequency() {
    let id = "sysfs.uncore_frequency";
    let path =
        |file: &str| format!("/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/{file}");
    let bench =
        |min: &str| Bench::trading().knob(&path("min_freq_khz"), min).knob(&path("max_freq_khz"), "2400000");
    bench("2400000").says(id, Verdict::Good, &["package_00_die_00"]);
    bench("800000").says(id, Verdict::Wrong, &["min_freq_khz 800000 of 2400000"]);
    let floor = bench("2400000").knob(&path("elc_floor_freq_khz"), "1200000");
    floor.says(id, Verdict::Wrong, &["elc_floor_freq_khz"]);
    assert_eq!(steps(&floor, id), [(path("elc_floor_freq_khz"), "2400000".to_owned())]);
    assert_eq!(steps(&bench("800000"), id), [(path("min_freq_khz"), "2400000".to_owned())]);
    bench("fast").says(id, Verdict::Unknown, &["fast"]);
    bench("1").reading(&path("max_freq_khz"), Reading::Denied).says(id, Verdict::Unknown, &[]);
    Bench::trading().says(id, Verdict::NotApplicable, &["not the kernel's"]);
}

#[test]
fn the_platform_s_profile_is_set_where_the_firmware_offers_it() {
    let (id, path) = ("sysfs.platform_profile", "/sys/firmware/acpi/platform_profile");
    let bench = |now: &str, choices: &str| {
        Bench::trading().knob(path, now).knob("/sys/firmware/acpi/platform_profile_choices", choices)
    };
    let all = "low-power balanced performance";
    bench("performance", all).says(id, Verdict::Good, &[]);
    bench("balanced", all).says(id, Verdict::Wrong, &["balanced"]);
    assert_eq!(steps(&bench("balanced", all), id), [(path.to_owned(), "performance".to_owned())]);
    bench("balanced", "quiet balanced").says(id, Verdict::Good, &["offers no profile"]);
    Bench::trading().says(id, Verdict::NotApplicable, &["no profiles"]);
    Bench::trading().reading(path, Reading::Denied).says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn memory_is_not_sampled() {
    let (id, path) = ("sysfs.damon_stat", "/sys/module/damon_stat/parameters/enabled");
    let bench = |value: &str| newest().config(&["DAMON_STAT"]).knob(path, value);
    bench("N").says(id, Verdict::Good, &[]);
    bench("Y").says(id, Verdict::Wrong, &["Y"]);
    assert_eq!(steps(&bench("Y"), id), [(path.to_owned(), "N".to_owned())]);
    newest().says(id, Verdict::NotApplicable, &["CONFIG_DAMON_STAT"]);
    newest().kernel(6, 16).says(id, Verdict::NotApplicable, &["6.17"]);
    bench("Y").kernel(6, 16).says(id, Verdict::Wrong, &["Y"]);
    bench("Y").reading(path, Reading::Denied).says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn a_loaded_scheduler_is_found_and_its_service_stopped() {
    let (id, server) = ("sysfs.sched_ext", "debugfs.sched.ext_server");
    let path = "/sys/kernel/debug/sched/ext_server/cpu3/runtime";
    let bench = |state: &str| {
        newest().sysctl("kernel.sched_rt_runtime_us", "1000000").knob(path, "50000000").with(|bench| {
            bench.host.scheduler.ext_state = Reading::Known(state.into());
            bench.host.scheduler.ext_scheduler = Reading::Known("scx_rusty".into());
        })
    };
    bench("disabled").says(id, Verdict::Good, &["disabled"]);
    bench("disabled").says(server, Verdict::Good, &["nothing to serve"]);
    bench("enabled").says(id, Verdict::Wrong, &["scx_rusty"]);
    bench("enabled").says(server, Verdict::Wrong, &["1 of 14"]);
    assert_eq!(steps(&bench("enabled"), server), [(path.to_owned(), "0".to_owned())]);
    assert!(!proposal(&bench("enabled"), id).left_out.is_empty());
    let by_service = bench("enabled").unit("scx_loader.service", "active");
    assert_eq!(steps(&by_service, id), [("scx_loader.service".to_owned(), "inactive, disabled".to_owned())]);
    newest().says(id, Verdict::NotApplicable, &["no sched_ext"]);
    bench("enabled").config(&["SMP"]).says(id, Verdict::NotApplicable, &["SCHED_CLASS_EXT"]);
    newest().kernel(6, 19).says(server, Verdict::NotApplicable, &["7.0"]);
    bench("enabled").kernel(6, 19).says(server, Verdict::Wrong, &["1 of 14"]);
}

#[test]
fn balancing_by_cache_is_off_in_either_spelling() {
    let (id, path) = ("debugfs.sched.llc_balancing", "/sys/kernel/debug/sched/llc_balancing/enabled");
    newest().knob(path, "0").says(id, Verdict::Good, &[]);
    newest().knob(path, "1").says(id, Verdict::Wrong, &["1"]);
    assert_eq!(steps(&newest().knob(path, "1"), id), [(path.to_owned(), "0".to_owned())]);
    newest().knob(path, "always advise [never]").says(id, Verdict::Good, &[]);
    let advised = newest().knob(path, "always [advise] never");
    advised.says(id, Verdict::Wrong, &["advise"]);
    assert_eq!(steps(&advised, id), [(path.to_owned(), "never".to_owned())]);
    newest().says(id, Verdict::Unknown, &["debugfs"]);
    newest().reading(path, junk(path)).says(id, Verdict::Unknown, &["junk"]);
    newest().kernel(7, 1).says(id, Verdict::NotApplicable, &["7.2"]);
}

#[test]
fn services_with_a_schedule_of_their_own_are_stopped() {
    for (id, unit) in [
        ("service.stalld", "stalld.service"),
        ("service.fstrim", "fstrim.timer"),
        ("service.updates", "apt-daily-upgrade.timer"),
        ("service.updates", "dnf-makecache.timer"),
    ] {
        let active = Bench::trading().unit(unit, "active");
        active.says(id, Verdict::Wrong, &[unit]);
        assert_eq!(steps(&active, id).len(), 1, "{id}");
        Bench::trading().unit(unit, "inactive").says(id, Verdict::Good, &[]);
        Bench::trading().unit("x.service", "active").says(id, Verdict::NotApplicable, &[]);
        active.with(|bench| bench.profile = lowlat_host::Profile::Guide57037).says(
            id,
            Verdict::NotApplicable,
            &["does not set it"],
        );
    }
}

#[test]
fn limits_of_users_are_read_from_their_files() {
    let file = "/etc/security/limits.d/90-trading.conf";
    let bench = |text: &str| {
        Bench::trading().knob("/etc/security/limits.conf", "# * hard memlock 1\n").knob(file, text)
    };
    let (memlock, rtprio) = ("service.limits.memlock", "service.limits.rtprio");
    bench("@trading - memlock unlimited\n@trading hard rtprio 95\n").says(
        memlock,
        Verdict::Good,
        &["unlimited"],
    );
    bench("@trading - memlock unlimited\n@trading hard rtprio 95\n").says(rtprio, Verdict::Good, &["95"]);
    bench("* hard memlock 65536\n").says(memlock, Verdict::Wrong, &["65536", "LimitMEMLOCK=infinity"]);
    bench("* hard memlock 64\nmd - memlock -1\n").says(memlock, Verdict::Good, &[]);
    bench("* soft memlock unlimited\n").says(memlock, Verdict::Unknown, &["kernel's default"]);
    bench("md - rtprio 0\n").says(rtprio, Verdict::Wrong, &["0"]);
    bench("md - rtprio\n- - - -\n").says(rtprio, Verdict::Unknown, &["LimitRTPRIO"]);
    Bench::trading().says(memlock, Verdict::Unknown, &[]);
    bench("").reading("/etc/security/limits.conf", Reading::Denied).says(
        memlock,
        Verdict::Unknown,
        &["root"],
    );
}

#[test]
fn handlers_of_core_dumps_are_named() {
    let id = "sysctl.kernel.core_pattern";
    let bench = |pattern: &str| Bench::trading().sysctl("kernel.core_pattern", pattern);
    bench("|/usr/lib/systemd/systemd-coredump %P %u").says(id, Verdict::Wrong, &["systemd-coredump"]);
    bench("core").says(id, Verdict::Good, &["no handler"]);
    bench("|").says(id, Verdict::Good, &[]);
    Bench::trading().reading("/proc/sys/kernel/core_pattern", Reading::Denied).says(
        id,
        Verdict::Unknown,
        &["root"],
    );
}

#[test]
fn selinux_is_no_parameter_of_kernels_that_are_built_without_it() {
    let bench = |line: &str, options: &[&str]| Bench::guide().line(line).config(options);
    let option = "SECURITY_SELINUX_BOOTPARAM";
    bench("selinux=0", &[option]).says("boot.selinux", Verdict::Good, &[]);
    bench("selinux=0", &["SMP"]).says("boot.selinux", Verdict::NotApplicable, &[option]);
    // The guide's line contains the word anyway.
    bench("ro", &["SMP"]).says("boot.selinux", Verdict::Wrong, &[]);
}

/// Every row with a range of versions, on kernels outside of it. A setting that the kernel shows counts more than its
/// version.
#[test]
fn a_row_that_the_kernel_shows_is_not_called_unknown_to_it() {
    let mut shown = 0;
    for setting in
        CATALOGUE.settings().filter(|setting| setting.needs.since.is_some() || setting.needs.until.is_some())
    {
        let outside = match (setting.needs.since, setting.needs.until) {
            (Some(since), _) => (since.major - 1, 99),
            (None, until) => until.map(|until| (until.major, until.minor)).unwrap(),
        };
        let bench = Bench::trading().kernel(outside.0, outside.1);
        let is_by_version = |bench: &Bench| {
            let because = bench.judge(setting.id).because;
            ["is older than", "removed it", "moved it"].iter().any(|text| because.contains(text))
        };
        if bench.judge(setting.id).because.contains("does not set it") {
            continue;
        }
        assert!(is_by_version(&bench), "{}: {}", setting.id, bench.judge(setting.id).because);
        let has_it = match setting.reads.first() {
            Some(own) => bench.knob(&own.replace('*', "0"), "1").config(setting.needs.config),
            None if setting.needs.config.is_empty() => continue,
            None => bench.config(setting.needs.config),
        };
        assert!(!is_by_version(&has_it), "{}: {}", setting.id, has_it.judge(setting.id).because);
        shown += 1;
    }
    assert!(shown > 8, "{shown}");
}
