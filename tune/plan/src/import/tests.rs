use super::*;
use lowlat_catalogue::testing::Bench;

/// Files of a host and of a profile.
#[derive(Default)]
struct Files(std::collections::BTreeMap<String, Reading<String>>);

impl Files {
    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.to_owned(), Reading::Known(text.to_owned()));
        self
    }
}

impl Tree for Files {
    fn read(&self, path: &str) -> Reading<String> {
        self.0.get(path).cloned().unwrap_or_default()
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        self.0.keys().filter(|path| lowlat_host::snapshot::glob_matches(pattern, path)).cloned().collect()
    }
}

const FILE: &str = "/p/own/tuned.conf";

fn read_on(host: &HostSnapshot, tool: TuningTool, text: &str) -> Result<Wishes, String> {
    tool.read(FILE, &Files::default().with(FILE, text), host)
}

fn read(tool: TuningTool, text: &str) -> Wishes {
    read_on(&Bench::trading().host, tool, text).unwrap()
}

fn values(wishes: &Wishes) -> Vec<(&str, &str)> {
    wishes.requests.iter().map(|request| (request.place.as_str(), request.value.as_str())).collect()
}

fn left<'a>(wishes: &'a Wishes, place: &str) -> &'a str {
    let found = wishes.unread.iter().find(|part| part.place == place);
    found.map_or_else(|| panic!("{place} is not left out: {wishes:?}"), |part| &part.why)
}

#[test]
fn a_later_profile_of_tuned_replaces_entries_of_the_included_one() {
    let files = Files::default()
        .with("/p/base/tuned.conf", "[main]\ninclude=own\n[sysctl]\nvm.swappiness=30\nvm.stat_interval = 5\n")
        .with("/usr/lib/tuned/other/tuned.conf", "[sysctl]\nvm.swappiness=20\nvm.dirty_ratio=3\n")
        .with("/etc/tuned/other/tuned.conf", "[main]\ninclude=other\n[sysctl]\nvm.dirty_ratio=4\n[vm]\ndirty_bytes=8%\n")
        .with(
            FILE,
            "[main]\ninclude=base ;\n  other\n[sysctl]\nvm.swappiness=10 # a comment\ndrop=vm.stat_interval\n[vm]\nreplace=1\n\
             dirty_background_bytes = 2%\n",
        );
    let wishes = TuningTool::Tuned.read(FILE, &files, &Bench::trading().host).unwrap();
    // A profile of /etc that includes its own name includes that of /usr/lib.
    assert_eq!(
        values(&wishes),
        [
            ("[sysctl] vm.swappiness", "10"),
            ("[sysctl] vm.dirty_ratio", "4"),
            ("[vm] dirty_background_bytes", "2")
        ]
    );
    let share = wishes.requests[2].targets[0].kind().facts().name;
    assert_eq!(share, "vm.dirty_background_ratio");
    let missing =
        read_on(&Bench::trading().host, TuningTool::Tuned, "[main]\ninclude=base,-optional\n").unwrap_err();
    assert_eq!(missing, "/p/own/tuned.conf includes the profile base, which is not installed");
}

#[test]
fn variables_and_functions_of_tuned_are_evaluated_where_the_host_answers() {
    let text = "[variables]\ncores=1-3\nsame=${cores}\nlater=${nobody}\nnobody=1\nkeep=${keep}\n[bootloader]\n\
                cmdline_a=+nohz_full=${same} rcu_nocbs=${cores} quiet\ncmdline_b=skew_tick=${f:exec:x:-y}\n\
                cmdline_c=-tsc=reliable\ncmdline_d=x=${none}\ncmdline_e=${later}\ncmdline_f=y=${keep}\n\
                cmdline_g=mask=${f:cpulist2hex:${f:cpulist_invert:${cores}}}${f:regex_search_ternary:${cores}:^1\\-:\\:yes:no}\n\
                cmdline_h=nosuch=${f:nosuch:1}\ncmdline_i=-rcu_nocbs=${cores} quiet\n";
    let wishes = read(TuningTool::Tuned, text);
    assert_eq!(
        values(&wishes),
        [
            ("[bootloader] cmdline_a: nohz_full", "nohz_full=1-3"),
            ("[bootloader] cmdline_g: mask", "mask=0000fff1:yes"),
        ]
    );
    assert_eq!(left(&wishes, "[bootloader] cmdline_b"), "only TuneD runs the command `x -y` of ${f:exec}");
    assert!(left(&wishes, "[bootloader] cmdline_c").contains("none of them"), "{wishes:?}");
    assert_eq!(left(&wishes, "[bootloader] cmdline_d"), "the profile does not define ${none}");
    assert_eq!(left(&wishes, "[bootloader] cmdline_e"), "the profile does not define ${nobody}");
    assert_eq!(left(&wishes, "[bootloader] cmdline_f"), "the profile does not define ${keep}");
    assert_eq!(left(&wishes, "[bootloader] cmdline_h"), "only TuneD computes ${f:nosuch}");
}

#[test]
fn a_variable_keeps_the_value_of_the_included_file() {
    let text = "[variables]\ninclude=/etc/tuned/x-variables.conf\ncheck=\\\\${cores}\ncores = ${cores}\n\
                assert=${f:assertion_non_equal:cores are set:${cores}:${check}}\n[bootloader]\ncmdline=isolcpus=${cores}\n";
    let files = Files::default().with(FILE, text);
    let host = Bench::trading().host;
    let without = TuningTool::Tuned.read(FILE, &files, &host).unwrap();
    assert_eq!(
        left(&without, "[variables] include"),
        "/etc/tuned/x-variables.conf does not exist on this host"
    );
    assert!(left(&without, "[variables] assert").contains("\"cores are set\" fails"));
    assert_eq!(left(&without, "[bootloader] cmdline"), "the profile does not define ${cores}");
    let set = files.with("/etc/tuned/x-variables.conf", "# ours\ncores=2-3\nunused\n");
    let wishes = TuningTool::Tuned.read(FILE, &set, &host).unwrap();
    assert_eq!(values(&wishes), [("[bootloader] cmdline: isolcpus", "isolcpus=2-3")]);
    assert!(wishes.unread.is_empty(), "{wishes:?}");
    let mut denied = set;
    denied.0.insert("/etc/tuned/x-variables.conf".to_owned(), Reading::Denied);
    let wishes = TuningTool::Tuned.read(FILE, &denied, &host).unwrap();
    assert_eq!(left(&wishes, "[bootloader] cmdline"), "/etc/tuned/x-variables.conf was not read");
}

/// The functions with which OpenShift's operator chooses what a profile includes.
#[test]
fn an_include_may_depend_on_the_host() {
    let text = "[main]\ninclude=base${f:regex_search_ternary:${f:exec:uname:-r}:rt:,base-rt:};\n \
                cpu-${f:lscpu_check:Vendor ID\\:\\s*GenuineIntel:intel:Vendor ID\\:\\s*AuthenticAMD:amd}-\
                ${f:lscpu_check:Architecture\\:\\s*x86_64:x86:Architecture\\:\\s*aarch64:arm}\n\
                [variables]\nstate=${f:intel_recommended_pstate}\n[bootloader]\ncmdline_own=+intel_pstate=${state}\n";
    let files = || {
        Files::default()
            .with(FILE, text)
            .with(
                "/p/base/tuned.conf",
                "[sysctl]\nvm.stat_interval=10\nvm.swappiness=10\n[bootloader]\ncmdline_a=quiet\n",
            )
            .with("/p/base-rt/tuned.conf", "[sysctl]\ndrop=vm.stat_interval,kernel.numa_balancing\n")
            .with(
                "/p/cpu-amd-x86/tuned.conf",
                "[bootloader]\ncmdline_amd=amd_pstate=active\ncmdline_a=-quiet\n",
            )
    };
    let mut bench = Bench::trading();
    bench.host.cpu.vendor = Reading::Known("AuthenticAMD".to_owned());
    bench.host.kernel.machine = Reading::Known("x86_64".to_owned());
    let places = |host: &HostSnapshot, files: &Files| -> Vec<String> {
        let wishes = TuningTool::Tuned.read(FILE, files, host).unwrap();
        wishes.requests.iter().map(|one| format!("{} = {}", one.place, one.value)).collect()
    };
    bench.host.kernel.release = Reading::Known("5.14.0-427.el9.x86_64+rt".to_owned());
    assert_eq!(
        places(&bench.host, &files().with("/sys/devices/cpu/caps/pmu_name", "amd_zen")),
        [
            "[sysctl] vm.swappiness = 10",
            "[bootloader] cmdline_amd: amd_pstate = amd_pstate=active",
            "[bootloader] cmdline_own: intel_pstate = intel_pstate=active",
        ]
    );
    bench.host.kernel.release = Reading::Known("5.14.0-427.el9.x86_64".to_owned());
    let skylake = files().with("/sys/devices/cpu/caps/pmu_name", "skylake");
    assert_eq!(places(&bench.host, &skylake)[0], "[sysctl] vm.stat_interval = 10");
    assert!(places(&bench.host, &skylake).last().unwrap().ends_with("intel_pstate=disable"));
    bench.host.cpu.vendor = Reading::Denied;
    let wishes = TuningTool::Tuned.read(FILE, &skylake, &bench.host).unwrap();
    assert!(left(&wishes, "[main] include").contains("lscpu"), "{wishes:?}");
}

#[test]
fn a_section_applies_where_its_patterns_match() {
    let mut bench = Bench::trading();
    bench.host.kernel.release = Reading::Known("6.1.0-25-amd64".to_owned());
    bench.host.kernel.build = Reading::Known("#1 SMP".to_owned());
    bench.host.kernel.machine = Reading::Known("x86_64".to_owned());
    let text = "[sysctl.arm]\ntype=sysctl\nuname_regex=aarch64$\nvm.swappiness=1\n[sysctl.x86]\ntype=sysctl\n\
                uname_regex=x86_64\nvm.stat_interval=1\n[vm.amd]\ntype=vm\ncpuinfo_regex=AMD\ndirty_ratio=1\n\
                [vm.off]\ntype=vm\nenabled=no\ndirty_ratio=2\n";
    let wishes = read_on(&bench.host, TuningTool::Tuned, text).unwrap();
    assert_eq!(values(&wishes), [("[sysctl.x86] vm.stat_interval", "1")]);
    assert_eq!(left(&wishes, "[sysctl.arm]"), "TuneD skips this section on this host");
    assert_eq!(left(&wishes, "[vm.off]"), "is switched off");
    let files = Files::default().with(FILE, text).with("/proc/cpuinfo", "model name\t: AMD EPYC\n");
    let known = TuningTool::Tuned.read(FILE, &files, &bench.host).unwrap();
    assert_eq!(values(&known)[1], ("[vm.amd] dirty_ratio", "1"));
    bench.host.origin.kind = lowlat_host::snapshot::OriginKind::Capture;
    let unknown = read_on(&bench.host, TuningTool::Tuned, text).unwrap();
    assert!(left(&unknown, "[vm.amd]").ends_with("/proc/cpuinfo was not read"), "{unknown:?}");
}

#[test]
fn operators_of_tuned_keep_a_better_present_value() {
    let mut bench = Bench::trading();
    let path = lowlat_host::snapshot::sysctl_path("net.core.busy_read");
    bench.host.files.insert(path, Reading::Known("70".into()));
    let of = |text: &str| {
        let wishes =
            read_on(&bench.host, TuningTool::Tuned, &format!("[sysctl]\nnet.core.busy_read={text}\n"))
                .unwrap();
        wishes.requests[0].value.clone()
    };
    assert_eq!((of(">50").as_str(), of(">90").as_str(), of("<50").as_str()), ("70", "90", "50"));
}

/// TuneD joins its keys: of some parameters the kernel uses the first.
#[test]
fn a_parameter_that_the_kernel_ignores_is_not_judged() {
    let text = "[bootloader]\ncmdline_a=+isolcpus=1-3 irqaffinity=0\ncmdline_b=+isolcpus=1-7 irqaffinity=8\n";
    let wishes = read(TuningTool::Tuned, text);
    let isolating: Vec<_> =
        values(&wishes).into_iter().filter(|(_, value)| value.contains("isolcpus")).collect();
    assert_eq!(isolating, [("[bootloader] cmdline_a: isolcpus", "isolcpus=1-3")]);
    let why = left(&wishes, "[bootloader] cmdline_b: isolcpus");
    assert_eq!(
        why,
        "isolcpus=1-7 occurs after isolcpus=1-3: the kernel uses the first and ignores the others"
    );
    assert!(values(&wishes).iter().any(|(_, value)| *value == "irqaffinity=8"));
}

#[test]
fn services_and_plug_ins_without_counterpart_are_named() {
    let text = "[service]\nservice.irqbalance=stop,disable\nservice.x=restart\n[cpu]\nforce_latency=1\n[video]\npanel=1\n\
                [rtentsk]\n[sysfs]\n/etc/shadow=1\n/sys/a?=1\n";
    let wishes = read(TuningTool::Tuned, text);
    assert_eq!(values(&wishes), [("[service] service.irqbalance", "inactive, disabled")]);
    assert!(left(&wishes, "[cpu] force_latency").contains("cpu_dma_latency"));
    assert_eq!(left(&wishes, "[video] panel"), "lowlat has no counterpart");
    assert!(left(&wishes, "[rtentsk]").contains("socket"));
    assert_eq!(left(&wishes, "[sysfs] /etc/shadow"), "TuneD writes only below /sys");
    assert!(left(&wishes, "[sysfs] /sys/a?").contains("only *"));
    assert!(!left(&wishes, "[service] service.x").is_empty());
}

/// Each option reaches the row that judges the value, whatever plug-in sets it.
#[test]
fn plug_ins_reach_the_rows_that_read_what_they_set() {
    let mut bench = Bench::trading().unit("irqbalance.service", "active");
    bench.host.tasks.kernel_threads = vec![lowlat_host::snapshot::KernelThread {
        pid: 12,
        comm: "ksoftirqd/1".to_owned(),
        cpus_allowed: Reading::Known(CpuSet::of(1)),
        policy: lowlat_host::snapshot::SchedPolicy::Other,
        rt_priority: 0,
        is_bound: true,
    }];
    bench.host.interrupts.irqs = vec![lowlat_host::snapshot::Irq {
        number: 40,
        actions: vec!["eth0-rx-0".to_owned()],
        ..Default::default()
    }];
    let text = "[cpu]\ndevices=cpu1 cpu2 !cpu2\ngovernor=schedutil|powersave\nenergy_perf_bias=powersave|power\n[acpi]\n\
                platform_profile=low-power|quiet\n[cpu-rest]\ntype=cpu\nno_turbo=true\ngovernor=performance\n\
                [scheduler]\nisolated_cores=1-7\ngroup.k=0:f:2:*:^\\[ksoftirqd\nsched_latency_ns=5\n\
                [disk]\ndevices=nvme9*\nelevator=none\n[irqbalance]\nbanned_cpus=1,2-7\n[uncore]\nmax_freq_khz=1\n\
                [systemd]\ncpu_affinity=\"0,8\"\n";
    let files = Files::default()
        .with(FILE, text)
        .with("/sys/firmware/acpi/platform_profile_choices", "quiet balanced performance")
        .with("/sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors", "performance powersave")
        .with("/sys/devices/system/cpu/intel_uncore_frequency/package_00/max_freq_khz", "9");
    let wishes = TuningTool::Tuned.read(FILE, &files, &bench.host).unwrap();
    let shown = |place: &str| -> (String, String, usize) {
        let one = wishes
            .requests
            .iter()
            .find(|one| one.place == place)
            .unwrap_or_else(|| panic!("{place}: {wishes:?}"));
        (one.targets[0].kind().facts().name, one.value.clone(), one.targets.len())
    };
    let is = |place: &str, name: &str, value: &str, count: usize| {
        assert_eq!(shown(place), (name.to_owned(), value.to_owned(), count), "{place}");
    };
    is("[cpu] governor", "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave", 1);
    is("[cpu] energy_perf_bias", "/sys/devices/system/cpu/cpu1/power/energy_perf_bias", "15", 1);
    // Each CPU belongs to the first section that names it.
    is("[cpu-rest] governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance", 15);
    is("[cpu-rest] no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo", "1", 1);
    is("[acpi] platform_profile", "/sys/firmware/acpi/platform_profile", "quiet", 1);
    is("[scheduler] group.k", "ksoftirqd/1", "SCHED_FIFO 2", 1);
    is("[scheduler] sched_latency_ns", "/sys/kernel/debug/sched/latency_ns", "5", 1);
    is("[irqbalance] banned_cpus", "/etc/sysconfig/irqbalance IRQBALANCE_BANNED_CPULIST", "1-7", 1);
    is(
        "[uncore] max_freq_khz",
        "/sys/devices/system/cpu/intel_uncore_frequency/package_00/max_freq_khz",
        "1",
        1,
    );
    assert_eq!(shown("[scheduler] isolated_cores").1, "0,8-15");
    assert_eq!((shown("[systemd] cpu_affinity").1.as_str(), shown("[systemd] cpu_affinity").2), ("0,8", 1));
    assert!(left(&wishes, "[disk] elevator").contains("finds nothing"));
    let guide = Bench { host: bench.host.clone(), ..Bench::guide() };
    let by_guide = judge(TuningTool::Tuned, wishes.clone(), &guide.context());
    let group = by_guide.requests.iter().find(|one| one.place == "[scheduler] group.k").unwrap();
    assert!(matches!(&group.effect, Effect::Agrees { settings } if settings == &["kthread.ksoftirqd"]));
    let import = judge(TuningTool::Tuned, wishes, &bench.context());
    let rows = |place: &str| -> Vec<String> {
        let one = import.requests.iter().find(|one| one.place == place).unwrap();
        match &one.effect {
            Effect::Agrees { settings } => settings.clone(),
            Effect::Differs { settings } => settings.iter().map(|wrong| wrong.id.clone()).collect(),
            Effect::Unjudged => Vec::new(),
        }
    };
    assert_eq!(rows("[acpi] platform_profile"), ["sysfs.platform_profile"]);
    assert!(rows("[scheduler] isolated_cores").contains(&"irq.default_affinity".to_owned()));
    assert!(
        rows("[scheduler] isolated_cores").contains(&"irq.affinity".to_owned()),
        "{:?}",
        rows("[scheduler] isolated_cores")
    );
    assert_eq!(rows("[irqbalance] banned_cpus"), ["irq.irqbalance_banned"]);
}

#[test]
fn lltune_s_placeholders_are_no_values() {
    let text = "version: 1\nkernel:\n  cmdline:\n    nohz_full: 'TODO: match isolate_cores'\n    skew_tick: '1'\n    nowatchdog: ''\n\
                memory:\n  numa_balancing: false\n  ksm: false\n  swap_disable: true\n  hugepages: {size_kb: '2048', total: 64}\n\
                network:\n  sysctl: {busy_poll: 50, tcp_sack: false, file_max: 2097152}\n  defaults: {disable_gro: true}\n";
    let wishes = read(TuningTool::Lltune, text);
    assert_eq!(
        values(&wishes),
        [
            ("kernel.cmdline.nowatchdog", "nowatchdog"),
            ("kernel.cmdline.skew_tick", "skew_tick=1"),
            ("memory.hugepages.total", "64"),
            ("memory.ksm", "0"),
            ("memory.numa_balancing", "0"),
            ("network.sysctl.busy_poll", "50"),
            ("network.sysctl.file_max", "2097152"),
            ("network.sysctl.tcp_sack", "0"),
        ]
    );
    let names: Vec<String> = wishes.requests.iter().map(|one| one.targets[0].kind().facts().name).collect();
    assert!(
        ["net.core.busy_poll", "net.ipv4.tcp_sack", "fs.file-max"]
            .iter()
            .all(|key| names.contains(&(*key).to_owned()))
    );
    assert!(left(&wishes, "kernel.cmdline.nohz_full").contains("placeholder"));
    assert!(left(&wishes, "network.defaults").contains("net prepare"));
}

#[test]
fn rt_conf_s_filters_find_interrupts() {
    let mut bench = Bench::trading();
    bench.host.interrupts.irqs = [(40, "eth0-rx-0"), (41, "eth0-tx-0"), (42, "nvme0q1")]
        .map(|(number, action)| lowlat_host::snapshot::Irq {
            number,
            actions: vec![action.to_owned()],
            chip: "IR-PCI-MSI".to_owned(),
            ..Default::default()
        })
        .into();
    let text = "kernel-cmdline:\n  isolcpus: \"2-3\"\n  nohz: \"on\"\nirq_tuning:\n  - cpus: 0-1\n    filter: {actions: '^eth0-', chip_name: IR-PCI}\n\
                \x20 - cpus: 0-1\n    filter: {actions: wlan}\n  - cpus: 0-1\n    filter: {actions: '('}\ncpu_governance:\n  - cpus: 0,2\n    scaling_governor: performance\n";
    let wishes = read_on(&bench.host, TuningTool::RtConf, text).unwrap();
    let interrupts = wishes.requests.iter().find(|one| one.place == "irq_tuning[0]").unwrap();
    assert_eq!((interrupts.targets.len(), interrupts.value.as_str()), (2, "0-1"));
    let governor = wishes.requests.iter().find(|one| one.place == "cpu_governance[0]").unwrap();
    assert_eq!((governor.targets.len(), governor.value.as_str()), (2, "performance"));
    assert_eq!(left(&wishes, "irq_tuning[1]"), "no interrupt of this host matches");
    assert!(left(&wishes, "irq_tuning[2]").contains("invalid"));
    assert_eq!(values(&wishes)[0], ("kernel_cmdline.isolcpus", "isolcpus=2-3"));
}

#[test]
fn rt_conf_s_filters_compare_what_sysfs_shows() {
    let mut bench = Bench::trading();
    bench.host.interrupts.irqs = [
        (9, "acpi", "IR-IO-APIC 9-fasteoi"),
        (40, "eth0-rx-0", "IR-PCI-MSI-0000:01:00.0 0-edge"),
        (41, "", "IR-PCI-MSI-0000:01:00.0 1-edge"),
        (42, "mlx5_comp0@pci:0000:03:00.0", "IR-PCI-MSIX-0000:03:00.0 1-edge"),
    ]
    .map(|(number, action, chip)| lowlat_host::snapshot::Irq {
        number,
        actions: Some(action.to_owned()).into_iter().filter(|action| !action.is_empty()).collect(),
        chip: chip.to_owned(),
        ..Default::default()
    })
    .into();
    let numbers = |filter: &str, files: Files| -> Result<Vec<u32>, String> {
        let text = format!("irq_tuning:\n  nics:\n    cpus: all\n    filter: {{{filter}}}\n");
        let wishes = TuningTool::RtConf.read(FILE, &files.with(FILE, &text), &bench.host).unwrap();
        let number = |target: &Target| match target {
            Target::IrqAffinity { irq, .. } => *irq,
            other => panic!("{other:?}"),
        };
        match wishes.requests.as_slice() {
            [one] => Ok(one.targets.iter().map(number).collect()),
            _ => Err(left(&wishes, "irq_tuning.nics").to_owned()),
        }
    };
    assert_eq!(numbers("name: ^edge$", Files::default()), Ok(vec![40, 42]));
    assert_eq!(numbers("name: fasteoi, actions: ''", Files::default()), Ok(vec![9]));
    assert_eq!(numbers("", Files::default()), Ok(vec![9, 40, 42]));
    assert_eq!(
        numbers("type: edge", Files::default()),
        Err("/sys/kernel/irq/*/type was not read".to_owned())
    );
    let shown = [9, 40, 42].iter().fold(Files::default(), |files, number| {
        let (kind, chip) = if *number == 9 { ("level", "IR-IO-APIC") } else { ("edge", "IR-PCI-MSI") };
        let of = |file: &str| format!("/sys/kernel/irq/{number}/{file}");
        files.with(&of("type"), kind).with(&of("chip_name"), chip)
    });
    assert_eq!(numbers("type: edge, chip-name: MSI$", shown), Ok(vec![40, 42]));
}

#[test]
fn other_text_is_refused_or_empty() {
    assert!(read_on(&HostSnapshot::default(), TuningTool::Lltune, "a: [").is_err());
    for tool in TuningTool::ALL {
        let wishes = read_on(&HostSnapshot::default(), tool, "").unwrap_or_default();
        assert_eq!(wishes, Wishes::default(), "{tool:?}");
    }
}

#[test]
fn each_request_is_judged_alone() {
    let mut bench = Bench::trading();
    for (key, value) in [("vm.swappiness", "60"), ("vm.stat_interval", "1"), ("vm.overcommit_memory", "0")] {
        bench.host.files.insert(lowlat_host::snapshot::sysctl_path(key), Reading::Known(value.into()));
    }
    let text = "[sysctl]\nvm.swappiness=10\nvm.stat_interval=1\nvm.overcommit_memory=1\n";
    let wishes = read_on(&bench.host, TuningTool::Tuned, text).unwrap();
    let import = judge(TuningTool::Tuned, wishes, &bench.context());
    let [swappiness, interval, overcommit] = import.requests.as_slice() else { panic!("{import:?}") };
    assert!(
        matches!(&swappiness.effect, Effect::Agrees { settings } if settings == &["sysctl.vm.swappiness"])
    );
    assert!(!swappiness.is_present && swappiness.present == Reading::Known("60".into()));
    assert!(
        matches!(&interval.effect, Effect::Differs { settings } if settings[0].id == "sysctl.vm.stat_interval")
    );
    assert!(interval.is_present);
    assert_eq!(overcommit.effect, Effect::Unjudged);
    assert_eq!(import.faults_then + 1, import.faults_now);
    assert_eq!(import.harmful().count(), 1);
}

/// The ids of the settings for which one boot parameter is wrong; empty if all agree.
fn differing(bench: &Bench, word: &str) -> Vec<String> {
    let text = format!("[bootloader]\ncmdline_x={word}\n");
    let wishes = read_on(&bench.host, TuningTool::Tuned, &text).unwrap();
    let import = judge(TuningTool::Tuned, wishes, &bench.context());
    match &import.requests[0].effect {
        Effect::Differs { settings } => settings.iter().map(|wrong| wrong.id.clone()).collect(),
        Effect::Agrees { settings } => {
            assert!(!settings.is_empty(), "{word}");
            Vec::new()
        }
        Effect::Unjudged => panic!("{word} is not judged"),
    }
}

#[test]
fn a_parameter_that_the_kernel_would_ignore_does_not_agree() {
    let mut bench = Bench::trading().line("quiet");
    bench.host.topology.isolated = Reading::Known(CpuSet::default());
    bench.host.topology.nohz_full = Reading::Known(CpuSet::default());
    let wanted = "isolcpus=managed_irq,domain,1-7,9-15";
    assert!(differing(&bench, wanted).is_empty(), "it waits for a reboot");
    assert!(differing(&bench, "nohz_full=1-7,9-15").is_empty(), "it waits for a reboot");
    for word in ["isolcpus=abc", "isolcpus=2-99", "isolcpus=domain,managed_irq,1-", "isolcpus=1-7,9-15"] {
        assert_eq!(differing(&bench, word), ["boot.isolcpus"], "{word}");
    }
    // The kernel already started with it, and does not isolate.
    let started = bench.line(wanted);
    assert_eq!(differing(&started, wanted), ["boot.isolcpus"]);
    let without = Bench::trading().line("quiet").config(&["SMP"]);
    assert_eq!(differing(&without, "nohz_full=1-7,9-15"), ["boot.nohz_full"]);
    let old = Bench::trading().line("quiet").kernel(5, 4);
    assert_eq!(differing(&old, wanted), ["boot.isolcpus"]);
}

#[test]
fn a_value_that_cannot_be_parsed_is_told_apart_from_a_part_without_counterpart() {
    let bench = Bench::trading().sysctl("vm.stat_interval", "1");
    let text = "[sysctl]\nvm.stat_interval=abc\nnet.core.default_qdisc=fq\n[disk]\napm=128\n";
    let wishes = read_on(&bench.host, TuningTool::Tuned, text).unwrap();
    assert_eq!(wishes.why_empty(), None);
    let import = judge(TuningTool::Tuned, wishes, &bench.context());
    let invalid: Vec<&str> = import.invalid().map(|part| part.place.as_str()).collect();
    assert_eq!(invalid, ["[sysctl] vm.stat_interval"]);
    assert_eq!(import.unread.len(), 3);
}

#[test]
fn text_of_another_format_is_an_error_or_empty() {
    let host = HostSnapshot::default();
    let read = |tool: TuningTool, text: &str| read_on(&host, tool, text);
    for (text, piece) in [
        ("[sysctl\nvm.swappiness=1\n", "line 1 is not a section header"),
        ("{\"a\": 1}\n", "line 1 is not in a section"),
        ("a=1\n", "line 1 is not in a section"),
        ("[sysctl]\nvm.swapp", "line 2 is not NAME=VALUE"),
    ] {
        let error = read(TuningTool::Tuned, text).unwrap_err();
        assert!(error.contains(piece), "{text}: {error}");
    }
    let files = Files::default().with(FILE, "[main]\ninclude=x\n").with("/p/x/tuned.conf", "x");
    let included = TuningTool::Tuned.read(FILE, &files, &host).unwrap_err();
    assert!(included.starts_with("in /p/x/tuned.conf, line 1"), "{included}");
    for tool in [TuningTool::Lltune, TuningTool::RtConf] {
        for text in ["[1, 2]", "text", ""] {
            assert!(read(tool, text).is_err(), "{text:?}");
        }
        for text in ["{\"a\": 1}", "network:\n  version: 2\n  ethernets: {}\n", "kernel:\n  cmd"] {
            assert!(read(tool, text).unwrap().why_empty().is_some(), "{text}");
        }
    }
    // A profile is valid even if no part of it can be judged.
    assert!(read(TuningTool::Tuned, "[disk]\n[cpu]\n").unwrap().why_empty().is_none());
    assert!(read(TuningTool::Tuned, "[main]\nsummary=x\n").unwrap().why_empty().is_some());
    assert!(read(TuningTool::Tuned, "[sysctl] # comment\nvm.swappiness=1\n").unwrap().why_empty().is_none());
}
