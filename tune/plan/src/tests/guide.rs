//! Plans of profile `guide-57037` beyond the command line: user processes, files with every key, the packet filter,
//! second threads, and the processors that the guide is for.

use super::*;
use lowlat_host::snapshot::ProcessCpus;
use lowlat_settings::change::Moment;
use std::collections::BTreeMap;

#[test]
fn the_packet_filter_is_kept_out_of_the_next_boot_and_never_flushed() {
    let id = "service.netfilter";
    let bench = || {
        Bench::guide().unit("dbus.service", "active").with(|bench| {
            bench.host.kernel.modules = Reading::Known(["ip_tables".to_owned()].into());
        })
    };
    assert_eq!(left(&plan(&bench()), id).0, WhyLeftOut::NotAccepted(Risk::Security));
    let accepted = plan(&accepting(bench(), &[id]));
    let [change] = of(&accepted, id).collect::<Vec<_>>()[..] else { panic!("one change") };
    assert_eq!(change.moment, Moment::AtBoot);
    assert!(change.after.contains("\ninstall ip_tables /bin/false\n"), "{}", change.after);
    let path = change.target.kind().facts().name;
    let waits = plan(&accepting(bench().knob(&path, &change.after), &[id]));
    assert!(of(&waits, id).next().is_none() && left(&waits, id).1.contains("until the next boot"));
}

#[test]
fn user_processes_move_now_and_stay_at_each_boot() {
    let id = "boot.tuned.non_isolcpus";
    let bench = |cpus: &str| {
        Bench::guide()
            .line("quiet")
            .with(|bench| bench.host.tasks.first_process_cpus = Reading::Known(list(cpus)))
    };
    let moved = plan(&bench("0-15"));
    let found: Vec<_> = of(&moved, id).map(|change| (&change.target, change.after.as_str())).collect();
    assert!(found.contains(&(&Target::UserProcesses, "0,8")), "{found:?}");
    let file = "# Written by lowlat; changes are lost when it applies a plan.\n[Manager]\nCPUAffinity=\nCPUAffinity=0,8\n";
    assert!(found.iter().any(|(_, after)| *after == file), "{found:?}");
    assert!(moved.foreign_changes(&bench("0-15").host, CATALOGUE).is_empty());
    assert!(of(&plan(&bench("8")), id).next().is_none(), "already on housekeeping CPUs");
}

/// Configuration that gives isolated CPUs to all processes is removed or overridden, in both profiles.
#[test]
fn what_systemd_gives_to_processes_is_taken_off_isolated_cpus() {
    let id = "readiness.affinity";
    let given = |unit: &str, key: &str| ProcessCpus {
        unit: unit.to_owned(),
        key: key.to_owned(),
        cpus: Reading::Known(list("5-6")),
        path: "/etc/systemd/x.conf".to_owned(),
        line: 2,
    };
    let bench = |line: &str, found: Vec<ProcessCpus>| {
        Bench::trading().line(line).with(|bench| bench.host.services.process_cpus = found)
    };
    let removed = plan(&bench("ro systemd.cpu_affinity=5,6", Vec::new()));
    let line = &of(&removed, id).next().unwrap().after;
    assert!(!line.contains("systemd.cpu_affinity") && line.starts_with("ro "), "{line}");
    let kept = plan(&bench("ro systemd.cpu_affinity=0,8", Vec::new()));
    let line = &of(&kept, "boot.isolcpus").next().unwrap().after;
    assert!(line.contains("systemd.cpu_affinity=0,8"), "{line}");
    let overridden = plan(&bench("ro", vec![given("", "CPUAffinity")]));
    let file = of(&overridden, id).next().unwrap();
    assert!(file.after.ends_with("[Manager]\nCPUAffinity=\nCPUAffinity=0,8\n"), "{}", file.after);
    let slice = plan(&bench("ro", vec![given("system.slice", "AllowedCPUs")]));
    let (why, text) = left(&slice, id);
    assert_eq!(why, WhyLeftOut::YourChoice);
    assert!(
        text.contains("/etc/systemd/x.conf:2") && text.contains("set-property system.slice AllowedCPUs=0,8"),
        "{text}"
    );
    let guide = Bench::guide()
        .line("quiet systemd.cpu_affinity=5,6")
        .with(|bench| bench.host.tasks.first_process_cpus = Reading::Known(list("5-6")));
    let guide = plan(&guide);
    let line =
        &of(&guide, "boot.tuned.non_isolcpus").find(|change| change.after.contains("quiet")).unwrap().after;
    assert!(!line.contains("systemd.cpu_affinity"), "{line}");
}

#[test]
fn the_guides_files_have_every_key_and_those_of_trading_what_it_changes() {
    let bench = |profile| {
        let mut bench = Bench::guide().sysctl("vm.swappiness", "60").sysctl("vm.dirty_ratio", "10");
        bench.host.services.tuned.profile = Reading::Known("virtual-guest".into());
        bench.profile = profile;
        bench.role.profile = profile;
        bench
            .unit("tuned.service", "active")
            .sysctl("vm.zone_reclaim_mode", "0")
            .sysctl("kernel.watchdog", "0")
    };
    let files = |plan: &Plan| {
        let owned = plan.changes.iter().filter(|change| matches!(change.target, Target::OwnedFile { .. }));
        owned
            .map(|change| (change.target.kind().facts().name, change.after.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let guide = plan(&bench(Profile::Guide57037));
    let of_guide = files(&guide);
    let sysctls = &of_guide["/etc/sysctl.d/99-zz-lowlat.conf"];
    for line in ["vm.swappiness = 0\n", "vm.dirty_ratio = 10\n", "vm.zone_reclaim_mode = 0\n"] {
        assert!(sysctls.contains(line), "{line} is not in {sysctls}");
        let tuned = &of_guide["/etc/tuned/HPELowLatency/tuned.conf"];
        assert!(tuned.contains(&line.replace(" = ", "=")) && !tuned.contains("include="), "{tuned}");
    }
    assert!(!sysctls.contains("kernel.watchdog"), "its risk is not accepted: {sysctls}");
    assert!(guide.foreign_changes(&bench(Profile::Guide57037).host, CATALOGUE).is_empty());
    let trading = files(&plan(&bench(Profile::Trading)));
    assert!(!trading["/etc/sysctl.d/99-zz-lowlat.conf"].contains("vm.dirty_ratio"), "{trading:?}");
    assert!(trading["/etc/tuned/lowlat/tuned.conf"].contains("include=virtual-guest"), "{trading:?}");
}

#[test]
fn a_file_with_every_key_is_not_planned_again() {
    let path = "/etc/sysctl.d/99-zz-lowlat.conf";
    let bench = || Bench::guide().sysctl("vm.swappiness", "0").sysctl("vm.dirty_ratio", "10");
    let has_file =
        |bench: &Bench| plan(bench).changes.iter().any(|change| change.target.kind().facts().name == path);
    assert!(has_file(&bench()), "every value is right, and nothing keeps it so");
    let half = bench().sysctl_file(path, "vm.swappiness", "0");
    assert!(has_file(&half));
    assert!(!has_file(&half.sysctl_file(path, "vm.dirty_ratio", "10")));
}

#[test]
fn second_threads_are_switched_off_where_the_role_names_them() {
    let id = "firmware.smt";
    let bench = || {
        Bench::guide().with(|bench| {
            let core = |id: u32| Group { id: i64::from(id), cpus: [id, id + 8].into_iter().collect() };
            bench.host.topology.cores = (0..8).map(core).collect();
            bench.host.cpu.smt_control = Reading::Known("on".into());
        })
    };
    assert_eq!(left(&plan(&bench()), id).0, WhyLeftOut::Firmware);
    let accepted = plan(&accepting(bench(), &[id]));
    let words = accepted.changes.iter().flat_map(|change| change.target.boot_tokens());
    assert!(words.map(|token| token.name.as_str()).any(|name| name == "nosmt"), "{:?}", accepted.changes);
}

#[test]
fn processors_that_the_guide_is_not_for_are_warned_of() {
    let warns = |profile, model: &str| {
        let mut bench = Bench::guide().line("quiet");
        bench.host.cpu.model_name = Reading::Known(model.to_owned());
        bench.profile = profile;
        has_warning(&plan(&bench), "may not suit other processors")
    };
    for sku in ["7F32 8-Core", "7F52 16-Core", "7F72 24-Core"] {
        assert!(!warns(Profile::Guide57037, &format!("AMD EPYC {sku} Processor")), "{sku}");
    }
    assert!(warns(Profile::Guide57037, "AMD EPYC 7763 64-Core Processor"));
    assert!(warns(Profile::Guide57037, "Intel(R) Xeon(R) Gold 6454S"));
    assert!(!warns(Profile::Trading, "AMD EPYC 7763 64-Core Processor"));
}
