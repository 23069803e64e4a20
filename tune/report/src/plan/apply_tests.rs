//! Texts on a terminal of 80 columns.

use crate::plan::apply::{rollback_text, status_text};
use lowlat_host::{CpuSet, Reading, Role};
use lowlat_plan::outcome::{
    Confirmation, NotRestored, PlanInForce, RebootStatus, Restored, RollbackOutcome, StateText, StepCount,
    ThreeWay, TuneStatus, UnitStatus,
};

fn plain(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
        assert_eq!(line.trim_end(), line);
    }
    text
}

fn in_force() -> PlanInForce {
    PlanInForce {
        plan_id: "9f86d081884c7d65".into(),
        profile: "trading".into(),
        role: Role {
            housekeeping: Some(CpuSet::parse_list("0,8").unwrap()),
            isolated: Some(CpuSet::parse_list("1-7,9-15").unwrap()),
            nics: vec!["ens1".into()],
            accepted_risks: vec!["boot.mitigations".into()],
            ..Role::default()
        },
        change_count: 51,
        applied_unix_ms: 0,
        age_s: Some(93_784),
        is_of_this_boot: true,
        is_of_other_host: false,
        is_complete: true,
        confirmation: Confirmation::Waiting { within_s: 600, left_s: Some(571) },
        refused: Vec::new(),
        earlier: vec!["60303ae22b998861".into()],
    }
}

fn status(in_force: Reading<PlanInForce>) -> TuneStatus {
    TuneStatus {
        document: TuneStatus::DOCUMENT.into(),
        schema_version: TuneStatus::SCHEMA_VERSION,
        in_force,
        units: vec![
            UnitStatus { name: "lowlat.service".into(), is_there: Reading::Known(true), is_enabled: true },
            UnitStatus { name: "lowlat-watch.timer".into(), is_there: Reading::Absent, is_enabled: false },
        ],
        steps: Reading::Known(vec![
            StepCount { plan: "9f86d081884c7d65/run".into(), kind: "value".into(), count: 120 },
            StepCount { plan: "9f86d081884c7d65/boot-2f0c1b7e".into(), kind: "value".into(), count: 3 },
            StepCount { plan: "9f86d081884c7d65/files".into(), kind: "file".into(), count: 4 },
        ]),
        unfinished: Vec::new(),
        torn: None,
        damage: None,
        reboot: RebootStatus::Pending,
    }
}

#[test]
fn a_plan_in_force() {
    let text = plain(&status_text(&status(Reading::Known(in_force())), "2026-11-21 19:00:00 UTC", 80));
    insta::assert_snapshot!(text);
}

#[test]
fn absent_and_denied_are_two_answers() {
    let absent = plain(&status_text(&status(Reading::Absent), "", 80));
    assert!(absent.starts_with("No plan is in force.\n"), "{absent}");
    let taken_back = TuneStatus { reboot: RebootStatus::PendingRollback, ..status(Reading::Absent) };
    let text = plain(&status_text(&taken_back, "", 80));
    let wanted = "No plan is in force. The kernel keeps the reverted parameters";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(wanted), "{text}");
    let mut denied = status(Reading::Denied);
    denied.steps = Reading::Denied;
    let denied = plain(&status_text(&denied, "", 80));
    assert!(denied.starts_with("The plan in force is readable by root only"), "{denied}");
    assert!(denied.contains("the undo log is readable by root only"), "{denied}");
}

#[test]
fn later_edits_are_shown_as_two_diffs() {
    let file =
        |text: &str| StateText::File { text: text.into(), is_cut: false, attributes: "0:0 0644".into() };
    let lines: String = (0..60).map(|n| format!("line {n}\n")).collect();
    let outcome = RollbackOutcome {
        restored: vec![Restored {
            plan: "9f86d081884c7d65/files".into(),
            kind: "file".into(),
            name: "/etc/sysctl.d/99-zz-lowlat.conf".into(),
        }],
        unchanged_count: 2,
        expired_count: 120,
        conflicts: vec![
            ThreeWay {
                name: "/etc/default/grub".into(),
                plan: "9f86d081884c7d65/boot".into(),
                before: file("GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"ro\"\n"),
                by_lowlat: file("GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"ro skew_tick=1\"\n"),
                now: file("GRUB_TIMEOUT=1\nGRUB_CMDLINE_LINUX=\"ro skew_tick=1\"\n"),
            },
            ThreeWay {
                name: "/etc/long".into(),
                plan: "9f86d081884c7d65/files".into(),
                before: StateText::Absent,
                by_lowlat: file(&lines),
                now: StateText::Binary {
                    bytes: 4096,
                    digest: "ba7816bf8f01cfea".into(),
                    attributes: "0:0 0600".into(),
                },
            },
            ThreeWay {
                name: "/sys/kernel/mm/ksm/run".into(),
                plan: "9f86d081884c7d65/run".into(),
                before: StateText::Value { text: "1".into() },
                by_lowlat: StateText::Value { text: "0".into() },
                now: StateText::Value { text: "2".into() },
            },
        ],
        given_up: vec![NotRestored {
            name: "/proc/irq/24/smp_affinity_list".into(),
            reason: "irqbalance moves it".into(),
        }],
        needs_reboot: true,
        ..RollbackOutcome::default()
    };
    insta::assert_snapshot!(plain(&rollback_text(&outcome, 80)));
}

#[test]
fn nothing_to_roll_back_is_reported() {
    assert_eq!(
        rollback_text(&RollbackOutcome::default(), 80),
        "Nothing to roll back.\nNext: lowlat tune plan\n"
    );
}
