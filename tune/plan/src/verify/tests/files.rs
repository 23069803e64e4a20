//! Files: lowlat's own and lines of others, values of /sys, huge pages, idle states, interfaces.

use super::*;
use lowlat_host::snapshot::Assignment;
use lowlat_host::snapshot::{Channels, Coalescing, HugePages, IdleState, Nic, QueueMask, Rings};
use lowlat_settings::change::nic;

const OWN: &str = "/etc/sysctl.d/99-zz-lowlat.conf";

fn owned(text: &str) -> Case {
    Case::new(Bench::trading())
        .change(
            Target::OwnedFile { path: OWN.into() },
            "",
            "# lowlat\nvm.swappiness = 0\nvm.stat_interval = 10\n",
        )
        .with(|case| {
            case.evidence.files.insert(OWN.into(), Reading::Known(text.into()));
        })
}

#[test]
fn an_owned_file_is_compared_by_what_it_says() {
    owned("# other words\n\nvm.swappiness=0\n  vm.stat_interval = 0x0a").says(
        OWN,
        Standing::Held,
        &["2 lines"],
    );
    owned("vm.swappiness = 1\nvm.stat_interval = 10").says(
        OWN,
        Standing::Overridden,
        &["99-zz-lowlat.conf:1", "lowlat did not write"],
    );
    owned("vm.swappiness = 0").says(OWN, Standing::Overridden, &["lines are missing"]);
    owned("vm.swappiness = 0\nvm.stat_interval = 10\nkernel.sysrq = 1").says(
        OWN,
        Standing::Overridden,
        &["99-zz-lowlat.conf:3"],
    );
    let gone = owned("").with(|case| case.evidence.files.clear());
    gone.says(OWN, Standing::Lost, &["is missing"]);
    let masked = owned("").with(|case| case.evidence.masked = vec![OWN.into()]);
    masked.says(OWN, Standing::Overridden, &["/dev/null", "masked"]);
}

#[test]
fn a_key_over_which_a_later_file_wins_has_a_row_of_its_own() {
    let case = owned("vm.swappiness = 0\nvm.stat_interval = 10").with(|case| {
        let line = |path: &str, value: &str| Assignment {
            path: path.into(),
            line: 4,
            key: "vm.swappiness".into(),
            value: value.into(),
        };
        case.bench.host.kernel.sysctl_files =
            vec![line(OWN, "0"), line("/usr/lib/sysctl.d/zzz-db.conf", "60")];
    });
    case.says(OWN, Standing::Held, &[]);
    case.says(
        "vm.swappiness at boot",
        Standing::Overridden,
        &["/usr/lib/sysctl.d/zzz-db.conf:4", "wins at the next boot"],
    );
    assert!(case.verify().rows.iter().all(|row| row.what != "vm.stat_interval at boot"));
}

#[test]
fn a_drop_in_or_environment_file_that_is_read_later_wins() {
    let path = "/etc/systemd/system/irqbalance.service.d/60-lowlat.conf";
    let text = "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=1-7,9-15\n";
    let case =
        Case::new(Bench::trading()).change(Target::OwnedFile { path: path.into() }, "", text).with(|case| {
            let line = |path: &str, value: &str| Assignment {
                path: path.into(),
                line: 2,
                key: "IRQBALANCE_BANNED_CPULIST".into(),
                value: value.into(),
            };
            case.evidence.files.insert(path.into(), Reading::Known(text.into()));
            case.evidence.environment = vec![line(path, "1-7,9-15"), line("/etc/default/irqbalance", "9-15")];
        });
    case.says("IRQBALANCE_BANNED_CPULIST at boot", Standing::Overridden, &["/etc/default/irqbalance:2"]);
    let same = case.with(|case| case.evidence.environment[1].value = "1,2,3,4,5,6,7,9-15".into());
    assert!(same.verify().rows.iter().all(|row| row.standing == Standing::Held), "{:?}", same.verify().rows);
}

#[test]
fn irqbalance_that_runs_since_before_its_ban_list_is_told() {
    let path = "/etc/systemd/system/irqbalance.service.d/60-lowlat.conf";
    let text = "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=1-7,9-15\n";
    let case = |value: Reading<String>| {
        Case::new(Bench::trading()).change(Target::OwnedFile { path: path.into() }, "", text).with(|case| {
            case.evidence.files.insert(path.into(), Reading::Known(text.into()));
            case.evidence.running = vec![super::super::RunningVariable {
                unit: "irqbalance.service".into(),
                key: "IRQBALANCE_BANNED_CPULIST".into(),
                value,
            }];
        })
    };
    let what = "IRQBALANCE_BANNED_CPULIST of irqbalance.service";
    let old = case(Reading::Absent);
    old.says(what, Standing::Ineffective, &["systemctl restart irqbalance.service"]);
    old.says(path, Standing::Held, &[]);
    case(Reading::Known("9-15".into())).says(what, Standing::Ineffective, &["9-15"]);
    for fine in [Reading::Known("1,2-7,9-15".into()), Reading::Denied] {
        assert!(case(fine).verify().rows.iter().all(|row| row.standing == Standing::Held));
    }
}

#[test]
fn a_line_of_a_file_that_is_not_lowlat_s() {
    let path = "/etc/tuned/tuned-main.conf";
    let target = || Target::FileKey { path: path.into(), key: "rollback".into() };
    let case = |text: &str| {
        Case::new(Bench::trading()).change(target(), "auto", "not_on_exit").with(|case| {
            case.evidence.files.insert(path.into(), Reading::Known(text.into()));
        })
    };
    let what = "/etc/tuned/tuned-main.conf rollback";
    case("rollback = auto\nrollback = not_on_exit\n").says(what, Standing::Held, &[]);
    case("#rollback = not_on_exit\nrollback = auto").says(what, Standing::Lost, &["auto"]);
    case("daemon = 1").says(what, Standing::Lost, &["no longer has a line rollback="]);
}

#[test]
fn files_that_write_to_sysfs_and_running_daemons_are_named() {
    let path = "/sys/kernel/mm/ksm/run";
    let case = Case::new(Bench::trading().knob(path, "1")).file(path, "1", "0");
    case.says(path, Standing::Lost, &[]);
    let by_file = case.with(|case| {
        case.evidence.sysfs_files = vec![Assignment {
            path: "/usr/lib/tmpfiles.d/ksm.conf".into(),
            line: 1,
            key: path.into(),
            value: "1".into(),
        }];
    });
    by_file.says(path, Standing::Overridden, &["/usr/lib/tmpfiles.d/ksm.conf:1"]);
    let daemon =
        Case { bench: by_file.bench.unit("ksmtuned.service", "active"), ..Case::new(Bench::trading()) };
    daemon.file(path, "0", "0").with(|case| case.plan.changes[0].after = "2".into()).says(
        path,
        Standing::Overridden,
        &["ksmtuned.service"],
    );
}

#[test]
fn tuned_s_profile_is_the_planned_one_or_somebody_s() {
    let case = |profile: &str, mode: Reading<String>| {
        Case::new(Bench::trading()).change(Target::TunedProfile, "virtual-guest auto", "lowlat manual").with(
            |case| {
                case.bench.host.services.tuned.profile = Reading::Known(profile.into());
                case.bench.host.services.tuned.mode = mode;
            },
        )
    };
    let mode = |mode: &str| Reading::Known(mode.into());
    let what = "TuneD's profile";
    case("lowlat", mode("manual")).says(what, Standing::Held, &[]);
    case("lowlat", Reading::Absent).says(what, Standing::Held, &[]);
    case("virtual-guest", mode("auto")).says(what, Standing::Overridden, &["automatically"]);
    case("balanced", mode("manual")).says(
        what,
        Standing::Overridden,
        &["/etc/tuned/active_profile", "tuned-adm"],
    );
    case("virtual-guest", Reading::Absent).says(what, Standing::Overridden, &["journalctl -u tuned"]);
    let by =
        case("throughput-performance", mode("manual")).says(what, Standing::Overridden, &["tuned-adm"]).by;
    assert_eq!(by.unwrap().name, "/etc/tuned/active_profile");
    case("", mode("manual")).says(what, Standing::Overridden, &["no profile"]);
}

#[test]
fn tuned_s_plugins_are_traced_to_the_files_that_they_write() {
    let governor = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
    let debug = "/sys/kernel/debug/sched/min_granularity_ns";
    let options = [
        (governor, "cpu", "governor", "performance|schedutil", "schedutil"),
        (debug, "scheduler", "sched_min_granularity_ns", "10000000", "10000000"),
        ("/sys/block/sda/queue/scheduler", "disk", "elevator", "mq-deadline", "mq-deadline"),
        ("/sys/kernel/mm/ksm/run", "sysfs", "/sys/kernel/mm/*/run", ">1", "1"),
        ("/sys/kernel/mm/ksm/run", "sysfs", "/sys/kernel/mm/ksm/run", "${f:exec:x}", "1"),
    ];
    for (path, plugin, key, value, shown) in options {
        let case = Case::new(Bench::trading().knob(path, shown)).file(path, "before", "planned");
        case.says(path, Standing::Overridden, &["unknown"]);
        let case = case.with(|case| case.evidence.tuned = vec![tuned(plugin, key, value)]);
        case.says(path, Standing::Overridden, &["/usr/lib/tuned/balanced/tuned.conf:7", key]);
    }
}

#[test]
fn pages_that_memory_in_pieces_does_not_give_are_told() {
    let target = || Target::HugePages { node: Some(1), size_bytes: 2 << 20 };
    let case = |total: Reading<u64>| {
        Case::new(Bench::trading()).change(target(), "0", "3000").with(|case| {
            let pool = |node| HugePages {
                node: Some(node),
                size_bytes: 2 << 20,
                total: total.clone(),
                free: Reading::Known(0),
            };
            case.bench.host.memory.huge_pages = vec![pool(0), pool(1)];
        })
    };
    let what = "huge pages of 2048 KiB, node 1";
    case(Reading::Known(3000)).says(what, Standing::Held, &[]);
    case(Reading::Known(2871)).says(what, Standing::Ineffective, &["2871", "contiguous"]);
    case(Reading::Known(0)).says(what, Standing::Lost, &[]);
    case(Reading::Known(4000)).says(what, Standing::Overridden, &["unknown"]);
    case(Reading::Denied).says(what, Standing::Unreadable, &["as root"]);
    let by_file = case(Reading::Known(1000));
    let bench = by_file.bench.sysctl_file("/etc/sysctl.d/70-db.conf", "vm.nr_hugepages", "1000");
    Case { bench, ..by_file_plan(by_file.plan) }.says(
        what,
        Standing::Overridden,
        &["/etc/sysctl.d/70-db.conf:3"],
    );
}

fn by_file_plan(plan: Plan) -> Case {
    Case { plan, ..Case::new(Bench::trading()) }
}

#[test]
fn idle_states_are_told_by_the_cpus_that_hold_and_those_that_do_not() {
    let target = Target::IdleState { name: "C6".into(), cpus: list("1-7,9-15") };
    let case = Case::new(Bench::trading()).change(target, "enabled", "disabled");
    case.says("idle state C6 on CPUs 1-7,9-15", Standing::Held, &["no CPU has this state"]);
    let some = case.with(|case| {
        case.bench.host.cpu.idle_states = vec![IdleState {
            name: "C6".into(),
            cpus: CpuSet::first(16),
            cpus_enabled: list("0,3,8"),
            ..IdleState::default()
        }];
    });
    some.says("idle state C6 on CPUs 1-2,4-7,9-15", Standing::Held, &[]);
    some.says("idle state C6 on CPU 3", Standing::Lost, &["enabled"]);
}

#[test]
fn interfaces_answer_for_queues_waits_features_and_masks() {
    let nic = || Nic {
        name: "eth0".into(),
        channels: Reading::Known(Channels { combined: 16, ..Channels::default() }),
        rings: Reading::Known(Rings { rx: 512, rx_max: 4096, ..Rings::default() }),
        coalescing: Reading::Known(Coalescing {
            rx_usecs: Some(0),
            adaptive_rx: Some(true),
            ..Coalescing::default()
        }),
        rps: vec![QueueMask { queue: "rx-0".into(), cpus: Reading::Known(list("0,8")) }],
        ..Nic::default()
    };
    let case = Case::new(Bench::trading().with(|bench| bench.host.nics = vec![nic()]))
        .change(nic::CHANNELS.of("eth0", "combined"), "32", "2")
        .change(nic::COALESCING.of("eth0", "rx-usecs"), "50", "0")
        .change(nic::COALESCING.of("eth0", "adaptive-rx"), "on", "off")
        .change(nic::RINGS.of("eth0", "rx"), "256", "4096")
        .change(nic::RPS.of("eth0", "rx-0"), "0-15", "0,8")
        .change(nic::RPS.of("eth0", "rx-9"), "0-15", "0,8")
        .change(nic::FEATURE.of("eth0", "rx-lro"), "on", "off")
        .change(nic::FEATURE.of("ens1", "rx-lro"), "on", "off");
    case.says("eth0 combined queues", Standing::Overridden, &["16", "nmcli"]);
    case.says("eth0 rx ring", Standing::Overridden, &["512", "nmcli"]);
    case.says("eth0 rx-usecs", Standing::Held, &[]);
    case.says("eth0 adaptive-rx", Standing::Lost, &["on"]);
    case.says("eth0 rx-0 rps_cpus", Standing::Held, &[]);
    case.says("eth0 rx-9 rps_cpus", Standing::Gone, &[]);
    case.says("eth0 rx-lro", Standing::Unreadable, &["absent"]);
    case.says("ens1 rx-lro", Standing::Unreadable, &["interface ens1 does not exist", "renamed"]);
    let by_tuned = case.with(|case| {
        case.evidence.tuned =
            vec![tuned("net", "coalesce", "adaptive-tx off adaptive-rx on"), tuned("net", "ring", "rx 512")];
    });
    by_tuned.says("eth0 rx ring", Standing::Overridden, &["tuned.conf:7"]);
    by_tuned.says("eth0 adaptive-rx", Standing::Overridden, &["tuned.conf:7"]);
    let of_other = by_tuned.with(|case| case.evidence.tuned[0].devices = "enp*".into());
    of_other.says("eth0 adaptive-rx", Standing::Lost, &[]);
}
