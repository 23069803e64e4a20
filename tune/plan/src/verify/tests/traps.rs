//! The traps of guide 57037 that a verification must see, each by name.

use super::*;
use lowlat_host::snapshot::SchedPolicy;

#[test]
fn tuned_s_rollback_leaves_a_line_without_its_parameters_and_that_is_lost() {
    let case = Case::new(Bench::guide().line("ro quiet")).line(&["nohz_full=1-7,9-15", "rcu_nocbs=1-7,9-15"]);
    case.says("nohz_full=", Standing::Lost, &["not on the command line", "entry without the parameter"]);
    case.says("rcu_nocbs=", Standing::Lost, &[]);
}

#[test]
fn tuned_s_profile_is_named_by_file_and_line() {
    let case = Case::new(Bench::trading().sysctl("vm.swappiness", "30")).sysctl("vm.swappiness", "60", "0");
    let case = case.with(|case| case.evidence.tuned = vec![tuned("sysctl", "vm.swappiness", "30")]);
    case.says(
        "vm.swappiness",
        Standing::Overridden,
        &["/usr/lib/tuned/balanced/tuned.conf:7", "TuneD's active profile"],
    );
    // A value that the profile does not set is not blamed on it.
    let other = case.with(|case| case.evidence.tuned = vec![tuned("sysctl", "vm.swappiness", "10")]);
    other.says("vm.swappiness", Standing::Overridden, &["unknown", "auditctl -w /proc/sys/vm/swappiness"]);
}

#[test]
fn a_sysctl_file_that_sorts_behind_ours_is_named_though_ours_is_called_100() {
    let bench = Bench::trading()
        .sysctl("vm.swappiness", "60")
        .sysctl_file("/etc/sysctl.d/100-lowlatency.conf", "vm.swappiness", "0")
        .sysctl_file("/usr/lib/sysctl.d/50-default.conf", "vm.swappiness", "10")
        .sysctl_file("/etc/sysctl.d/99-sysctl.conf", "vm.swappiness", "60");
    let case = Case::new(bench).sysctl("vm.swappiness", "30", "0");
    case.says(
        "vm.swappiness",
        Standing::Overridden,
        &["/etc/sysctl.d/99-sysctl.conf:3", "vm.swappiness = 60"],
    );
}

#[test]
fn a_sysctl_that_vanished_with_a_kernel_is_absent_not_wrong() {
    let key = "kernel.sched_min_granularity_ns";
    let path = lowlat_host::snapshot::sysctl_path(key);
    let answers = [
        (Reading::Absent, "absent"),
        (Reading::Denied, "as root"),
        (Reading::unparsable(path.as_str(), "\u{1}junk", "text in UTF-8"), "unparsable"),
    ];
    for (reading, word) in answers {
        let case = Case::new(Bench::trading().reading(&path, reading)).sysctl(key, "1000000", "100000000");
        case.says(key, Standing::Unreadable, &[word]);
    }
}

#[test]
fn rp_filter_for_all_counts_where_it_is_larger() {
    let key = "net.ipv4.conf.eth0.rp_filter";
    let bench = |all: &str| Bench::guide().sysctl("net.ipv4.conf.all.rp_filter", all).sysctl(key, "0");
    Case::new(bench("0")).sysctl(key, "1", "0").says(key, Standing::Held, &[]);
    let case = Case::new(bench("2")).sysctl(key, "1", "0");
    case.says(key, Standing::Ineffective, &["net.ipv4.conf.all.rp_filter is 2", "the larger of the two"]);
}

#[test]
fn a_tick_that_the_fair_server_keeps_shows_in_the_count() {
    let bench = || {
        Bench::trading().line("nohz_full=1-7,9-15").with(|bench| {
            bench.host.topology.nohz_full = Reading::Known(list("1-7,9-15"));
        })
    };
    let case = |ticks, load| {
        let case = Case::new(bench()).line(&["nohz_full=1-7,9-15"]);
        case.with(|case| case.ticks = Some(proof(ticks, load)))
    };
    let busy = case([1_003, 10], TickLoad::Spinner);
    busy.says("ticks of CPU 1", Standing::Ineffective, &["1003 ticks", "CONFIG_HZ is 250", "fair server"]);
    busy.says("ticks of CPU 2", Standing::Held, &["10 ticks, under a spinning thread"]);
    case([11, 0], TickLoad::BusyTask).says(
        "ticks of CPU 1",
        Standing::Ineffective,
        &["the task running there"],
    );
    case([0, 0], TickLoad::Idle).says(
        "ticks of CPU 1",
        Standing::Held,
        &["0 ticks, idle, which proves little"],
    );
    let longer =
        case([20, 20], TickLoad::Spinner).with(|case| case.ticks.as_mut().unwrap().window_ns = 2_000_000_000);
    longer.says("ticks of CPU 1", Standing::Held, &[]);
}

#[test]
fn callbacks_of_rcu_must_have_threads_off_the_isolated_cpus() {
    let other = (SchedPolicy::Other, 0);
    let bench = || {
        let bench = Bench::trading().line("rcu_nocbs=1-2").with(|bench| {
            bench.allocation.isolated = list("1-2");
            bench.host.topology.online = CpuSet::first(3);
        });
        bench.thread("rcuog/1", "0", other, false).thread("rcuop/1", "0", other, false)
    };
    let case = |bench: Bench| {
        let case = Case::new(bench).line(&["rcu_nocbs=1-2"]);
        case.with(|case| case.ticks = Some(proof([0, 0], TickLoad::Spinner)))
    };
    let what = "RCU callbacks of isolated CPUs";
    case(bench()).says(what, Standing::Ineffective, &["serves CPU 2"]);
    let whole = || bench().thread("rcuop/2", "0", other, false);
    case(whole()).says(what, Standing::Held, &["3 threads"]);
    let moved = bench().thread("rcuop/2", "0-2", other, false);
    case(moved).says(what, Standing::Ineffective, &["rcuop/2 among them, may run on isolated CPUs"]);
    let loud = case(whole()).with(|case| {
        case.ticks.as_mut().unwrap().cpus[1].rcu_softirqs = Reading::Known(500);
    });
    loud.says(what, Standing::Ineffective, &["CPU 2 while counting"]);
}

#[test]
fn max_cstate_0_is_clamped_to_1() {
    let case = Case::new(Bench::guide()).line(&["processor.max_cstate=0"]);
    case.says("processor.max_cstate=", Standing::Ineffective, &["treats 0 as 1"]);
}

#[test]
fn spellings_of_a_value_are_one_value() {
    let bench = Bench::guide()
        .line("ro hugepagesz=2M rcu_nocbs=1,2,3,4,5,6,7,9,10,11,12,13,14,15 idle=poll")
        .thread("rcuop/1", "0", (SchedPolicy::Other, 0), false);
    let case = Case::new(bench).line(&["hugepagesz=2MB", "rcu_nocbs=1-7,9-15"]);
    case.says("hugepagesz=", Standing::Held, &[]);
    case.says("rcu_nocbs=", Standing::Held, &[]);
    let bench = Bench::trading().sysctl("net.ipv4.tcp_rmem", "4096\t87380\t16777216");
    let case = Case::new(bench).sysctl("net.ipv4.tcp_rmem", "1", "4096 87380 16777216");
    case.says("net.ipv4.tcp_rmem", Standing::Held, &[]);
}

#[test]
fn the_first_word_that_grub_s_script_ate_is_told_from_a_lost_line() {
    let words = ["skew_tick=1", "nohz_full=1-7,9-15", "irqaffinity=0,8"];
    let eaten = Case::new(Bench::trading().line("ro nohz_full=1-7,9-15 irqaffinity=0,8")).line(&words);
    let note = eaten.says("skew_tick=", Standing::Ineffective, &["drops the first word"]).note;
    assert!(!note.contains("has it"), "{note}");
    let source = super::super::BootSource {
        path: "/etc/default/grub.d/99-lowlat.cfg".into(),
        line: 2,
        variable: "GRUB_CMDLINE_LINUX".into(),
        parameters: "$GRUB_CMDLINE_LINUX skew_tick=1 nohz_full=1-7,9-15".into(),
    };
    let known = eaten.with(|case| case.evidence.boot = vec![source.clone()]);
    known.says("skew_tick=", Standing::Ineffective, &["/etc/default/grub.d/99-lowlat.cfg:2 has it"]);
    let all =
        Case::new(Bench::trading().line("ro")).line(&words).with(|case| case.evidence.boot = vec![source]);
    all.says("nohz_full=", Standing::Ineffective, &["the boot loader did not use it"]);
    all.says("irqaffinity=", Standing::Lost, &[]);
}

#[test]
fn cpus_beyond_64_are_compared_as_sets() {
    let isolated = list("1-127,129-255");
    let bench = Bench::trading().line("ro nohz_full=1-127,129-255").with(|bench| {
        bench.host.topology.online = CpuSet::first(256);
        bench.host.topology.nohz_full = Reading::Known(isolated.clone());
        bench.allocation.housekeeping = list("0,128");
        bench.allocation.isolated = isolated.clone();
        bench.host.tasks.workqueue_cpus = Reading::Known(list("0,128"));
    });
    let path = "/sys/bus/workqueue/devices/writeback/cpumask";
    let mask = list("0,128").to_mask_padded(256);
    let case = Case::new(bench.knob(path, &mask))
        .line(&["nohz_full=1-127,129-255"])
        .change(Target::WorkqueueCpus { name: None }, "0-255", "0,128")
        .file(path, "0-255", "0,128");
    for what in ["CPUs without a tick (nohz_full)", "nohz_full=", "all unbound work", path] {
        case.says(what, Standing::Held, &[]);
    }
    let wrapped = case.with(|case| case.bench.host.tasks.workqueue_cpus = Reading::Known(list("0")));
    wrapped.says("all unbound work", Standing::Overridden, &["unknown"]);
}

#[test]
fn a_cpu_that_is_off_is_nobody_s_fault() {
    let bench = Bench::trading().line("nohz_full=1-7,9-15").with(|bench| {
        bench.host.topology.online.remove(15);
        bench.host.topology.nohz_full = Reading::Known(list("1-7,9-14"));
    });
    let case = Case::new(bench).line(&["nohz_full=1-7,9-15"]);
    case.says("nohz_full=", Standing::Held, &[]);
    case.says("CPUs without a tick (nohz_full)", Standing::Held, &[]);
}

#[test]
fn a_thread_bound_to_its_cpu_refuses_and_a_moved_one_is_found_by_name() {
    let other = (SchedPolicy::Other, 0);
    let bench = Bench::trading()
        .thread("ksoftirqd/3", "3", other, true)
        .thread("kswapd0", "0", other, false)
        .thread("rcu_tasks_kthre", "0-15", other, false);
    let affinity = |comm: &str, pid| Target::KernelThreadAffinity { comm: comm.into(), pid };
    let case = Case::new(bench)
        .change(affinity("ksoftirqd/3", 900), "3", "0,8")
        .change(affinity("kswapd0", 901), "0-15", "0")
        .change(affinity("rcu_tasks_kthre", 902), "0-15", "0,8")
        .change(affinity("md127_raid1", 903), "0-15", "0,8");
    case.says("CPUs of ksoftirqd/3", Standing::Ineffective, &["EINVAL"]);
    case.says("CPUs of kswapd0", Standing::Held, &["0"]);
    case.says("CPUs of rcu_tasks_kthre", Standing::Lost, &["lowlat.service"]);
    case.says("CPUs of md127_raid1", Standing::Gone, &[]);
}

#[test]
fn a_service_that_its_socket_or_the_next_boot_starts_again_is_told() {
    let unit = "systemd-journald.service";
    let case = |bench: Bench| {
        Case::new(bench).change(
            Target::Service { unit: unit.into() },
            "active, enabled",
            "inactive, disabled",
        )
    };
    case(Bench::guide().unit(unit, "inactive")).says(unit, Standing::Held, &[]);
    case(Bench::guide().unit(unit, "failed")).says(unit, Standing::Held, &[]);
    let by_socket = Bench::guide().unit(unit, "active").unit("systemd-journald.socket", "active");
    case(by_socket).says(unit, Standing::Overridden, &["systemd-journald.socket", "starts"]);
    let enabled = Bench::guide().unit_reading(unit, Reading::Known("active".into()), "enabled");
    case(enabled).says(unit, Standing::Lost, &["active, enabled"]);
    let at_boot = Bench::guide().unit_reading(unit, Reading::Known("inactive".into()), "enabled");
    case(at_boot).says(unit, Standing::Lost, &["which the next boot follows"]);
    let unknown = Bench::guide().unit_reading(unit, Reading::Absent, "disabled");
    case(unknown).says(unit, Standing::Unreadable, &["only systemd can report it"]);
    case(Bench::guide().unit("x.service", "active")).says(unit, Standing::Gone, &[]);
}

#[test]
fn the_state_of_lowlat_service_is_said_where_a_value_is_lost() {
    let lost = |bench: Bench| {
        let case = Case::new(bench.sysctl("vm.swappiness", "60")).sysctl("vm.swappiness", "60", "0");
        case.says("vm.swappiness", Standing::Lost, &[]).note
    };
    assert!(lost(Bench::trading()).contains("not installed"));
    let unit = |active: &str, enablement: &str| {
        Bench::trading().unit_reading("lowlat.service", Reading::Known(active.into()), enablement)
    };
    assert!(lost(unit("failed", "enabled")).contains("is failed"));
    assert!(lost(unit("active", "enabled")).contains("ran, and something reset it later"));
    assert!(lost(unit("inactive", "masked")).contains("is masked"));
}

#[test]
fn a_service_that_does_not_start_at_the_next_boot_is_told_while_all_is_held() {
    let case = |enablement: &str| {
        let bench =
            Bench::trading().unit_reading("lowlat.service", Reading::Known("active".into()), enablement);
        Case::new(bench.sysctl("vm.swappiness", "10")).sysctl("vm.swappiness", "60", "10")
    };
    let what = "lowlat.service at boot";
    case("enabled").says(what, Standing::Held, &[]);
    case("disabled").says(what, Standing::Lost, &["next boot will not apply"]);
    case("masked").says(what, Standing::Lost, &[]);
    case("disabled").says("vm.swappiness", Standing::Held, &[]);
}

/// Configuration that gives other CPUs to process 1 is named: the command line first, then systemd's files.
#[test]
fn what_gives_cpus_to_user_processes_is_named() {
    let case = |line: &str, of_file: &str| {
        Case::new(Bench::guide().line(line)).change(Target::UserProcesses, "0-15", "0,8").with(|case| {
            case.bench.host.tasks.first_process_cpus = Reading::Known(list("5-6"));
            case.bench.host.services.process_cpus = vec![lowlat_host::snapshot::ProcessCpus {
                unit: String::new(),
                key: "CPUAffinity".into(),
                cpus: Reading::Known(list(of_file)),
                path: "/etc/systemd/system.conf.d/tuned.conf".into(),
                line: 2,
            }];
        })
    };
    let what = "CPUs of user processes";
    case("quiet systemd.cpu_affinity=5,6", "0").says(
        what,
        Standing::Overridden,
        &["/proc/cmdline:0 has systemd.cpu_affinity=5,6"],
    );
    case("quiet", "5-6").says(
        what,
        Standing::Overridden,
        &["/etc/systemd/system.conf.d/tuned.conf:2 has CPUAffinity=5-6"],
    );
    case("quiet", "3").says(what, Standing::Overridden, &["unknown"]);
}
