//! The traps of guide 57037 that a plan must handle, each by name.

mod guide;

use super::Plan;
use lowlat_catalogue::{
    CATALOGUE,
    testing::{Bench, list},
};
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, Profile, Reading, snapshot::SchedPolicy, topology::Group,
};
use lowlat_settings::{
    Layer, Risk,
    change::{Change, Target, WhyLeftOut},
};

fn plan(bench: &Bench) -> Plan {
    Plan::of(&bench.context(), "0.0.0")
}

fn accepting(mut bench: Bench, ids: &[&str]) -> Bench {
    bench.role.accepted_risks.extend(ids.iter().map(|id| (*id).to_owned()));
    bench
}

fn of<'a>(plan: &'a Plan, id: &'a str) -> impl Iterator<Item = &'a Change> {
    plan.changes.iter().filter(move |change| change.settings.iter().any(|setting| setting == id))
}

/// The kind of reason and the text with which a setting is left out.
#[track_caller]
fn left<'a>(plan: &'a Plan, id: &str) -> (WhyLeftOut, &'a str) {
    let found = plan.left_out.iter().find(|left| left.setting == id);
    found.map_or_else(|| panic!("{id} is not left out"), |left| (left.why, left.text.as_str()))
}

fn has_warning(plan: &Plan, piece: &str) -> bool {
    plan.warnings.iter().any(|warning| warning.contains(piece))
}

#[test]
fn tuned_is_never_stopped_and_told_not_to_roll_back() {
    let bench = Bench::guide().unit("tuned.service", "active");
    let bench =
        bench.with(|bench| bench.host.services.tuned.profile = Reading::Known("HPELowLatency".into()));
    let plan = plan(&accepting(bench, &["service.tuned"]));
    assert_eq!(left(&plan, "service.tuned").0, WhyLeftOut::Harmful);
    assert!(of(&plan, "service.tuned").next().is_none());
    let rollback = of(&plan, "service.tuned.rollback").next().expect("planned without asking");
    assert_eq!(rollback.after, "not_on_exit");
}

#[test]
fn a_tuned_that_knows_no_rollback_is_not_told_of_it() {
    let with = |minor: u32| {
        let path = "/usr/lib/python3/dist-packages/tuned/version.py";
        let text =
            format!("TUNED_VERSION_MAJOR = 2\nTUNED_VERSION_MINOR = {minor}\nTUNED_VERSION_PATCH = 0\n");
        let bench = Bench::trading().unit("tuned.service", "active").knob(path, &text);
        plan(&bench.with(|bench| bench.host.services.tuned.profile = Reading::Known("balanced".into())))
    };
    let old = with(20);
    assert!(of(&old, "service.tuned.rollback").next().is_none());
    let (why, text) = left(&old, "service.tuned.rollback");
    assert_eq!(why, WhyLeftOut::NotApplicable);
    assert!(text.contains("TuneD 2.20 does not know it"), "{text}");
    assert!(of(&with(21), "service.tuned.rollback").next().is_some());
}

#[test]
fn tuned_gets_a_profile_of_lowlat_s_own_on_top_of_the_present_one() {
    let bench = |units: &str| {
        Bench::trading().unit("tuned.service", units).sysctl("vm.swappiness", "30").with(|bench| {
            bench.host.services.tuned.profile = Reading::Known("virtual-guest".into());
            bench.host.services.tuned.mode = Reading::Known("auto".into());
        })
    };
    let first = plan(&bench("active"));
    let changes: Vec<&Change> = of(&first, "service.tuned.profile").collect();
    let switch = changes.iter().find(|change| change.target == Target::TunedProfile).expect("planned");
    assert_eq!((switch.before.text(), switch.after.as_str()), ("virtual-guest auto", "lowlat manual"));
    let path = Target::OwnedFile { path: "/etc/tuned/lowlat/tuned.conf".into() };
    let file = changes.iter().find(|change| change.target == path).expect("planned");
    assert!(file.after.contains("include=virtual-guest\n") && file.after.contains("vm.swappiness=10\n"));
    // It looks in another folder since 2.23.
    let newer = bench("active").knob("/usr/lib/tuned/profiles/balanced/tuned.conf", "[main]");
    let path = Target::OwnedFile { path: "/etc/tuned/profiles/lowlat/tuned.conf".into() };
    assert!(of(&plan(&newer), "service.tuned.profile").any(|change| change.target == path));
    assert_eq!(left(&plan(&bench("inactive")), "service.tuned.profile").0, WhyLeftOut::StateOfTheMoment);
}

#[test]
fn the_sysctl_file_has_a_name_that_sorts_last() {
    let bench = Bench::guide().sysctl("kernel.numa_balancing", "1");
    let path = |plan: &Plan| {
        plan.changes.iter().find_map(|change| match &change.target {
            Target::OwnedFile { path } if path.contains("sysctl") => Some(path.clone()),
            _ => None,
        })
    };
    assert_eq!(path(&plan(&bench)).as_deref(), Some("/etc/sysctl.d/99-zz-lowlat.conf"));
    let first = plan(&bench);
    let (why, text) = left(&first, "sysctl.file.100-lowlatency");
    assert_eq!(why, WhyLeftOut::ByAnother);
    assert!(text.contains("override 100-lowlatency"), "{text}");
    // Another file behind it that sets one of the keys: lowlat goes behind that.
    let bench = bench.sysctl_file("/etc/sysctl.d/99-zzz.conf", "kernel.numa_balancing", "1");
    assert_eq!(path(&plan(&bench)).as_deref(), Some("/etc/sysctl.d/zz-lowlat.conf"));
    let bench = bench.sysctl_file("/etc/sysctl.d/zzzzz.conf", "kernel.numa_balancing", "1");
    assert!(has_warning(&plan(&bench), "/etc/sysctl.d/zzzzz.conf sets kernel.numa_balancing"));
}

#[test]
fn sysctls_that_vanished_go_to_debugfs_by_the_kernel_s_version() {
    let path = "/sys/kernel/debug/sched/migration_cost_ns";
    let bench = Bench::guide().kernel(6, 1).knob(path, "500000");
    let plan = plan(&bench);
    let (why, text) = left(&plan, "sysctl.kernel.sched_migration_cost_ns");
    assert_eq!(why, WhyLeftOut::NotApplicable);
    assert!(text.contains("5.13 moved it to") && text.contains("this is 6.1"), "{text}");
    let moved = of(&plan, "debugfs.sched.migration_cost_ns").next().unwrap();
    assert_eq!(moved.target, Target::File { path: path.into() });
    assert_eq!(moved.after, "50000000");
}

#[test]
fn cpus_beyond_64_are_planned_as_sets() {
    let bench = Bench::trading().line("ro").with(|bench| {
        bench.host.topology.online = CpuSet::first(256);
        bench.host.topology.possible = Reading::Known(CpuSet::first(256));
        bench.host.interrupts.default_affinity = Reading::Known(CpuSet::first(256));
        bench.allocation.housekeeping = list("0,128");
        bench.allocation.isolated = list("1-127,129-255");
    });
    let plan = plan(&bench);
    assert_eq!(of(&plan, "irq.default_affinity").next().unwrap().after, "0,128");
    let line = &of(&plan, "boot.nohz_full").next().unwrap().after;
    assert!(line.contains("nohz_full=1-127,129-255"), "ranges, not every CPU: {line}");
}

#[test]
fn managed_interrupts_are_left_out_with_the_remedy() {
    let bench = Bench::trading()
        .irq(40, "nvme0q3", "3", Reading::Known(true))
        .irq(41, "nvme0q4", "4", Reading::Absent)
        .irq(42, "nvme0q0", "5", Reading::Absent)
        .irq(43, "eth0", "6", Reading::Known(false));
    let plan = plan(&bench);
    let moved: Vec<u32> = of(&plan, "irq.affinity")
        .filter_map(|change| match change.target {
            Target::IrqAffinity { irq, .. } => Some(irq),
            _ => None,
        })
        .collect();
    assert_eq!(moved, [42, 43]);
    let (why, text) = left(&plan, "irq.affinity");
    assert_eq!(why, WhyLeftOut::ByAnother);
    assert!(text.contains("40 nvme0q3, 41 nvme0q4") && text.contains("isolcpus=managed_irq"), "{text}");
}

#[test]
fn threads_bound_to_their_cpu_are_not_moved() {
    let other = (SchedPolicy::Other, 0);
    let bench = Bench::trading()
        .thread("rcuc/3", "3", other, true)
        .thread("rcuop/3", "0-15", other, false)
        .thread("rcutrading", "0-15", other, true)
        .thread("kswapd0", "0-7", other, false)
        .with(|bench| {
            let node = lowlat_host::topology::Node { id: 0, cpus: list("0-7"), ..Default::default() };
            bench.host.topology.nodes = vec![node];
        });
    let plan = plan(&bench);
    let moved: Vec<(&str, &str)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.target {
            Target::KernelThreadAffinity { comm, .. } => Some((comm.as_str(), change.after.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(moved, [("rcuop/3", "0,8"), ("kswapd0", "0")], "kswapd stays on its node");
}

#[test]
fn risky_rows_are_left_out_unless_accepted_one_by_one() {
    let risky_units = [
        ("service.systemd-journald", "systemd-journald.service"),
        ("service.dbus", "dbus.service"),
        ("service.chronyd", "chronyd.service"),
        ("service.kdump", "kdump.service"),
        ("service.mdmonitor", "mdmonitor.service"),
    ];
    let risky_words = ["boot.selinux", "boot.audit", "boot.mce"];
    let bench = || {
        let bench = Bench::guide().line("ro");
        risky_units.iter().fold(bench, |bench, (_, unit)| bench.unit(unit, "active"))
    };
    let all: Vec<&str> = risky_units.iter().map(|(id, _)| *id).chain(risky_words).collect();
    let untouched = plan(&bench());
    for id in &all {
        assert!(
            matches!(left(&untouched, id).0, WhyLeftOut::NotAccepted(risk) if risk != Risk::None),
            "{id}"
        );
        assert!(of(&untouched, id).next().is_none(), "{id}");
    }
    for accepted in &all {
        let plan = plan(&accepting(bench(), &[accepted]));
        assert!(of(&plan, accepted).next().is_some(), "{accepted}");
        for id in all.iter().filter(|id| *id != accepted) {
            assert!(of(&plan, id).next().is_none(), "{accepted} does not take {id} along");
        }
    }
}

#[test]
fn pcie_aspm_off_and_idle_poll_on_smt_are_warned_of() {
    let smt = |bench: &mut Bench| {
        let core = |id: u32| Group { id: i64::from(id), cpus: [id, id + 8].into_iter().collect() };
        bench.host.topology.cores = (0..8).map(core).collect();
    };
    let bench = accepting(Bench::guide().line("ro"), &["boot.pcie_aspm"]);
    let without_smt = plan(&bench);
    assert!(has_warning(&without_smt, "pcie_aspm=off") && !has_warning(&without_smt, "idle=poll"));
    assert!(has_warning(&plan(&bench.with(smt)), "idle=poll on a host with SMT"));
    assert!(!has_warning(&plan(&Bench::guide().line("ro")), "pcie_aspm=off"), "not accepted, not warned of");
}

#[test]
fn the_guide_s_pages_are_spread_over_nodes_where_they_fit() {
    let host = |total_bytes: u64| {
        let bench = Bench::guide().line("ro").with(|bench| {
            let pool = |node| lowlat_host::snapshot::HugePages {
                node: Some(node),
                size_bytes: 2 << 20,
                total: Reading::Known(0),
                free: Reading::Known(0),
            };
            bench.host.memory.huge_pages = vec![pool(0), pool(1)];
            bench.host.memory.total_bytes = Reading::Known(total_bytes);
        });
        plan(&accepting(bench, &["memory.huge_pages"]))
    };
    let large = host(512 << 30);
    let pages: Vec<&str> = of(&large, "memory.huge_pages").map(|change| change.after.as_str()).collect();
    assert_eq!(pages, ["3000", "3000"]);
    assert!(of(&large, "boot.hugepages").next().unwrap().after.contains("hugepagesz=2M hugepages=6000"));
    let small = host(2 << 30);
    for id in ["memory.huge_pages", "boot.hugepages"] {
        assert!(left(&small, id).1.contains("more than half of this host's 2048 MiB"), "{id}");
        assert!(of(&small, id).next().is_none(), "{id}");
    }
}

#[test]
fn redundant_watchdog_rows_are_told() {
    let bench = Bench::guide().line("ro").sysctl("kernel.watchdog", "1");
    assert!(!has_warning(&plan(&bench), "detection of hangs"));
    let bench = accepting(bench, &["boot.nmi_watchdog", "boot.nosoftlockup", "sysctl.kernel.watchdog"]);
    assert!(has_warning(&plan(&bench), "3 of these changes all disable hang detection"));
}

#[test]
fn housekeeping_is_not_computed_from_numbers() {
    // Interleaved: the even CPUs are one package, the odd ones the other. Arithmetic on counts would give 0 and 8.
    let mut host = HostSnapshot::default();
    let half = |first: u32| (first..16).step_by(2).collect::<CpuSet>();
    host.topology.online = CpuSet::first(16);
    host.topology.packages = vec![Group { id: 0, cpus: half(0) }, Group { id: 1, cpus: half(1) }];
    host.topology.cores = (0..16).map(|cpu| Group { id: i64::from(cpu), cpus: CpuSet::of(cpu) }).collect();
    host.kernel.command_line = Reading::Known(lowlat_host::cmdline::CommandLine::parse("ro"));
    let mut bench = Bench::trading();
    bench.allocation = Allocation::choose(&host, &bench.role);
    bench.host = host;
    let plan = plan(&bench);
    assert_eq!(plan.housekeeping.to_list(), "0-1");
    let line = &of(&plan, "boot.isolcpus").next().unwrap().after;
    assert!(line.contains("isolcpus=managed_irq,domain,2-15"), "{line}");
}

/// The kernel leaves the boot CPU out of nohz_full= and adds it to irqaffinity=, so the plan does too.
#[test]
fn a_plan_that_isolates_the_boot_cpu_has_what_the_kernel_will_do() {
    let bench = |housekeeping: &str, isolated: &str| {
        Bench::trading().line("ro").with(|bench| {
            bench.allocation.housekeeping = list(housekeeping);
            bench.allocation.isolated = list(isolated);
        })
    };
    let isolating = plan(&bench("1,9", "0,2-8,10-15"));
    let line = &of(&isolating, "boot.isolcpus").next().unwrap().after;
    for word in ["nohz_full=2-8,10-15", "irqaffinity=0-1,9", "isolcpus=managed_irq,domain,0,2-8,10-15"] {
        assert!(line.split(' ').any(|other| other == word), "{word}: {line}");
    }
    // Kernels before 5.18 reject the second parameter if its list differs from the first's.
    let older = plan(&bench("1,9", "0,2-8,10-15").kernel(5, 14));
    let older = &of(&older, "boot.isolcpus").next().unwrap().after;
    assert!(older.contains("nohz_full=0,2-8,10-15"), "{older}");
    assert!(has_warning(&isolating, "it is the boot CPU: the kernel keeps its tick for timekeeping"));
    assert!(!has_warning(&plan(&bench("0,8", "1-7,9-15")), "boot CPU"));
    // The CPUs that the kernel derives from this line are judged good.
    let after = |line: &str| {
        bench("1,9", "0,2-8,10-15").line(line).with(|bench| {
            bench.host.topology.nohz_full = Reading::Known(list("2-8,10-15"));
            bench.host.topology.isolated = Reading::Known(list("0,2-8,10-15"));
        })
    };
    for id in ["boot.nohz_full", "boot.irqaffinity", "boot.isolcpus", "boot.rcu_nocbs"] {
        after(line).says(id, lowlat_settings::Verdict::Good, &[]);
    }
    let with_boot_cpu =
        line.replace("nohz_full=", "nohz_full=0,").replace("irqaffinity=0-1,9", "irqaffinity=1,9");
    for id in ["boot.nohz_full", "boot.irqaffinity"] {
        after(&with_boot_cpu).says(id, lowlat_settings::Verdict::Good, &[]);
    }
}

#[test]
fn a_full_grubenv_and_tuned_s_lost_word_are_warned_of() {
    let bench = Bench::trading()
        .line("ro")
        .knob("/boot/grub2/grubenv", &format!("kernelopts={}", "x".repeat(1000)))
        .with(|bench| bench.host.services.tuned.profile = Reading::Known("balanced".into()));
    let plan = plan(&bench);
    assert!(has_warning(&plan, "/boot/grub2/grubenv has 1024 bytes"));
    assert!(has_warning(&plan, "lose the first word"));
}

#[test]
fn a_kernel_without_the_option_gets_no_parameter() {
    let plan = plan(&Bench::trading().line("ro").config(&["RCU_NOCB_CPU"]));
    assert_eq!(left(&plan, "boot.nohz_full").0, WhyLeftOut::Kernel);
    assert!(of(&plan, "boot.rcu_nocbs").next().is_some());
}

/// Rows of layers that have no way of their own must say how they are changed, or that they are not.
#[test]
fn rows_without_a_value_do_not_fall_to_a_layer_that_needs_one() {
    for profile in Profile::ALL {
        let bench = Bench::of(profile).line("ro");
        let context = bench.context();
        for setting in CATALOGUE.settings().filter(|setting| setting.layer == Layer::Boot) {
            let proposal = setting.proposal(&context);
            for token in &proposal.tokens {
                let value = token.value.as_deref().unwrap_or_default();
                assert!(!value.contains(' ') && !token.name.contains(' '), "{}: {token:?}", setting.id);
            }
        }
    }
}

#[test]
fn a_plan_is_the_same_each_time_and_survives_json() {
    let bench = accepting(Bench::guide().line("ro"), &["boot.mce"]);
    let first = plan(&bench);
    assert_eq!(first, plan(&bench));
    let json = serde_json::to_string(&first).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), first);
    assert_eq!((first.document.as_str(), first.schema_version), ("lowlat-plan", 1));
}

/// A host may say anything; a plan of it is made all the same, and is a document.
#[test]
fn nonsense_gives_a_plan_without_a_panic() {
    use lowlat_catalogue::testing::junk;
    for profile in Profile::ALL {
        let bench = CATALOGUE.knob_globs().into_iter().fold(
            Bench::of(profile)
                .line("nohz_full=\" hugepages=: isolcpus=,,, =x \"=\" --")
                .irq(u32::MAX, "nvme99999999999q99999999999", "0-15", Reading::Denied)
                .thread("kswapd99999999999", "0-15", (SchedPolicy::Unknown, u32::MAX), false),
            |bench, glob| bench.reading(&glob.replace('*', "7"), junk(glob)),
        );
        let all: Vec<&str> = CATALOGUE.settings().map(|setting| setting.id).collect();
        let plan = plan(&accepting(bench, &all));
        assert!(serde_json::to_string(&plan).is_ok());
    }
}

/// Ids of plans digest this text.
#[test]
fn targets_are_written_as_ever() {
    let written = [
        r#"{"kind":"nic_channels","nic":"eth0","field":"combined"}"#,
        r#"{"kind":"nic_coalescing","nic":"eth0","field":"rx-usecs"}"#,
        r#"{"kind":"nic_rings","nic":"eth0","field":"rx"}"#,
        r#"{"kind":"nic_feature","nic":"eth0","field":"rx-lro"}"#,
        r#"{"kind":"nic_rps","nic":"eth0","field":"rx-0"}"#,
        r#"{"kind":"nic_xps","nic":"eth0","field":"tx-0"}"#,
        r#"{"kind":"sysctl","key":"vm.swappiness"}"#,
        r#"{"kind":"default_irq_affinity"}"#,
        r#"{"kind":"workqueue_cpus","name":null}"#,
    ];
    for text in written {
        let target: Target = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&target).unwrap(), text);
    }
    for bad in [r#"{"kind":"nic_later","nic":"eth0","field":"x"}"#, r#"{"kind":"nic_rps","field":"rx-0"}"#] {
        let error = serde_json::from_str::<Target>(bad).unwrap_err().to_string();
        assert!(error.starts_with("found a target of an unknown kind"), "{error}");
    }
}

#[test]
fn where_nothing_can_be_changed_every_change_is_left_out_with_the_reason() {
    let mut plan = plan(&Bench::guide());
    let changed: Vec<String> = plan.changes.iter().flat_map(|change| change.settings.clone()).collect();
    plan.leave_all_out("this is a container");
    assert!(plan.changes.is_empty() && !changed.is_empty());
    for setting in changed {
        let reasons = plan.left_out.iter().filter(|left| left.setting == setting);
        assert!(
            reasons.clone().any(|left| left.text == "this is a container" && left.why.is_of_fault()),
            "{setting}"
        );
    }
}
