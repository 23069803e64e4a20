//! Verifications of captured hosts: an applied plan is held, and each change that was undone is reported.

use crate::common;
use crate::plan::in_memory;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Reading, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::{
    Plan,
    verify::{Evidence, Input, Outcome, Row, Standing, TickCount, TickLoad, TickProof, Verification},
};
use lowlat_settings::{
    Catalogue, Context,
    change::{Change, Target},
};
use lowlat_tune_report::{VerificationTextOptions, verification_lines, verification_text};

/// A captured host with a plan.
struct PlannedHost {
    name: String,
    host: HostSnapshot,
    plan: Plan,
}

fn desk(name: &str, profile: Profile, takes_all: bool, catalogue: Catalogue) -> PlannedHost {
    let path = common::capture(name);
    let host = snapshot::read(&Root::open(&path).unwrap_or_else(|error| panic!("{error}")), CATALOGUE);
    let accepted = CATALOGUE.settings().filter(|_| takes_all).map(|setting| setting.id.to_owned());
    let role = Role { profile, accepted_risks: accepted.collect(), ..Role::default() };
    let allocation = Allocation::choose(&host, &role);
    let plan =
        Plan::of(&Context { host: &host, role: &role, allocation: &allocation, profile, catalogue }, "0.0.0");
    PlannedHost { name: format!("{name}, {profile}, all risks accepted: {takes_all}"), host, plan }
}

fn desks() -> Vec<PlannedHost> {
    let mut desks = Vec::new();
    for (name, _) in common::fixtures() {
        for profile in Profile::ALL {
            desks.extend([false, true].map(|takes_all| desk(&name, profile, takes_all, CATALOGUE)));
        }
    }
    assert!(desks.len() >= 16, "the captured hosts of fixtures/hosts");
    desks
}

/// Evidence that is read beside the snapshot of a host to which these changes were applied.
fn evidence<'a>(host: &HostSnapshot, changes: impl IntoIterator<Item = &'a Change>) -> Evidence {
    let mut evidence = Evidence::default();
    for change in changes {
        match &change.target {
            Target::OwnedFile { path } => {
                evidence.files.insert(path.clone(), Reading::Known(change.after.clone()));
            }
            Target::FileKey { path, .. } if host.files.contains_key(path) => {
                evidence.files.insert(path.clone(), host.file(path));
            }
            _ => {}
        }
    }
    evidence
}

fn verify(plan: &Plan, host: &HostSnapshot, evidence: &Evidence, applied_boot_id: &str) -> Verification {
    verify_with(plan, host, evidence, applied_boot_id, None)
}

fn verify_with(
    plan: &Plan,
    host: &HostSnapshot,
    evidence: &Evidence,
    applied_boot_id: &str,
    ticks: Option<&TickProof>,
) -> Verification {
    Verification::of(&Input {
        plan,
        host,
        evidence,
        applied_boot_id: Some(applied_boot_id),
        applied_unix_ms: Some(1_795_284_131_000),
        verified_unix_ms: 1_795_287_731_000,
        ticks,
        lowlat_version: "0.0.0",
        catalogue: CATALOGUE,
    })
}

/// The host after the apply of all changes but `without`, and a reboot.
fn carried_out(desk: &PlannedHost, without: Option<usize>) -> (HostSnapshot, Evidence) {
    let mut host = desk.host.clone();
    let mut plan = desk.plan.clone();
    if let Some(at) = without {
        plan.changes.remove(at);
    }
    in_memory::apply(&plan, &mut host);
    // Interrupts that were asked to move have fired by now.
    for irq in &mut host.interrupts.irqs {
        if irq.affinity.known().is_some_and(|cpus| cpus.is_subset(&plan.housekeeping)) {
            irq.effective_affinity = irq.affinity.clone();
        }
    }
    let evidence = evidence(&host, &plan.changes);
    (host, evidence)
}

fn not_held(verification: &Verification) -> impl Iterator<Item = &Row> {
    verification.rows.iter().filter(|row| row.standing != Standing::Held)
}

/// The kernel takes 0 as 1, so the guide's own value is never in force, and the verification says so.
fn is_clamped(row: &Row) -> bool {
    row.settings == ["boot.processor.max_cstate"] && row.standing == Standing::Ineffective
}

#[test]
fn a_plan_carried_out_is_held_in_every_row() {
    for desk in desks() {
        let (host, evidence) = carried_out(&desk, None);
        let verification = verify(&desk.plan, &host, &evidence, "an earlier boot");
        let wrong: Vec<&Row> = not_held(&verification).filter(|row| !is_clamped(row)).collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", desk.name);
        assert!(verification.counts.held as usize >= desk.plan.changes.len().min(1), "{}", desk.name);
        let json = serde_json::to_string(&verification).unwrap();
        assert_eq!(serde_json::from_str::<Verification>(&json).unwrap(), verification, "{}", desk.name);
    }
}

#[test]
fn each_change_undone_is_told_and_no_other() {
    for desk in desks() {
        for (at, change) in desk.plan.changes.iter().enumerate() {
            if is_set_twice(change, &desk.plan) {
                continue;
            }
            let (host, evidence) = carried_out(&desk, Some(at));
            let verification = verify(&desk.plan, &host, &evidence, "an earlier boot");
            let faults: Vec<&Row> = not_held(&verification).filter(|row| !is_clamped(row)).collect();
            let name = format!("{}: {:?}", desk.name, change.target);
            assert!(faults.iter().any(|row| row.change == Some(at)), "{name} is not told");
            for row in faults {
                let is_own = row.change == Some(at);
                let is_headline = row.change.is_none()
                    && matches!(change.target, Target::CommandLine { .. } | Target::IrqAffinity { .. });
                assert!(
                    is_own || is_headline || is_coupled(change, &desk.plan, row),
                    "{name} also gave {row:#?}"
                );
                assert!(row.standing.is_fault(), "{name}: {row:#?}");
            }
            assert_eq!(verification.outcome(), Outcome::NotHeld, "{name}");
        }
    }
}

/// The boot parameter and the file set the same value: if one of them is undone, the other still sets it.
fn is_set_twice(change: &Change, plan: &Plan) -> bool {
    let is_file =
        matches!(&change.target, Target::File { path } if path.ends_with("/transparent_hugepage/enabled"));
    let is_token = |other: &Change| {
        matches!(&other.target, Target::CommandLine { tokens }
            if tokens.iter().any(|token| token.name == "transparent_hugepage"))
    };
    is_file && plan.changes.iter().any(is_token)
}

/// The kernel takes the larger of two values for reverse path filtering, so one of them can override others.
fn is_coupled(undone: &Change, plan: &Plan, row: &Row) -> bool {
    let is_for_all = matches!(&undone.target, Target::Sysctl { key } if key == "net.ipv4.conf.all.rp_filter");
    let other = row.change.and_then(|at| plan.changes.get(at)).map(|change| &change.target);
    let is_interface = matches!(other, Some(Target::Sysctl { key }) if key.ends_with(".rp_filter"));
    is_for_all && is_interface && row.standing == Standing::Ineffective
}

/// Each parameter of the command line is removed alone: its row is reported, with the headline about it.
#[test]
fn each_parameter_undone_is_told_and_no_other() {
    for desk in desks() {
        let at =
            desk.plan.changes.iter().position(|change| matches!(change.target, Target::CommandLine { .. }));
        let Some(at) = at else { continue };
        let Target::CommandLine { tokens } = &desk.plan.changes[at].target else { unreachable!() };
        for token in tokens.iter().filter(|token| token.value.is_some() && token.before.is_none()) {
            let (mut host, evidence) = carried_out(&desk, None);
            let line = host.kernel.tokens();
            let kept: Vec<&str> = line
                .raw()
                .split_whitespace()
                .filter(|word| word.split('=').next() != Some(token.name.as_str()))
                .collect();
            host.kernel.command_line =
                Reading::Known(lowlat_host::cmdline::CommandLine::parse(&kept.join(" ")));
            let verification = verify(&desk.plan, &host, &evidence, "an earlier boot");
            let told: Vec<&str> = not_held(&verification)
                .filter(|row| !is_clamped(row))
                .filter(|row| row.change.is_some())
                .map(|row| row.settings[0].as_str())
                .collect();
            assert_eq!(told, [token.setting.as_str()], "{}: {token:?}", desk.name);
        }
    }
}

/// The host in the boot of the apply: run-time values are set, parameters wait.
fn before_the_reboot(desk: &PlannedHost) -> (HostSnapshot, Evidence) {
    let line =
        desk.plan.changes.iter().position(|change| matches!(change.target, Target::CommandLine { .. }));
    let (mut host, evidence) = carried_out(desk, line);
    host.kernel.boot_id = Reading::Known("the boot of the apply".into());
    (host, evidence)
}

/// Host and evidence of a desk some weeks after the apply.
fn some_weeks_later(desk: &PlannedHost) -> (HostSnapshot, Evidence) {
    use lowlat_host::snapshot::{Assignment, Service};
    use lowlat_plan::verify::{BootSource, TunedOption};
    let (mut host, mut evidence) = carried_out(desk, None);
    host.kernel.sysctl_files.push(Assignment {
        path: "/etc/sysctl.d/zz-database.conf".into(),
        line: 14,
        key: "kernel.numa_balancing".into(),
        value: "1".into(),
    });
    for (key, value) in [("kernel.numa_balancing", "1"), ("vm.dirty_ratio", "40"), ("vm.stat_interval", "1")]
    {
        assert!(
            desk.plan
                .changes
                .iter()
                .any(|c| matches!(&c.target, Target::Sysctl { key: planned } if planned == key)),
            "{key} is planned"
        );
        host.files.insert(lowlat_host::snapshot::sysctl_path(key), Reading::Known(value.into()));
    }
    evidence.tuned = vec![TunedOption {
        path: "/usr/lib/tuned/throughput-performance/tuned.conf".into(),
        line: 41,
        plugin: "sysctl".into(),
        devices: String::new(),
        key: "vm.dirty_ratio".into(),
        value: "40".into(),
    }];
    let active = Service { active: Reading::Known("active".into()), ..Service::default() };
    host.services.units.insert("irqbalance.service".into(), active);
    host.services.irqbalance.banned_cpus = Reading::Absent;
    host.topology.isolated = Reading::Known(lowlat_host::CpuSet::new());
    host.topology.nohz_full = Reading::Known(lowlat_host::CpuSet::new());
    let moved = host.interrupts.irqs.iter_mut().filter(|irq| !irq.actions.is_empty()).nth(4);
    if let Some(irq) = moved {
        irq.affinity = Reading::Known(lowlat_host::CpuSet::of(5));
        irq.effective_affinity = irq.affinity.clone();
    }
    let line = host.kernel.tokens().raw().replace("skew_tick=1 ", "");
    let line = line.replace("rcu_nocbs=1-7,9-15", "rcu_nocbs=2-7");
    host.kernel.command_line = Reading::Known(lowlat_host::cmdline::CommandLine::parse(&line));
    evidence.boot = vec![BootSource {
        path: "/etc/default/grub".into(),
        line: 6,
        variable: "GRUB_CMDLINE_LINUX".into(),
        parameters: "rcu_nocbs=2-7".into(),
    }];
    (host, evidence)
}

/// Ticks of the isolated CPUs in one second: two of the CPUs tick. Adds RCU's threads as the kernel creates them.
fn ticks_of(host: &mut HostSnapshot, plan: &Plan) -> TickProof {
    let thread = host.tasks.kernel_threads.first().expect("a kernel thread").clone();
    for cpu in plan.isolated.iter() {
        let mut offload = thread.clone();
        offload.comm = format!("rcuop/{cpu}");
        offload.cpus_allowed = Reading::Known(plan.housekeeping.clone());
        host.tasks.kernel_threads.push(offload);
    }
    let count = |cpu| TickCount {
        cpu,
        ticks: Reading::Known(if matches!(cpu, 5 | 11) { 251 } else { u64::from(cpu % 3) }),
        rcu_softirqs: Reading::Known(0),
        load: if cpu == 11 { TickLoad::BusyTask } else { TickLoad::Spinner },
    };
    TickProof {
        window_ns: 1_000_123_456,
        hz: Reading::Known(250),
        source: "LOC".into(),
        cpus: plan.isolated.iter().map(count).collect(),
        housekeeping_ticks_max: Reading::Known(263),
        doubts: Vec::new(),
    }
}

#[test]
fn verifications_read_as_they_did() {
    type Fate = fn(&PlannedHost) -> (HostSnapshot, Evidence);
    let fates: [(&str, &str, Profile, Fate, &str); 6] = [
        ("held", "epyc-7f32-stock", Profile::Trading, |desk| carried_out(desk, None), "an earlier boot"),
        ("ticks", "epyc-7f32-stock", Profile::Trading, |desk| carried_out(desk, None), "an earlier boot"),
        ("pending", "epyc-7f32-stock", Profile::Trading, before_the_reboot, "the boot of the apply"),
        ("later", "epyc-7f32-stock", Profile::Trading, some_weeks_later, "an earlier boot"),
        ("guide", "epyc-7f32-stock", Profile::Guide57037, |desk| carried_out(desk, None), "an earlier boot"),
        (
            "untouched",
            "epyc-7f32-2x8",
            Profile::Trading,
            |desk| (desk.host.clone(), Evidence::default()),
            "an earlier boot",
        ),
    ];
    for (fate, name, profile, after, applied) in fates {
        let desk = desk(name, profile, false, common::sample());
        let (mut host, evidence) = after(&desk);
        if fate != "pending" {
            host.kernel.boot_id = Reading::Known("this boot".into());
        }
        let proof = (fate == "ticks").then(|| ticks_of(&mut host, &desk.plan));
        let verification = verify_with(&desk.plan, &host, &evidence, applied, proof.as_ref());
        let options =
            VerificationTextOptions { show_all: false, width: 80, applied: "2026-11-21 18:02:11 UTC" };
        // The plan's name depends on its whole text, so a text of the same length replaces it.
        let named = |text: String| text.replace(&verification.plan_id, "0123456789abcdef");
        let text = named(verification_text(&verification, &options));
        let plain = anstream::adapter::strip_str(&text).to_string();
        for line in plain.lines() {
            assert!(line.chars().count() <= 80 && line == line.trim_end(), "{name}: \"{line}\"");
        }
        let lines = verification_lines(&verification);
        insta::assert_snapshot!(format!("verify@{fate}"), format!("{plain}\n--quiet:\n{lines}"));
    }
}

#[test]
fn the_command_answers_by_exit_code_and_needs_a_plan() {
    let fixture = |name: &str| {
        let path = common::capture(name);
        path.display().to_string()
    };
    let root = fixture("epyc-7f32-stock");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("plan.json").display().to_string();
    let planned = common::lowlat(&["tune", "plan", "--root", &root, "--out", &file]);
    assert_eq!(planned.status.code(), Some(1), "{}", common::text(&planned.stderr));

    let output = common::lowlat(&["tune", "verify", "--root", &root]);
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("--plan FILE"), "{}", common::text(&output.stderr));

    let output = common::lowlat(&["tune", "verify", "--root", &root, "--plan", &file, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", common::text(&output.stderr));
    let verification: Verification = serde_json::from_slice(&output.stdout).expect("a verification");
    assert_eq!(verification.outcome(), Outcome::NotHeld);
    assert!(verification.ticks.is_none());
    assert!(verification.warnings.iter().any(|warning| warning.contains("No ticks were counted")));

    let output = common::lowlat(&["tune", "verify", "--root", &root, "--plan", &file, "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let lines = common::text(&output.stdout);
    assert_eq!(lines.lines().count(), verification.counts.not_held() as usize, "{lines}");

    for junk in ["", "{}", "[1]", "{\"document\": \"lowlat-plan\"}"] {
        std::fs::write(dir.path().join("junk.json"), junk).expect("a file");
        let path = dir.path().join("junk.json").display().to_string();
        let output = common::lowlat(&["tune", "verify", "--root", &root, "--plan", &path]);
        assert_eq!(output.status.code(), Some(2), "{junk}");
        assert!(
            common::text(&output.stderr).contains("is not a plan of lowlat"),
            "{}",
            common::text(&output.stderr)
        );
    }
    let output = common::lowlat(&["tune", "verify", "--count-ticks", "1ms"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("too short"), "{}", common::text(&output.stderr));
}

/// A tree with a plan in force: what `apply` leaves, before the reboot and after it.
#[test]
fn a_plan_in_force_is_found_below_the_root_and_waits_for_its_reboot() {
    use lowlat_tune_run::{InForce, StateDir};
    let dir = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let place = dir.path().join(path);
        std::fs::create_dir_all(place.parent().expect("above")).expect("directories");
        std::fs::write(place, text).expect("a file");
    };
    write("proc/cmdline", "ro quiet\n");
    write("proc/sys/vm/swappiness", "10\n");
    write("proc/sys/kernel/random/boot_id", "boot-one\n");
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/cpu/nohz_full", "\n");
    write("sys/devices/system/cpu/isolated", "\n");
    let mut plan = desk("epyc-7f32-stock", Profile::Trading, false, CATALOGUE).plan;
    plan.changes.retain(|change| matches!(change.target, Target::CommandLine { .. }));
    let host = snapshot::read(&Root::open(dir.path()).expect("the tree"), CATALOGUE);
    plan.host = lowlat_plan::HostMark::of(&host);
    let root = dir.path().display().to_string();
    let run = || common::lowlat(&["tune", "verify", "--root", &root]);

    let output = run();
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("no plan is in force"), "{}", common::text(&output.stderr));

    let in_force = InForce {
        plan_id: plan.id(),
        applied_unix_ms: 1_795_284_131_000,
        applied_boot_id: "boot-one".into(),
        is_complete: false,
        confirm_within_s: Some(600),
        earlier: None,
        refused: Vec::new(),
    };
    StateDir::below(dir.path()).put_in_force(&in_force, &plan).expect("written");
    let output = run();
    let text = common::text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}{}", common::text(&output.stderr));
    assert!(text.contains("2026-11-21") && text.contains("in this boot"), "{text}");
    assert!(text.contains("not applied completely") && text.contains("lowlat tune confirm"), "{text}");

    write("proc/sys/kernel/random/boot_id", "boot-two\n");
    let output = run();
    assert_eq!(output.status.code(), Some(1), "{}", common::text(&output.stdout));
    assert!(common::text(&output.stdout).contains("lost"));
}
