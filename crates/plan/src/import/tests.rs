use super::*;
use lowlat_catalogue::testing::Bench;

fn read(tool: Tool, text: &str) -> Wishes {
    tool.read(&[text.to_owned()], &Bench::trading().host).unwrap()
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
    let base = "[main]\nsummary=base\n[sysctl]\nvm.swappiness=30\nvm.stat_interval = 5\n";
    let own = "[main]\ninclude=base other\n[sysctl]\nvm.swappiness=10 # no comment\n";
    let wishes = Tool::Tuned.read(&[base.into(), own.into()], &Bench::trading().host).unwrap();
    assert_eq!(tuned_includes(own), ["base", "other"]);
    // TuneD has no comments behind values, so this one does not fit the key.
    assert_eq!(values(&wishes), [("[sysctl] vm.stat_interval", "5")]);
    assert!(!left(&wishes, "[sysctl] vm.swappiness").is_empty());
}

#[test]
fn variables_of_tuned_are_replaced_and_functions_are_left_to_it() {
    let text = "[variables]\ncores=1-3\nsame=${cores}\n[bootloader]\ncmdline_a=+nohz_full=${same} rcu_nocbs=${cores} quiet\n\
                cmdline_b=skew_tick=${f:exec:x}\ncmdline_c=-tsc=reliable\ncmdline_d=x=${none}\n";
    let wishes = read(Tool::Tuned, text);
    assert_eq!(
        values(&wishes),
        [
            ("[bootloader] cmdline_a: nohz_full", "nohz_full=1-3"),
            ("[bootloader] cmdline_a: rcu_nocbs", "rcu_nocbs=1-3"),
            ("[bootloader] cmdline_a: quiet", "quiet"),
            ("[bootloader] cmdline_c: tsc", ""),
        ]
    );
    assert_eq!(left(&wishes, "[bootloader] cmdline_b"), "only TuneD computes ${f:exec:x}");
    assert_eq!(left(&wishes, "[bootloader] cmdline_d"), "the profile does not define ${none}");
    let endless = read(Tool::Tuned, "[variables]\na=${a}\n[sysctl]\nvm.swappiness=${a}\n");
    assert_eq!(left(&endless, "[sysctl] vm.swappiness"), "its variables have no end");
}

#[test]
fn operators_of_tuned_keep_a_better_present_value() {
    let mut bench = Bench::trading();
    let path = lowlat_host::snapshot::sysctl_path("net.core.busy_read");
    bench.host.files.insert(path, Reading::Known("70".into()));
    let of = |text: &str| {
        let wishes =
            Tool::Tuned.read(&[format!("[sysctl]\nnet.core.busy_read={text}\n")], &bench.host).unwrap();
        wishes.requests[0].value.clone()
    };
    assert_eq!((of(">50").as_str(), of(">90").as_str(), of("<50").as_str()), ("70", "90", "50"));
}

/// TuneD joins its keys: of some parameters the kernel uses the first.
#[test]
fn a_parameter_that_the_kernel_ignores_is_not_judged() {
    let text = "[bootloader]\ncmdline_a=+isolcpus=1-3 irqaffinity=0\ncmdline_b=+isolcpus=1-7 irqaffinity=8\n";
    let wishes = read(Tool::Tuned, text);
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
    let text = "[service]\nservice.irqbalance=stop,disable\nservice.x=restart\n[cpu]\nforce_latency=1\n[disk]\nreadahead=4096\n";
    let wishes = read(Tool::Tuned, text);
    assert_eq!(values(&wishes), [("[service] service.irqbalance", "inactive, disabled")]);
    assert!(left(&wishes, "[cpu] force_latency").contains("cpu_dma_latency"));
    assert_eq!(left(&wishes, "[disk] readahead"), "lowlat has no counterpart");
    assert!(!left(&wishes, "[service] service.x").is_empty());
}

#[test]
fn lltune_s_placeholders_are_no_values() {
    let text = "version: 1\nkernel:\n  cmdline:\n    nohz_full: 'TODO: match isolate_cores'\n    skew_tick: '1'\n    nowatchdog: ''\n\
                memory:\n  numa_balancing: false\n  ksm: false\n  swap_disable: true\n  hugepages: {size_kb: '2048', total: 64}\n\
                network:\n  sysctl: {busy_poll: 50, tcp_sack: false, file_max: 2097152}\n  defaults: {disable_gro: true}\n";
    let wishes = read(Tool::Lltune, text);
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
    let names: Vec<String> = wishes.requests.iter().map(|one| one.targets[0].kind().name()).collect();
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
    let wishes = Tool::RtConf.read(&[text.to_owned()], &bench.host).unwrap();
    let interrupts = wishes.requests.iter().find(|one| one.place == "irq_tuning[0]").unwrap();
    assert_eq!((interrupts.targets.len(), interrupts.value.as_str()), (2, "0-1"));
    let governor = wishes.requests.iter().find(|one| one.place == "cpu_governance[0]").unwrap();
    assert_eq!((governor.targets.len(), governor.value.as_str()), (2, "performance"));
    assert_eq!(left(&wishes, "irq_tuning[1]"), "no interrupt of this host matches");
    assert!(left(&wishes, "irq_tuning[2]").contains("invalid"));
    assert_eq!(values(&wishes)[0], ("kernel_cmdline.isolcpus", "isolcpus=2-3"));
}

#[test]
fn other_text_is_refused_or_empty() {
    assert!(Tool::Lltune.read(&["a: [".to_owned()], &HostSnapshot::default()).is_err());
    for tool in Tool::ALL {
        let wishes = tool.read(&[String::new()], &HostSnapshot::default()).unwrap_or_default();
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
    let wishes = Tool::Tuned.read(&[text.to_owned()], &bench.host).unwrap();
    let import = judge(Tool::Tuned, wishes, &bench.context());
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

/// What the judges say of one boot parameter: the ids of the settings that differ, none if it agrees.
fn differing(bench: &Bench, word: &str) -> Vec<String> {
    let text = format!("[bootloader]\ncmdline_x={word}\n");
    let wishes = Tool::Tuned.read(&[text], &bench.host).unwrap();
    let import = judge(Tool::Tuned, wishes, &bench.context());
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
    // The kernel has started with it already, and does not isolate.
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
    let text = "[sysctl]\nvm.stat_interval=abc\nnet.core.default_qdisc=fq\n[disk]\nreadahead=4096\n";
    let wishes = Tool::Tuned.read(&[text.to_owned()], &bench.host).unwrap();
    assert_eq!(wishes.why_empty(), None);
    let import = judge(Tool::Tuned, wishes, &bench.context());
    let invalid: Vec<&str> = import.invalid().map(|part| part.place.as_str()).collect();
    assert_eq!(invalid, ["[sysctl] vm.stat_interval"]);
    assert_eq!(import.unread.len(), 3);
}

#[test]
fn text_of_another_format_is_an_error_or_empty() {
    let host = HostSnapshot::default();
    let read = |tool: Tool, text: &str| tool.read(&[text.to_owned()], &host);
    for (text, piece) in [
        ("[sysctl\nvm.swappiness=1\n", "line 1 is not a section header"),
        ("{\"a\": 1}\n", "line 1 is not in a section"),
        ("a=1\n", "line 1 is not in a section"),
        ("[sysctl]\nvm.swapp", "line 2 is not NAME=VALUE"),
    ] {
        let error = read(Tool::Tuned, text).unwrap_err();
        assert!(error.contains(piece), "{text}: {error}");
    }
    let included = Tool::Tuned.read(&["x".to_owned(), "[main]\n".to_owned()], &host).unwrap_err();
    assert!(included.starts_with("in a file that it includes, line 1"), "{included}");
    for tool in [Tool::Lltune, Tool::RtConf] {
        for text in ["[1, 2]", "text", ""] {
            assert!(read(tool, text).is_err(), "{text:?}");
        }
        for text in ["{\"a\": 1}", "network:\n  version: 2\n  ethernets: {}\n", "kernel:\n  cmd"] {
            assert!(read(tool, text).unwrap().why_empty().is_some(), "{text}");
        }
    }
    assert!(read(Tool::Tuned, "[disk]\nreadahead=4096\n").unwrap().why_empty().is_some());
    assert!(read(Tool::Tuned, "[sysctl] # comment\nvm.swappiness=1\n").unwrap().why_empty().is_none());
}
