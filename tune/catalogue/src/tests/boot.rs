//! The command line: tokens, lists, and their effect in the kernel.

use super::guide_rows::TOKENS;
use crate::CATALOGUE;
use crate::{testing::Bench, testing::GUIDE_LINE, testing::list};
use lowlat_host::{
    CpuSet, Profile, Reading,
    kernel_version::KernelVersion,
    snapshot::{CpusetPartition, HugePages, IdleState, SchedPolicy},
};
use lowlat_settings::{Layer, Verdict};

#[test]
fn the_guides_own_line_has_no_wrong_row_in_the_guides_profile() {
    let bench = Bench::guide();
    let boot: Vec<_> = CATALOGUE.settings().filter(|setting| setting.layer == Layer::Boot).collect();
    for setting in &boot {
        let finding = bench.judge(setting.id);
        assert!(
            !finding.verdict.is_fault() || setting.id == "boot.processor.max_cstate",
            "{}: {:?} {} {}",
            setting.id,
            finding.verdict,
            finding.observed,
            finding.because
        );
    }
    bench.says("boot.processor.max_cstate", Verdict::Ineffective, &["treats 0 as 1"]);
    let good = boot.iter().filter(|setting| bench.verdict(setting.id) == Verdict::Good).count();
    assert_eq!(good, 21, "of 22 tokens all but processor.max_cstate");
}

#[test]
fn a_missing_token_of_the_guide_is_reported() {
    // TuneD's parameter is judged by its effect.
    for token in TOKENS.into_iter().filter(|token| *token != "tuned.non_isolcpus") {
        let is_it = |word: &&str| word.split('=').next() == Some(token);
        let line: Vec<&str> = GUIDE_LINE.split_whitespace().filter(|word| !is_it(word)).collect();
        assert!(line.len() < GUIDE_LINE.split_whitespace().count(), "{token} was on the line");
        let bench = Bench::guide().line(&line.join(" "));
        assert_eq!(bench.verdict(&format!("boot.{token}")), Verdict::Wrong, "{token}");
    }
}

#[test]
fn an_unknown_command_line_judges_nothing() {
    for reading in [Reading::Absent, Reading::Denied, Reading::unparsable("/proc/cmdline", "\0", "text")] {
        for profile in Profile::ALL {
            let bench = Bench::of(profile).with(|bench| bench.host.kernel.command_line = reading.clone());
            for setting in CATALOGUE.settings().filter(|setting| setting.layer == Layer::Boot) {
                assert!(!bench.verdict(setting.id).counts(), "{} {reading:?}", setting.id);
            }
        }
    }
}

#[test]
fn equivalent_spellings_are_equal() {
    let guide = |line: &str| Bench::of(Profile::Guide57037).line(line);
    for line in ["nohz_full=1-7,9-15", "nohz_full=1,2,3,4,5,6,7,9-15", "nohz-full=9-15,1-7"] {
        assert_eq!(guide(line).verdict("boot.nohz_full"), Verdict::Good, "{line}");
    }
    for line in
        ["hugepagesz=2M", "hugepagesz=2MB", "hugepagesz=2048K", "hugepagesz=1G hugepages=4 hugepagesz=2m"]
    {
        assert_eq!(guide(line).verdict("boot.hugepagesz"), Verdict::Good, "{line}");
    }
}

#[test]
fn the_cpus_of_user_processes_are_those_of_process_1_and_not_those_of_the_parameter() {
    let id = "boot.tuned.non_isolcpus";
    let bench = |line: &str, cpus| {
        Bench::of(Profile::Guide57037).line(line).with(|bench| bench.host.tasks.first_process_cpus = cpus)
    };
    let known = |cpus| Reading::Known(list(cpus));
    bench("quiet", known("0,8")).says(id, Verdict::Good, &["0,8"]);
    bench("tuned.non_isolcpus=0000fefe", known("8")).says(id, Verdict::Good, &[]);
    bench("quiet", known("0-15")).says(id, Verdict::Wrong, &["may use CPUs 0-15", "1-7,9-15"]);
    bench("tuned.non_isolcpus=00000101", known("0-15")).says(id, Verdict::Ineffective, &["initial RAM disk"]);
    bench("quiet", Reading::Absent).says(id, Verdict::Unknown, &["/proc/1/status"]);
    bench("quiet", Reading::Denied).says(id, Verdict::Unknown, &["root"]);
}

#[test]
fn a_repeated_token_conflicts_only_if_its_values_differ() {
    let id = "boot.skew_tick";
    Bench::trading().line("skew_tick=1").says(id, Verdict::Good, &[]);
    Bench::trading().line("skew_tick=1 x skew_tick=1").says(id, Verdict::Good, &[]);
    Bench::trading().line("skew_tick=1 skew_tick=0").says(
        id,
        Verdict::Conflicting,
        &["skew_tick=1 skew_tick=0"],
    );
    let twice = Bench::trading().line("nohz_full=1-7,9-15 nohz_full=1-7");
    twice.says("boot.nohz_full", Verdict::Conflicting, &["2 times"]);
}

#[test]
fn nohz_full_is_compared_with_the_kernels_set() {
    let id = "boot.nohz_full";
    let bench = |line: &str, taken: &str| {
        let taken = Reading::Known(list(taken));
        Bench::trading().line(line).with(|bench| bench.host.topology.nohz_full = taken)
    };
    bench("nohz_full=1-7,9-15", "1-7,9-15").says(id, Verdict::Good, &[]);
    bench("nohz_full=1-7,9-15", "").says(
        id,
        Verdict::Ineffective,
        &["is empty", "/sys/devices/system/cpu/nohz_full"],
    );
    bench("nohz_full=1-7,9-15", "1-7").says(id, Verdict::Ineffective, &["9-15"]);
    bench("nohz_full=1-7", "1-7").says(id, Verdict::Wrong, &["it lacks CPUs 9-15"]);
    bench("nohz_full=0-15", "1-15").says(id, Verdict::Wrong, &["it should not include CPU 8"]);
    bench("nohz_full=ALL", "1-15").says(id, Verdict::Wrong, &["it should not include CPU 8"]);
    bench("nohz_full=1-7,9-99", "1-7,9-15").says(id, Verdict::Ineffective, &["cannot read"]);
    bench("nohz_full=x", "").says(id, Verdict::Ineffective, &["ignores the parameter"]);
    bench("quiet", "1-7,9-15").says(id, Verdict::Good, &["not on the command line, but in force"]);
    bench("quiet", "").says(id, Verdict::Wrong, &[]);
    bench("nohz_full=1-7,9-15 nohz=off", "").says(id, Verdict::Conflicting, &["nohz=off"]);
    bench("nohz_full=1-7,9-15", "1-7,9-15").config(&["NO_HZ_FULL"]).says(id, Verdict::Good, &[]);
    bench("nohz_full=1-7,9-15", "").config(&["SMP"]).says(id, Verdict::Ineffective, &["CONFIG_NO_HZ_FULL"]);
    bench("quiet", "").config(&["SMP"]).says(id, Verdict::Wrong, &["CONFIG_NO_HZ_FULL"]);
    let alone = bench("quiet", "").with(|bench| bench.allocation.isolated = CpuSet::new());
    alone.says(id, Verdict::NotApplicable, &["no basis"]);
}

#[test]
fn offline_cpus_in_a_list_are_accepted() {
    let bench = Bench::trading().line("nohz_full=1-7,9-15").with(|bench| {
        bench.host.topology.online = list("0-14");
        bench.allocation.isolated = list("1-7,9-14");
    });
    bench.says("boot.nohz_full", Verdict::Good, &[]);
}

#[test]
fn rcu_nocbs_is_joined_with_nohz_full() {
    let id = "boot.rcu_nocbs";
    let fifo = (SchedPolicy::Other, 0);
    let line = |text: &str| Bench::trading().line(text);
    line("rcu_nocbs=1-7,9-15").says(id, Verdict::Good, &[]);
    line("rcu_nocbs=1-7,9-15 nohz_full=1-7,9-15").says(id, Verdict::Good, &[]);
    // The kernel offloads the union.
    line("rcu_nocbs=1-7 nohz_full=1-7,9-15").says(id, Verdict::Good, &["in any case"]);
    line("rcu_nocbs=9-15 nohz_full=1-7").says(id, Verdict::Good, &["rcu_nocbs=9-15 nohz_full=1-7"]);
    for all in ["rcu_nocbs=all", "rcu_nocbs=ALL", "rcu_nocbs=0-N", "rcu_nocbs", "rcu_nocbs="] {
        line(&format!("{all} nohz_full=1-7,9-15")).says(id, Verdict::Good, &[all]);
    }
    line("rcu_nocbs").says(id, Verdict::Wrong, &["lacks"]);
    line("rcu_nocbs=1-7").says(id, Verdict::Wrong, &["lacks CPUs 9-15"]);
    line("rcu_nocbs=1-7 nohz_full=9-14").says(id, Verdict::Wrong, &["lacks"]);
    let refused = line("rcu_nocbs=1-7 nohz_full=1-7,9-15");
    refused.with(|bench| bench.host.topology.nohz_full = Reading::Known(list(""))).says(
        id,
        Verdict::Wrong,
        &["lacks CPUs 9-15"],
    );
    line("nohz_full=1-7,9-15").says(id, Verdict::Good, &["in any case"]);
    line("nohz_full=1-7").says(id, Verdict::Wrong, &[]);
    line("rcu_nocbs=1-7,9-15").config(&["SMP"]).says(id, Verdict::Ineffective, &["CONFIG_RCU_NOCB_CPU"]);
    line("rcu_nocbs=1-7,9-15").thread("rcuop/1", "0,8", fifo, false).says(id, Verdict::Good, &[]);
    line("rcu_nocbs=1-7,9-15").thread("rcu_sched", "0", fifo, false).says(
        id,
        Verdict::Ineffective,
        &["rcuop"],
    );
    let guide = Bench::of(Profile::Guide57037).line("nohz_full=1-7,9-15");
    guide.says(id, Verdict::Wrong, &["not on the command line"]);
}

#[test]
fn isolcpus_needs_its_flags_and_a_recent_kernel() {
    let id = "boot.isolcpus";
    let bench = |line: &str, isolated: &str| {
        let isolated = Reading::Known(list(isolated));
        Bench::trading().line(line).with(|bench| bench.host.topology.isolated = isolated)
    };
    bench("isolcpus=managed_irq,domain,1-7,9-15", "1-7,9-15").says(id, Verdict::Good, &[]);
    bench("isolcpus=domain,managed_irq,1-7,9-15", "1-7,9-15").says(id, Verdict::Good, &[]);
    bench("isolcpus=domain,1-7,9-15 isolcpus=managed_irq,1-7,9-15", "1-7,9-15").says(id, Verdict::Good, &[]);
    bench("isolcpus=managed_irq,domain,1-7,9-15", "").says(id, Verdict::Ineffective, &["is empty"]);
    bench("isolcpus=1-7,9-15", "1-7,9-15").says(id, Verdict::Wrong, &["| it lacks managed_irq"]);
    // Without a flag the kernel isolates from load balancing alone.
    assert_eq!(bench("isolcpus=1-7,9-15", "1-7,9-15").judge(id).because, "it lacks managed_irq");
    bench("isolcpus=1-7,9-15", "1-7,9-15").kernel(5, 4).says(id, Verdict::Good, &[]);
    bench("isolcpus=managed_irq,1-7,9-15", "").says(id, Verdict::Wrong, &["lacks domain"]);
    bench("quiet", "").says(id, Verdict::Wrong, &[]);
    let old = bench("isolcpus=managed_irq,domain,1-7,9-15", "").kernel(5, 4);
    old.says(id, Verdict::Ineffective, &["5.6", "whole parameter"]);
    bench("isolcpus=domain,1-7,9-15", "1-7,9-15").kernel(5, 4).says(id, Verdict::Good, &[]);
    // Flags are known by their effect, or by the distribution.
    let shown = |line: &str, release: &str, isolated: &str| {
        bench(line, isolated).with(|bench| {
            bench.host.kernel.release = Reading::Known(release.to_owned());
            bench.host.kernel.version = Reading::from_option(KernelVersion::parse(release));
        })
    };
    let line = "isolcpus=managed_irq,domain,1-7,9-15";
    shown(line, "5.3.18-150300.59-default", "1-7,9-15").says(id, Verdict::Good, &[]);
    shown(line, "4.18.0-553.el8_10.x86_64", "1-7,9-15").says(id, Verdict::Good, &[]);
    shown(line, "4.18.0-80.el8.x86_64", "").says(id, Verdict::Ineffective, &["5.6"]);
    shown("isolcpus=domain,1-7,9-15", "3.10.0-1160.el7.x86_64", "").says(id, Verdict::Ineffective, &["4.15"]);
    shown("isolcpus=1-7,9-15", "3.10.0-1160.el7.x86_64", "1-7,9-15").says(id, Verdict::Good, &[]);
    shown("isolcpus=future,1-7,9-15", "5.4.0", "").says(id, Verdict::Ineffective, &["5.8", "future"]);
    for (release, wanted) in [
        ("3.10.0-1160.el7.x86_64", "1-7,9-15"),
        ("4.19.0-27-amd64", "domain,1-7,9-15"),
        ("4.18.0-553.el8_10.x86_64", "managed_irq,domain,1-7,9-15"),
        ("6.1.0-25-amd64", "managed_irq,domain,1-7,9-15"),
    ] {
        let text = shown("ro", release, "").judge(id).wanted;
        assert_eq!(text, wanted, "{release}");
    }
    // Words that the kernel reads as flags.
    for flag in ["all", "N", "ALL", "domain", "managed_irq,domain"] {
        bench(&format!("isolcpus={flag}"), "").says(id, Verdict::Ineffective, &["as a flag"]);
    }
    bench("isolcpus=future,managed_irq,domain,1-7,9-15", "1-7,9-15").says(id, Verdict::Good, &[]);
    bench("isolcpus=fut-ure,1-7,9-15", "").says(id, Verdict::Ineffective, &["neither a flag nor"]);
    bench("isolcpus=managed_irq,domain,1-7 isolcpus=managed_irq,domain,1-7,9-15", "1-7").says(
        id,
        Verdict::Conflicting,
        &["uses the first"],
    );
    let partition = |state: &str| CpusetPartition {
        group: "trading".into(),
        state: state.into(),
        cpus: Reading::Known(list("1-7,9-15")),
    };
    let with = |state: &str| {
        let partition = partition(state);
        bench("quiet", "").with(|bench| bench.host.services.cpuset_partitions.push(partition))
    };
    with("isolated").says(id, Verdict::Good, &["cpuset"]);
    with("isolated invalid (Cpu list in cpuset.cpus not exclusive)").says(id, Verdict::Wrong, &[]);
}

#[test]
fn irqaffinity_must_not_include_isolated_cpus() {
    let id = "boot.irqaffinity";
    let line = |text: &str| Bench::trading().line(text);
    line("irqaffinity=0,8").says(id, Verdict::Good, &[]);
    line("irqaffinity=0").says(id, Verdict::Wrong, &["it lacks CPU 8"]);
    line("irqaffinity=0-3 isolcpus=domain,1-7").says(
        id,
        Verdict::Conflicting,
        &["isolcpus= isolates CPUs 1-3"],
    );
    line("irqaffinity=0,8 nohz_full=8-15").says(id, Verdict::Conflicting, &["nohz_full=", "8"]);
    line("quiet").says(id, Verdict::Wrong, &[]);
    let default = Reading::Known(list("0,8"));
    line("quiet").with(|bench| bench.host.interrupts.default_affinity = default).says(
        id,
        Verdict::Good,
        &["/proc/irq/default_smp_affinity"],
    );
}

#[test]
fn visible_effects_override_the_command_line() {
    let thp = |line: &str, state: &str| {
        let state = Reading::Known(state.to_owned());
        Bench::trading().line(line).with(|bench| bench.host.memory.thp_enabled = state)
    };
    let id = "boot.transparent_hugepage";
    thp("transparent_hugepage=never", "never").says(id, Verdict::Good, &[]);
    thp("transparent_hugepage=never", "always").says(id, Verdict::Ineffective, &["always"]);
    thp("quiet", "never").says(id, Verdict::Good, &["in force"]);
    thp("transparent_hugepage=always", "never").says(id, Verdict::Good, &["it was changed later"]);
    thp("quiet", "madvise").says(id, Verdict::Wrong, &["madvise"]);

    let rcu = "boot.rcupdate.rcu_normal_after_boot";
    Bench::trading().line("quiet").knob("/sys/kernel/rcu_normal", "1").says(
        rcu,
        Verdict::Good,
        &["rcu_normal"],
    );
    Bench::trading().line("quiet").knob("/sys/kernel/rcu_normal", "0").says(rcu, Verdict::Wrong, &[]);
    let asked = Bench::trading().line("rcupdate.rcu_normal_after_boot=1");
    asked.knob("/sys/kernel/rcu_normal", "0").says(rcu, Verdict::Ineffective, &["expedited"]);

    let ce = "/sys/devices/system/machinecheck/machinecheck0/ignore_ce";
    Bench::guide().knob(ce, "1").says("boot.mce", Verdict::Good, &[]);
    Bench::guide().knob(ce, "0").says("boot.mce", Verdict::Ineffective, &["ignore_ce is 0"]);
    // In the guide's profile the effect alone is not enough.
    Bench::guide().line("quiet").knob(ce, "1").says("boot.mce", Verdict::Wrong, &["not on the command line"]);
}

#[test]
fn huge_pages_are_compared_with_the_pools() {
    let id = "boot.hugepages";
    let pools = |each: u64| {
        Bench::guide().with(|bench| {
            bench.host.memory.huge_pages = [0, 1]
                .map(|node| HugePages {
                    node: Some(node),
                    size_bytes: 2 << 20,
                    total: Reading::Known(each),
                    free: Reading::Known(each),
                })
                .into();
        })
    };
    pools(3000).says(id, Verdict::Good, &["6000"]);
    pools(2900).says(id, Verdict::Ineffective, &["the pool has 5800"]);
    Bench::guide().line("hugepagesz=2M hugepages=512").says(id, Verdict::Wrong, &["512"]);
    Bench::guide().line("hugepagesz=1G hugepages=6000").says(id, Verdict::Wrong, &["another size"]);
    Bench::guide().line("hugepagesz=2M hugepages=0:3000,1:3000").says(id, Verdict::Good, &[]);
    let default =
        Bench::guide().with(|bench| bench.host.memory.huge_page_default_bytes = Reading::Known(1 << 30));
    default.says("boot.default_hugepagesz", Verdict::Ineffective, &["1073741824"]);
}

#[test]
fn idle_parameters_are_judged_by_the_remaining_states() {
    let id = "boot.processor.max_cstate";
    let bench = |line: &str, driver: &str, enabled: &str| {
        let state = IdleState {
            name: "C2".into(),
            cpus: CpuSet::first(16),
            cpus_enabled: list(enabled),
            ..IdleState::default()
        };
        let driver = Reading::Known(driver.to_owned());
        Bench::trading().line(line).with(|bench| {
            bench.host.cpu.idle_states.push(state);
            bench.host.cpu.idle_driver = driver;
        })
    };
    bench("processor.max_cstate=1", "acpi_idle", "").says(id, Verdict::Good, &[]);
    bench("processor.max_cstate=1", "acpi_idle", "0-15").says(id, Verdict::Ineffective, &["C2"]);
    bench("quiet", "acpi_idle", "0,8").says(id, Verdict::Good, &["no idle state beyond C1"]);
    bench("quiet", "acpi_idle", "3").says(id, Verdict::Wrong, &["C2"]);
    bench("idle=poll", "none", "").says(id, Verdict::Good, &["idle=poll"]);
    bench("quiet", "none", "").says(id, Verdict::NotApplicable, &["no idle driver"]);
    bench("quiet", "intel_idle", "3").says(id, Verdict::NotApplicable, &["intel_idle"]);

    let intel = |line: &str, enabled: &str| {
        bench(line, "intel_idle", enabled)
            .with(|bench| bench.host.cpu.vendor = Reading::Known("GenuineIntel".into()))
    };
    let id = "boot.intel_idle.max_cstate";
    intel("intel_idle.max_cstate=1", "").says(id, Verdict::Good, &[]);
    intel("intel_idle.max_cstate=0", "").says(id, Verdict::Wrong, &["processor.max_cstate=1"]);
    intel("intel_idle.max_cstate=0 processor.max_cstate=1", "").says(id, Verdict::Good, &[]);
    intel("quiet", "1-15").says(id, Verdict::Wrong, &["C2"]);
    bench("quiet", "acpi_idle", "").says(id, Verdict::Unknown, &["vendor_id"]);
    bench("quiet", "acpi_idle", "")
        .with(|bench| bench.host.cpu.vendor = Reading::Known("AuthenticAMD".into()))
        .says(id, Verdict::NotApplicable, &["this one is AuthenticAMD"]);
}

#[test]
fn clock_parameters_need_a_trusted_counter() {
    let tsc = |line: &str, flags: &[&str], source: &str| {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let source = Reading::Known(source.to_owned());
        Bench::trading().line(line).with(|bench| {
            bench.host.cpu.flags = Reading::Known(flags);
            bench.host.cpu.clocksource = source;
        })
    };
    let both = ["constant_tsc", "nonstop_tsc"];
    let id = "boot.tsc";
    tsc("tsc=reliable", &both, "tsc").says(id, Verdict::Good, &[]);
    tsc("tsc=nowatchdog", &both, "tsc").says(id, Verdict::Good, &["watchdog is off"]);
    tsc("tsc=reliable", &both, "hpet").says(id, Verdict::Ineffective, &["hpet"]);
    tsc("quiet", &both, "tsc").says(id, Verdict::Wrong, &[]);
    tsc("tsc=reliable", &["constant_tsc"], "tsc").says(id, Verdict::NotApplicable, &[]);
    let id = "boot.clocksource";
    tsc("quiet", &both, "tsc").says(id, Verdict::Good, &[]);
    tsc("clocksource=tsc", &both, "tsc").says(id, Verdict::Good, &[]);
    tsc("clocksource=tsc", &both, "hpet").says(id, Verdict::Ineffective, &["hpet"]);
    tsc("clocksource=hpet", &both, "hpet").says(id, Verdict::Wrong, &["hpet"]);
}

#[test]
fn mitigations_are_reported_and_never_judged() {
    for line in ["mitigations=off", "mitigations=auto", "quiet"] {
        let bench = Bench::trading().line(line).with(|bench| {
            let state = Reading::Known("Vulnerable: no microcode".to_owned());
            bench.host.cpu.vulnerabilities.insert("mds".into(), state);
        });
        bench.says("boot.mitigations", Verdict::NotApplicable, &["vulnerable to mds"]);
    }
}

#[test]
fn amd_pstate_needs_a_high_frequency() {
    let amd = |driver: &str, governor: &str| {
        let governor = Reading::Known(governor.to_owned());
        Bench::trading()
            .line("quiet")
            .policy("0-15", driver, governor)
            .with(|bench| bench.host.cpu.vendor = Reading::Known("AuthenticAMD".into()))
    };
    let id = "boot.amd_pstate";
    amd("amd-pstate-epp", "performance").says(id, Verdict::Good, &[]);
    amd("amd-pstate-epp", "powersave").says(id, Verdict::Wrong, &["powersave"]);
    amd("acpi-cpufreq", "schedutil").says(id, Verdict::Good, &[]);
    Bench::trading().line("quiet").says(id, Verdict::Unknown, &["vendor_id"]);
    amd("intel_pstate", "powersave")
        .with(|bench| bench.host.cpu.vendor = Reading::Known("GenuineIntel".into()))
        .says(id, Verdict::NotApplicable, &["this one is GenuineIntel"]);
}

#[test]
fn the_command_line_must_fit_into_grubenv() {
    let id = "boot.grubenv_limit";
    let grubenv = |used: usize| format!("# GRUB Environment Block\n{}\n{}", "x".repeat(used), "#".repeat(64));
    let bench = |profile, text: &str| Bench::of(profile).knob("/boot/grub2/grubenv", text);
    bench(Profile::Trading, &grubenv(300)).says(id, Verdict::Good, &["of 1024 bytes"]);
    bench(Profile::Trading, &grubenv(1200)).says(id, Verdict::Wrong, &["larger than GRUB reads"]);
    Bench::trading().says(id, Verdict::NotApplicable, &["no grubenv"]);
    Bench::trading().reading("/boot/grub2/grubenv", Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    // 128 CPUs written out do not fit twice; as ranges they do.
    let large = |profile| {
        bench(profile, &grubenv(200)).with(|bench| {
            bench.allocation.isolated = list("1-63,65-127");
            bench.allocation.housekeeping = list("0,64");
        })
    };
    large(Profile::Trading).says(id, Verdict::Good, &[]);
    large(Profile::Guide57037).says(id, Verdict::Wrong, &["write ranges"]);
}

#[test]
fn parameters_of_x86_are_not_asked_of_other_kernels() {
    let on = |machine: &str| {
        Bench::guide().with(|bench| {
            bench.host.kernel.machine = Reading::Known(machine.into());
            bench.host.cpu.vendor = Reading::Known("Arm".into());
        })
    };
    for id in ["boot.tsc", "boot.idle", "boot.mce", "boot.intel_pstate"] {
        on("aarch64").says(id, Verdict::NotApplicable, &["for aarch64"]);
        assert_ne!(on("x86_64").verdict(id), Verdict::NotApplicable, "{id}");
    }
    on("aarch64").says("boot.hugepagesz", Verdict::Good, &[]);
}
