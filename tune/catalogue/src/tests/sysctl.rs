//! Sysctls: in force, shadowed, written but not in force, removed, and those with separate judges.

use crate::{testing::Bench, testing::junk};
use lowlat_host::{Profile, Reading};
use lowlat_settings::Verdict;

const NUMA: &str = "sysctl.kernel.numa_balancing";
const NUMA_PATH: &str = "/proc/sys/kernel/numa_balancing";

#[test]
fn a_plain_sysctl_gets_each_verdict() {
    use Verdict::{Good, NotApplicable, Unknown, Wrong};
    for (reading, verdict, piece) in [
        (Reading::Known("0".to_owned()), Good, "0"),
        (Reading::Known("1".to_owned()), Wrong, "1"),
        (Reading::Denied, Unknown, "run as root"),
        (Reading::Absent, NotApplicable, "no such sysctl"),
        (junk(NUMA_PATH), Unknown, "junk"),
        (Reading::Known("garbage".to_owned()), Unknown, "found \"garbage\", expected a number"),
        (Reading::Known(String::new()), Unknown, "found \"\", expected a number"),
    ] {
        Bench::trading().reading(NUMA_PATH, reading).says(NUMA, verdict, &[piece]);
    }
}

#[test]
fn sysctl_files_explain_a_wrong_value() {
    let bench = || Bench::trading().sysctl("kernel.numa_balancing", "1");
    let (early, late) = ("/etc/sysctl.d/100-lowlatency.conf", "/etc/sysctl.d/99-sysctl.conf");
    bench()
        .sysctl_file(early, "kernel.numa_balancing", "0")
        .sysctl_file(late, "kernel.numa_balancing", "1")
        .says(NUMA, Verdict::Shadowed, &[early, late, "wins"]);
    bench().sysctl_file(late, "kernel.numa_balancing", "0").says(
        NUMA,
        Verdict::Ineffective,
        &["not applied"],
    );
    bench().sysctl_file(late, "kernel.numa_balancing", "1").says(NUMA, Verdict::Wrong, &["set by", late]);
    bench().sysctl_file(late, "vm.swappiness", "0").says(NUMA, Verdict::Wrong, &[]);
}

#[test]
fn a_moved_sysctl_names_its_new_location() {
    let id = "sysctl.kernel.sched_latency_ns";
    let guide = |major, minor| Bench::of(Profile::Guide57037).kernel(major, minor);
    guide(6, 1).says(id, Verdict::NotApplicable, &["/sys/kernel/debug/sched/latency_ns", "5.13", "6.1"]);
    guide(5, 12).sysctl("kernel.sched_latency_ns", "24000000").says(id, Verdict::Good, &[]);
    guide(5, 12).sysctl("kernel.sched_latency_ns", "18000000").says(id, Verdict::Wrong, &["18000000"]);
}

#[test]
fn a_missing_kernel_option_makes_the_row_inapplicable() {
    Bench::trading().config(&["SMP"]).says(NUMA, Verdict::NotApplicable, &["CONFIG_NUMA_BALANCING"]);
}

#[test]
fn the_watchdog_mask_is_compared_as_a_set() {
    let id = "sysctl.kernel.watchdog_cpumask";
    let mask = |text: &str| Bench::trading().sysctl("kernel.watchdog_cpumask", text);
    mask("0,8").says(id, Verdict::Good, &["0,8"]);
    mask("8").says(id, Verdict::Good, &[]);
    mask("0-15").says(id, Verdict::Wrong, &["1-7,9-15"]);
    mask("0-15").sysctl("kernel.watchdog", "0").says(id, Verdict::Good, &["no detector is running"]);
    mask("0-").says(id, Verdict::Unknown, &["0-", "CPU list"]);
    Bench::trading().reading("/proc/sys/kernel/watchdog_cpumask", Reading::Denied).says(
        id,
        Verdict::Unknown,
        &["root"],
    );
    mask("0-15")
        .sysctl_file("/etc/sysctl.d/10-a.conf", "kernel.watchdog_cpumask", "0,8")
        .sysctl_file("/etc/sysctl.d/20-b.conf", "kernel.watchdog_cpumask", "0-15")
        .says(id, Verdict::Shadowed, &["1-7,9-15", "20-b.conf"]);
}

#[test]
fn limits_apply_in_trading_and_exact_values_in_the_guide() {
    let stat = "sysctl.vm.stat_interval";
    for (profile, value, verdict) in [
        (Profile::Trading, "1", Verdict::Wrong),
        (Profile::Trading, "10", Verdict::Good),
        (Profile::Trading, "3600", Verdict::Good),
        (Profile::Trading, "never", Verdict::Unknown),
        (Profile::Guide57037, "10", Verdict::Wrong),
        (Profile::Guide57037, "3600", Verdict::Good),
    ] {
        assert_eq!(Bench::of(profile).sysctl("vm.stat_interval", value).verdict(stat), verdict, "{value}");
    }
    for (value, verdict) in
        [("0", Verdict::Good), ("10", Verdict::Good), ("60", Verdict::Wrong), ("-1", Verdict::Wrong)]
    {
        assert_eq!(Bench::trading().sysctl("vm.swappiness", value).verdict("sysctl.vm.swappiness"), verdict);
    }
}

#[test]
fn a_dirty_ratio_is_shadowed_by_its_limit_in_bytes() {
    let id = "sysctl.vm.dirty_ratio";
    let ratio = |text: &str| Bench::trading().sysctl("vm.dirty_ratio", text);
    ratio("10").says(id, Verdict::Good, &[]);
    ratio("20").says(id, Verdict::Wrong, &["20"]);
    ratio("20").sysctl("vm.dirty_bytes", "0").says(id, Verdict::Wrong, &[]);
    ratio("0").sysctl("vm.dirty_bytes", "1073741824").says(id, Verdict::Shadowed, &["vm.dirty_bytes"]);
}

#[test]
fn real_time_runtime_is_explained() {
    let id = "sysctl.kernel.sched_rt_runtime_us";
    let runtime = |text: &str| Bench::trading().kernel(6, 1).sysctl("kernel.sched_rt_runtime_us", text);
    runtime("950000").says(id, Verdict::Good, &["stopped each second"]);
    runtime("-1").says(id, Verdict::Good, &["starve"]);
    runtime("0").says(id, Verdict::Wrong, &[]);
    runtime("-1").kernel(6, 12).config(&["SMP"]).says(id, Verdict::Good, &["fair server"]);
    runtime("-1").kernel(6, 12).config(&["RT_GROUP_SCHED"]).says(id, Verdict::Good, &["starve"]);
    let guide = |text| Bench::of(Profile::Guide57037).sysctl("kernel.sched_rt_runtime_us", text);
    guide("950000").says(id, Verdict::Wrong, &["950000"]);
    // The default since Linux 7.2, which limits nothing.
    runtime("1000000").kernel(7, 3).config(&["SMP"]).says(id, Verdict::Good, &["fair server"]);
    guide("1000000").says(id, Verdict::Good, &[]);
    runtime("500000").sysctl("kernel.sched_rt_period_us", "500000").says(id, Verdict::Good, &["starve"]);
    runtime("1000000").sysctl("kernel.sched_rt_period_us", "2000000").says(id, Verdict::Wrong, &[]);
}

#[test]
fn timer_migration_depends_on_the_profile() {
    let id = "sysctl.kernel.timer_migration";
    for (profile, value, verdict) in [
        (Profile::Trading, "0", Verdict::Good),
        (Profile::Trading, "1", Verdict::Wrong),
        (Profile::Guide57037, "1", Verdict::Good),
    ] {
        let bench = Bench::of(profile).sysctl("kernel.timer_migration", value);
        assert_eq!(bench.verdict(id), verdict, "{profile} {value}");
        let hazard = bench.judge(id).hazard;
        assert_eq!(hazard.is_empty(), profile == Profile::Trading, "{hazard}");
    }
}

#[test]
fn rp_filter_is_the_larger_of_all_and_the_interface() {
    let id = "sysctl.net.ipv4.conf.all.rp_filter";
    let values = |profile, all: &str, eth0: &str| {
        Bench::of(profile)
            .sysctl("net.ipv4.conf.all.rp_filter", all)
            .sysctl("net.ipv4.conf.default.rp_filter", "1")
            .sysctl("net.ipv4.conf.lo.rp_filter", "1")
            .sysctl("net.ipv4.conf.eth0.rp_filter", eth0)
    };
    let (trading, guide) = (Profile::Trading, Profile::Guide57037);
    values(guide, "0", "0").says(id, Verdict::Good, &[]);
    values(guide, "0", "1").says(id, Verdict::Ineffective, &["eth0 (1)", "larger"]);
    values(guide, "1", "0").says(id, Verdict::Wrong, &["1"]);
    values(trading, "0", "1").says(id, Verdict::Wrong, &["eth0 (1)"]);
    values(trading, "1", "2").says(id, Verdict::Good, &[]);
    values(trading, "1", "0").says(id, Verdict::Wrong, &["eth0 (0)"]);
    values(trading, "0", "0").says(id, Verdict::Good, &[]);
    values(trading, "0", "1").with(|bench| bench.role.nics = vec!["eth7".into()]).says(
        id,
        Verdict::Good,
        &[],
    );
    values(trading, "strict", "1").says(id, Verdict::Unknown, &["strict"]);
    Bench::trading().says(id, Verdict::NotApplicable, &[]);
}

#[test]
fn the_guides_file_is_compared_with_later_files() {
    let id = "sysctl.file.100-lowlatency";
    let (own, other) = ("/etc/sysctl.d/100-lowlatency.conf", "/etc/sysctl.d/50-default.conf");
    let guide = || Bench::of(Profile::Guide57037).sysctl_file(own, "vm.swappiness", "0");
    guide().says(id, Verdict::Good, &["1 keys"]);
    guide().sysctl_file(other, "vm.swappiness", "60").says(id, Verdict::Shadowed, &["vm.swappiness", other]);
    guide().sysctl_file(other, "vm.swappiness", "0").says(id, Verdict::Good, &[]);
    guide()
        .sysctl_file(own, "kernel.sched_latency_ns", "1")
        .reading("/proc/sys/kernel/sched_latency_ns", Reading::Absent)
        .says(id, Verdict::Ineffective, &["kernel.sched_latency_ns"]);
    Bench::of(Profile::Guide57037).says(id, Verdict::Wrong, &["missing or empty"]);
}
