use super::{
    ProofVerdict::{Gain, Harm, NoDifferenceShown, Trade, Unmeasured},
    *,
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{CpuSet, HostSnapshot, Role, RoleFile, Topology};

fn figures() -> Vec<ProofFigure> {
    let figure = |name: &str, unit| ProofFigure { name: name.into(), unit };
    vec![figure("time taken", ProofUnit::NsPerS), figure("longest", ProofUnit::Ns)]
}

fn proven(id: &str, pairs: Vec<OnOffPair>) -> ProvenSettings {
    ProvenSettings {
        settings: vec![id.into()],
        changes: Vec::new(),
        pairs,
        disturbed_pairs: 0,
        unmeasured: None,
        shifts: Vec::new(),
        verdict: ProofVerdict::default(),
    }
}

fn proof(settings: Vec<ProvenSettings>) -> PlanProof {
    let mut proof = PlanProof {
        plan_id: "9f86d081884c7d65".into(),
        profile: Profile::Trading,
        measured: "jitter of CPU 3".into(),
        figures: figures(),
        settings,
        ..PlanProof::default()
    };
    proof.judge();
    proof
}

/// Twelve pairs whose figures differ by these amounts, with noise that has no direction.
fn pairs(time: f64, longest: f64) -> Vec<OnOffPair> {
    let noise = |at: u32| f64::from(at * 7 % 12) - 5.5;
    (0..12)
        .map(|at| OnOffPair {
            on: vec![1_000.0, 50.0],
            off: vec![1_000.0 + time + noise(at), 50.0 + longest + noise(at + 5)],
            is_on_first: at % 2 == 0,
        })
        .collect()
}

#[test]
fn verdicts_follow_the_figures_that_differ() {
    let gone = ProvenSettings { unmeasured: Some("gone".into()), ..proven("e", pairs(100.0, 0.0)) };
    let all = vec![
        proven("gain", pairs(100.0, 0.0)),
        proven("harm", pairs(0.0, -60.0)),
        proven("trade", pairs(100.0, -60.0)),
        proven("none", pairs(0.0, 0.0)),
        gone,
        proven("no pair", Vec::new()),
    ];
    let verdicts: Vec<_> = proof(all).settings.iter().map(|proven| proven.verdict).collect();
    assert_eq!(verdicts, [Gain, Harm, Trade, NoDifferenceShown, Unmeasured, Unmeasured]);
}

#[test]
fn a_few_pairs_show_nothing_among_many_tests() {
    let few = |id: usize| proven(&id.to_string(), pairs(if id == 0 { 100.0 } else { 0.0 }, 0.0).split_off(5));
    assert_eq!(proof((0..20).map(few).collect()).with(Gain).count(), 0);
    assert_eq!(proof(vec![few(0)]).with(Gain).count(), 1);
}

#[test]
fn the_minimal_role_keeps_gains_and_what_protects() {
    let unmeasured = ProvenSettings {
        unmeasured: Some("it takes effect at the next boot".into()),
        ..proven("boot.nohz_full", Vec::new())
    };
    let proof = proof(vec![
        proven("sysctl.vm.stat_interval", pairs(100.0, 0.0)),
        proven("sysctl.vm.swappiness", pairs(0.0, 0.0)),
        proven("sysctl.kernel.timer_migration", pairs(0.0, 0.0)),
        proven("sysctl.kernel.watchdog_thresh", pairs(-100.0, 0.0)),
        unmeasured,
    ]);
    let role = Role {
        isolated: Some(CpuSet::of(3)),
        accepted_risks: vec!["boot.psi".into()],
        left_out: vec!["memory.ksm".into()],
        ..Role::default()
    };
    let text = minimal_role(&proof, &role, CATALOGUE);
    let ids: Vec<&str> = CATALOGUE.ids().collect();
    let host = HostSnapshot {
        topology: Topology { online: CpuSet::first(4), ..Topology::default() },
        ..HostSnapshot::default()
    };
    let read = RoleFile::parse("role.toml", &text).unwrap().resolve(&host, &ids).unwrap();
    assert_eq!(read.left_out.len(), 3);
    assert_eq!(Role { left_out: role.left_out.clone(), source: role.source, ..read }, role);
    insta::assert_snapshot!(text, @r#"
    # The minimal plan of a host, from `lowlat tune prove` of plan 9f86d081884c7d65 by jitter of CPU 3.
    # A setting that is kept or left out here was measured while all others were on.
    profile = "trading"
    isolated = "3"
    accept-risk = ["boot.psi"]

    # Kept, a gain was shown:
    #   sysctl.vm.stat_interval
    # Kept, protects when memory is short:
    #   sysctl.vm.swappiness
    # Kept, not measured (it takes effect at the next boot):
    #   boot.nohz_full
    leave-out = [
        "memory.ksm", # The role of the plan leaves it out
        "sysctl.kernel.timer_migration", # No difference shown
        "sysctl.kernel.watchdog_thresh", # Worse with the setting than without it
    ]
    "#);
}

fn plan(changes: &[(&str, &str)]) -> Plan {
    let changes: Vec<String> = changes
        .iter()
        .map(|(settings, target)| {
            format!(
                r#"{{"settings": {settings}, "layer": "x", "target": {target}, "before": "absent", "after": "1",
                    "moment": "now_and_at_boot", "reason": "", "cost": "", "risk": "none", "sources": []}}"#
            )
        })
        .collect();
    let text = format!(
        r#"{{"document": "lowlat-plan", "schema_version": 1, "lowlat_version": "", "profile": "trading",
            "host": {}, "boot_id": "absent", "housekeeping": "0", "isolated": "1", "changes": [{}],
            "left_out": [], "warnings": []}}"#,
        serde_json::to_string(&HostMark::default()).unwrap(),
        changes.join(",")
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn settings_that_share_a_change_are_one_group() {
    let sysctl = |key: &str| format!(r#"{{"kind": "sysctl", "key": "{key}"}}"#);
    let irq = |irq: u32| format!(r#"{{"kind": "irq_affinity", "irq": {irq}, "actions": []}}"#);
    let plan = plan(&[
        (r#"["boot.psi"]"#, r#"{"kind": "command_line", "tokens": []}"#),
        (r#"["a"]"#, &sysctl("vm.a")),
        (r#"["b"]"#, &sysctl("vm.b")),
        (r#"["a", "b"]"#, r#"{"kind": "owned_file", "path": "/etc/sysctl.d/x.conf"}"#),
        (r#"["c", "d"]"#, &irq(5)),
        (r#"["e"]"#, r#"{"kind": "huge_pages", "node": 0, "size_bytes": 4096}"#),
        (r#"["c"]"#, &irq(6)),
        (r#"["f"]"#, r#"{"kind": "nic_rings", "nic": "eth0", "field": "rx"}"#),
    ]);
    let groups: Vec<_> = switch_groups(&plan)
        .into_iter()
        .map(|group| (group.settings.join(" "), group.changes, group.fixed.is_some()))
        .collect();
    let expected = [
        ("boot.psi", vec![0], true),
        ("a", vec![1], false),
        ("b", vec![2], false),
        ("c d", vec![4, 6], false),
        ("e", vec![5], true),
        ("f", vec![7], true),
    ];
    assert_eq!(groups, expected.map(|(ids, changes, fixed)| (ids.to_owned(), changes, fixed)));
}

/// A proof of a plan with two parameters, one sysctl and eight hours.
fn boot_proof() -> (Plan, BootProof) {
    let token = |setting: &str, name: &str, value: &str| {
        format!(r#"{{"setting": "{setting}", "name": "{name}", "value": "{value}", "before": null}}"#)
    };
    let tokens =
        [token("a", "skew_tick", "1"), token("b", "nohz_full", "1-3"), token("b", "rcu_nocbs", "1-3")]
            .join(",");
    let plan = plan(&[
        (r#"["a", "b"]"#, &format!(r#"{{"kind": "command_line", "tokens": [{tokens}]}}"#)),
        (r#"["c"]"#, r#"{"kind": "sysctl", "key": "vm.c"}"#),
    ]);
    let new = PlanProof { figures: vec![figures()[0].clone()], ..PlanProof::default() };
    let boots = BootProof::of(&plan, new, std::time::Duration::from_secs(8 * 3600), 1_000).unwrap();
    (plan, boots)
}

#[test]
fn each_round_boots_without_each_setting_once() {
    let (plan, mut boots) = boot_proof();
    assert_eq!(boots.proof.settings[1].changes, ["absent -> nohz_full=1-3", "absent -> rcu_nocbs=1-3"]);
    assert!(boots.proof.settings[2].unmeasured.is_some());
    assert_eq!((boots.rounds_min(), boots.boots_min()), (7, 21));
    let mut orders = std::collections::BTreeSet::new();
    for round in 1..=10 {
        let mut order = Vec::new();
        for _ in 0..3 {
            let off = boots.next();
            order.push(off);
            let line: Vec<String> = boots.tokens_on(&plan, off).iter().filter_map(crate::spell).collect();
            let line = lowlat_host::cmdline::CommandLine::parse(&line.join(" "));
            assert!(boots.is_line_of(&plan, &line, off));
            assert!(
                [None, Some(0), Some(1)]
                    .iter()
                    .all(|other| *other == off || !boots.is_line_of(&plan, &line, *other))
            );
            boots.record(vec![if off == Some(1) { 90.0 } else { f64::from(round) / 7.0 }]);
        }
        orders.insert(order.clone());
        order.sort_unstable();
        assert_eq!(order, [None, Some(0), Some(1)]);
    }
    assert!(orders.len() > 2, "{orders:?}");
    assert_eq!((boots.proof.rounds, boots.proof.boots), (10, 30));
    boots.end("enough".into());
    boots.proof.judge();
    let verdicts: Vec<_> = boots.proof.settings.iter().map(|proven| proven.verdict).collect();
    assert_eq!(verdicts, [NoDifferenceShown, Gain, Unmeasured]);
    assert!(!boots.proof.is_interrupted);
}

#[test]
fn a_setting_whose_boots_fail_is_given_up_and_a_plan_whose_boots_fail_ends_the_proof() {
    let (_, mut boots) = boot_proof();
    while boots.next() != Some(0) {
        boots.record(vec![1.0]);
    }
    (0..3).for_each(|_| boots.fail("the command failed"));
    let why = boots.proof.settings[0].unmeasured.as_deref();
    assert_eq!(why, Some("boots without it cannot be measured: the command failed"));
    assert_eq!(boots.ended_by, None);
    while boots.next().is_some() {
        boots.record(vec![1.0]);
    }
    boots.fail("the command failed");
    boots.record(vec![1.0]);
    while boots.next().is_some() {
        boots.record(vec![1.0]);
    }
    (0..3).for_each(|_| boots.fail("the command failed"));
    assert_eq!(
        boots.ended_by.as_deref(),
        Some("boots with all settings cannot be measured: the command failed")
    );
    assert!(boots.proof.is_interrupted);
}

#[test]
fn time_ends_a_proof_over_reboots() {
    let (_, mut boots) = boot_proof();
    boots.watch_time(u64::MAX);
    assert_eq!(boots.ended_by, None, "nothing is known before the first boot");
    boots.record(vec![1.0]);
    boots.watch_time(1_000 + 7 * 3_600_000);
    assert_eq!(boots.ended_by.as_deref(), Some("the budget is used up"), "a second boot does not fit");

    let (_, mut boots) = boot_proof();
    (0..3).for_each(|_| boots.record(vec![1.0]));
    boots.watch_time(1_000 + 3 * 3_600_000 / 2);
    let why = boots.ended_by.unwrap();
    assert_eq!(why, "a boot takes 1800 s, and 21 boots are needed: --budget 630m");
    assert!(boots.proof.is_interrupted);
}
