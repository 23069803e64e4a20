use super::*;
use lowlat_host::Profile;
use lowlat_host_run::testing::TestTree;
use lowlat_plan::HostMark;
use lowlat_settings::{
    Risk,
    change::{BootToken, Change, Moment},
};

fn plan(targets: Vec<Target>) -> Plan {
    let change = |target| Change {
        settings: vec!["test".into()],
        layer: "sysctl".into(),
        target,
        before: Reading::Absent,
        after: "1".into(),
        moment: Moment::NowAndAtBoot,
        reason: "test".into(),
        cost: String::new(),
        risk: Risk::None,
        sources: Vec::new(),
    };
    Plan {
        document: Plan::DOCUMENT.into(),
        schema_version: Plan::SCHEMA_VERSION,
        lowlat_version: "0".into(),
        profile: Profile::Trading,
        host: HostMark::default(),
        boot_id: Reading::Absent,
        housekeeping: lowlat_host::CpuSet::new(),
        isolated: lowlat_host::CpuSet::new(),
        changes: targets.into_iter().map(change).collect(),
        role: None,
        left_out: Vec::new(),
        warnings: Vec::new(),
        unsupported: None,
        hindrances: Vec::new(),
    }
}

fn tuned_options(tree: &TestTree) -> Vec<String> {
    let shown = |option: &TunedOption| {
        let file = option.path.rsplit('/').nth(1).unwrap_or_default().to_owned();
        format!("{file}:{} [{}] {}={}", option.line, option.plugin, option.key, option.value)
    };
    options(&tree.root()).iter().map(shown).collect()
}

#[test]
fn a_child_s_option_takes_the_place_of_its_parents() {
    let tree = TestTree::new()
        .file("/etc/tuned/active_profile", "desk\n")
        .file(
            "/etc/tuned/desk/tuned.conf",
            "# ours\n[main]\ninclude=base\n[variables]\ninclude=/etc/tuned/desk-variables.conf\n[sysctl]\n\
             vm.swappiness=5\n[more]\ntype=sysctl\nvm.stat_interval=${every}\n[off]\ntype=vm\nenabled=false\n\
             transparent_hugepages=always\n[cpu]\nreplace=1\nforce_latency=1\n",
        )
        .file("/etc/tuned/desk-variables.conf", "ten=10\nevery = ${ten}\n")
        .file("/usr/lib/tuned/profiles/base/tuned.conf", "[main]\ninclude=desk\n[sysctl]\nvm.swappiness = 10\nvm.dirty_ratio=\"40\"\n[cpu]\ngovernor=ondemand\n[sysfs]\n/sys/x=${f:cpulist:1}\n");
    assert_eq!(
        tuned_options(&tree),
        [
            "desk:7 [sysctl] vm.swappiness=5",
            "base:5 [sysctl] vm.dirty_ratio=40",
            "desk:17 [cpu] force_latency=1",
            "base:9 [sysfs] /sys/x=${f:cpulist:1}",
            "desk:10 [sysctl] vm.stat_interval=10",
        ]
    );
}

#[test]
fn a_profile_of_etc_precedes_the_shipped_one_and_loops_end() {
    let tree = TestTree::new()
        .file("/etc/tuned/active_profile", "a b\n")
        .file("/usr/lib/tuned/a/tuned.conf", "[sysctl]\nx=shipped\n")
        .file("/etc/tuned/profiles/a/tuned.conf", "[sysctl]\nx=own\n")
        .file("/etc/tuned/b/tuned.conf", "[main]\ninclude=b\n[variables]\nv=${v}${v}\n[sysctl]\ny=${v}\n");
    let shown = tuned_options(&tree);
    assert_eq!(shown[0], "a:2 [sysctl] x=own");
    assert!(shown[1].len() < 200_000);
    let outside = TestTree::new().file("/etc/tuned/active_profile", "../../etc\n");
    assert!(tuned_options(&outside).is_empty());
    assert!(tuned_options(&TestTree::new()).is_empty());
}

#[test]
fn boot_parameters_are_found_with_file_line_and_variable() {
    let tree = TestTree::new()
        .file(
            "/etc/default/grub",
            "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"nohz_full=1-3 dyndbg='x'\"\n#GRUB_CMDLINE_LINUX=no\n",
        )
        .file("/etc/default/grub.d/50-x.cfg", "GRUB_CMDLINE_LINUX_DEFAULT='quiet splash'\n")
        .file("/etc/kernel/cmdline", "root=/dev/vda ro\n")
        .file("/boot/loader/entries/a.conf", "title A\noptions root=/dev/vda nohz_full=1-3\n")
        .file(
            "/boot/grub2/grubenv",
            "# GRUB Environment Block\nkernelopts=root=x ro\ntuned_params=nohz=on\n####",
        )
        .file("/etc/tuned/bootcmdline", "TUNED_BOOT_CMDLINE=\"skew_tick=1\"\n")
        .file("/proc/sys/kernel/osrelease", "6.1\n")
        .file("/boot/config-6.1", "CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=\"nohz_full=1\"\n");
    let shown: Vec<String> = boot_sources::read(&tree.root())
        .iter()
        .map(|s| format!("{}:{} {} {}", s.path, s.line, s.variable, s.parameters))
        .collect();
    assert_eq!(
        shown,
        [
            "/boot/loader/entries/a.conf:2 options root=/dev/vda nohz_full=1-3",
            "/boot/grub2/grubenv:2 kernelopts root=x ro",
            "/boot/grub2/grubenv:3 tuned_params nohz=on",
            "/etc/kernel/cmdline:1  root=/dev/vda ro",
            "/etc/default/grub:2 GRUB_CMDLINE_LINUX nohz_full=1-3 dyndbg='x'",
            "/etc/default/grub.d/50-x.cfg:1 GRUB_CMDLINE_LINUX_DEFAULT quiet splash",
            "/etc/tuned/bootcmdline:1 TUNED_BOOT_CMDLINE skew_tick=1",
            "/boot/config-6.1:2 CONFIG_CMDLINE, which the kernel was built with nohz_full=1",
        ]
    );
}

#[test]
fn environment_files_follow_drop_ins_of_every_directory() {
    let own = "/etc/systemd/system/irqbalance.service.d/60-lowlat.conf";
    let tree = TestTree::new()
        .file(
            "/usr/lib/systemd/system/irqbalance.service",
            "[Service]\nEnvironmentFile=-/etc/default/irqbalance\n",
        )
        .file(
            "/usr/lib/systemd/system/irqbalance.service.d/60-lowlat.conf",
            "[Service]\nEnvironment=A=shadowed\n",
        )
        .file(own, "[Service]\nEnvironment=A=1 \"B=2 3\"\n")
        .file("/run/systemd/system/irqbalance.service.d/70-x.conf", "Environment=A=4\n")
        .file("/etc/default/irqbalance", "#A=0\nA=\"5\"\n");
    let evidence = read(&tree.root(), &plan(vec![Target::OwnedFile { path: own.into() }]));
    let shown: Vec<String> =
        evidence.environment.iter().map(|a| format!("{}:{} {}={}", a.path, a.line, a.key, a.value)).collect();
    assert_eq!(
        shown,
        [
            format!("{own}:2 A=1"),
            format!("{own}:2 B=2 3"),
            "/run/systemd/system/irqbalance.service.d/70-x.conf:1 A=4".into(),
            "/etc/default/irqbalance:2 A=5".into(),
        ]
    );
    assert!(evidence.files[own].text().contains("B=2 3"));
}

#[test]
fn the_environment_of_the_running_daemon_is_read_for_planned_variables_only() {
    let path = "/etc/systemd/system/irqbalance.service.d/60-lowlat.conf";
    let tree = TestTree::new()
        .file("/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", "321\n322\n")
        .file("/proc/321/environ", b"SECRET=x\0IRQBALANCE_BANNED_CPULIST=9-15\0PATH=/bin\0");
    let mut plan = plan(vec![Target::OwnedFile { path: path.into() }]);
    plan.changes[0].after = "[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST=1-7 OTHER=2\n".into();
    let evidence = read(&tree.root(), &plan);
    let shown: Vec<String> =
        evidence.running.iter().map(|v| format!("{} {} {}", v.unit, v.key, v.value)).collect();
    assert_eq!(
        shown,
        ["irqbalance.service IRQBALANCE_BANNED_CPULIST 9-15", "irqbalance.service OTHER absent"]
    );
    assert!(read(&TestTree::new().root(), &plan).running.is_empty(), "nothing runs");
}

#[test]
fn files_that_write_to_sysfs_are_read() {
    let tree = TestTree::new()
        .file(
            "/usr/lib/tmpfiles.d/a.conf",
            "d /run/x 0755 root root -\nw! /sys/kernel/mm/ksm/run - - - - 1\nw /etc/x - - - - 2\n",
        )
        .file("/etc/sysfs.d/b.conf", "kernel/mm/ksm/run = 0\nmode kernel/mm/ksm/run = 0644\n");
    let shown: Vec<String> = sysfs_files::read(&tree.root())
        .iter()
        .map(|a| format!("{}:{} {}={}", a.path, a.line, a.key, a.value))
        .collect();
    assert_eq!(
        shown,
        [
            "/usr/lib/tmpfiles.d/a.conf:2 /sys/kernel/mm/ksm/run=1",
            "/etc/sysfs.d/b.conf:1 /sys/kernel/mm/ksm/run=0"
        ]
    );
}

#[test]
fn planned_files_are_read_where_plans_may_point_and_masks_are_seen() {
    let token = |name: &str| BootToken {
        setting: "boot.test".into(),
        name: name.into(),
        value: Some("1".into()),
        before: None,
    };
    let masked = "/etc/sysctl.d/99-zz-lowlat.conf";
    let tree = TestTree::new()
        .link(masked, "/dev/null")
        .file("/etc/shadow", "secret")
        .file("/root/key", "secret")
        .file("/proc/sys/vm/swappiness", "60\n")
        .file("/sys/module/processor/parameters/max_cstate", "9\n");
    let evidence = read(
        &tree.root(),
        &plan(vec![
            Target::OwnedFile { path: masked.into() },
            Target::OwnedFile { path: "/root/key".into() },
            Target::File { path: "/sys/../etc/shadow".into() },
            Target::Sysctl { key: "vm.swappiness".into() },
            Target::CommandLine {
                tokens: vec![token("processor.max_cstate"), token("a.../etc/shadow"), token("nohz")],
            },
        ]),
    );
    assert_eq!(evidence.masked, [masked]);
    assert_eq!(evidence.files["/proc/sys/vm/swappiness"], Reading::Known("60".into()));
    assert_eq!(evidence.files["/sys/module/processor/parameters/max_cstate"], Reading::Known("9".into()));
    assert!(evidence.files.values().all(|reading| !reading.text().contains("secret")));
    assert_eq!(evidence.files.len(), 3, "{:?}", evidence.files.keys());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), text in "[\\[\\]=a-z${}\"' \n]{0,80}") {
        for content in [&bytes[..], text.as_bytes()] {
            let tree = TestTree::new()
                .file("/etc/tuned/active_profile", "p")
                .file("/etc/tuned/p/tuned.conf", content)
                .file("/etc/default/grub", content)
                .file("/boot/loader/entries/a.conf", content)
                .file("/etc/tmpfiles.d/a.conf", content)
                .file("/etc/sysfs.conf", content)
                .file("/etc/systemd/system/a.service.d/x.conf", content);
            let path = "/etc/systemd/system/a.service.d/x.conf".to_owned();
            let _ = read(&tree.root(), &plan(vec![Target::OwnedFile { path }]));
        }
    }
}
