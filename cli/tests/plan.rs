//! Plans of every captured host: no fault is dropped, planned changes work, and the texts stay the same.

pub mod in_memory;

use crate::common;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, IsolateBy, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::Plan;
use lowlat_settings::{
    Context, Verdict,
    change::{Target, WhyLeftOut},
};
use std::collections::{BTreeMap, BTreeSet};

fn read(path: &std::path::Path) -> HostSnapshot {
    snapshot::read(&Root::open(path).unwrap_or_else(|error| panic!("{error}")), CATALOGUE)
}

/// A host by name, with a role, ready to be planned.
struct NamedHost {
    name: String,
    host: HostSnapshot,
    role: Role,
    allocation: Allocation,
}

impl NamedHost {
    fn context(&self) -> Context<'_> {
        let Self { host, role, allocation, .. } = self;
        Context { host, role, allocation, profile: role.profile, catalogue: CATALOGUE }
    }

    fn plan(&self) -> Plan {
        Plan::of(&self.context(), "0.0.0")
    }

    fn verdicts(&self) -> BTreeMap<&'static str, (Verdict, String)> {
        let judge = |setting: &'static lowlat_settings::Setting| {
            let finding = lowlat_settings::judge_one(&self.context(), setting);
            (setting.id, (finding.verdict, format!("{} | {}", finding.observed, finding.because)))
        };
        CATALOGUE.settings().map(judge).collect()
    }
}

/// Every captured host, in both profiles, with no risk accepted and with every one.
fn desks() -> Vec<NamedHost> {
    let mut desks = Vec::new();
    for (name, path) in common::fixtures() {
        let host = read(&path);
        for profile in Profile::ALL {
            for (takes_all, isolate_by) in
                [(false, IsolateBy::Boot), (true, IsolateBy::Boot), (false, IsolateBy::Cpuset)]
            {
                let accepted =
                    CATALOGUE.settings().filter(|_| takes_all).map(|setting| setting.id.to_owned());
                let role =
                    Role { profile, accepted_risks: accepted.collect(), isolate_by, ..Role::default() };
                let allocation = Allocation::choose(&host, &role);
                let name = format!("{name}, {profile}, all risks accepted: {takes_all}, {isolate_by:?}");
                desks.push(NamedHost { name, host: host.clone(), role, allocation });
            }
        }
    }
    assert!(desks.len() >= 16, "the captured hosts of fixtures/hosts");
    desks
}

fn changed(plan: &Plan) -> BTreeSet<&str> {
    plan.changes.iter().flat_map(|change| &change.settings).map(String::as_str).collect()
}

#[test]
fn no_setting_vanishes_from_a_plan() {
    for desk in desks() {
        let plan = desk.plan();
        let changed = changed(&plan);
        for (id, (verdict, seen)) in desk.verdicts() {
            let left: Vec<_> = plan.left_out.iter().filter(|left| left.setting == id).collect();
            let says_fault = left.iter().any(|left| left.why.is_of_fault());
            if verdict.is_fault() {
                assert!(changed.contains(id) || says_fault, "{}: {id} vanished ({seen})", desk.name);
            } else {
                assert!(!says_fault && !changed.contains(id), "{}: {id} is {verdict:?}", desk.name);
                assert_eq!(left.len(), 1, "{}: {id}", desk.name);
            }
            assert!(left.iter().all(|left| !left.text.is_empty()), "{}: {id} has no reason", desk.name);
        }
    }
}

#[test]
fn what_is_planned_makes_its_rows_good_and_nothing_is_left_to_plan() {
    for desk in desks() {
        let plan = desk.plan();
        let mut after = NamedHost { host: desk.host.clone(), role: desk.role.clone(), ..desk };
        in_memory::apply(&plan, &mut after.host);
        let (verdicts, again) = (after.verdicts(), after.plan());
        let mut wrong: Vec<String> = Vec::new();
        for change in &plan.changes {
            for id in &change.settings {
                let (verdict, seen) = &verdicts[id.as_str()];
                // 0 is taken as 1, so the guide's own value is never in force; and what cannot be moved stays.
                let is_in_part = plan.left_out.iter().any(|left| left.setting == *id);
                if verdict.is_fault() && id != "boot.processor.max_cstate" && !is_in_part {
                    wrong.push(format!("{id} is {verdict:?}: {seen}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}: after the plan {wrong:#?}", after.name);
        let rest: Vec<_> = again.changes.iter().map(|change| (&change.settings, &change.target)).collect();
        assert!(rest.is_empty(), "{}: planned again: {rest:?}", after.name);
    }
}

#[test]
fn every_target_has_one_change() {
    for desk in desks() {
        let plan = desk.plan();
        let targets: BTreeSet<&Target> = plan.changes.iter().map(|change| &change.target).collect();
        assert_eq!(targets.len(), plan.changes.len(), "{}", desk.name);
        assert!(plan.changes.iter().all(|change| !change.reason.is_empty()), "{}", desk.name);
    }
}

/// Hosts of ostree and other images mount it read-only.
#[test]
fn nothing_below_usr_is_planned() {
    for desk in desks() {
        for change in desk.plan().changes {
            let (Target::File { path } | Target::FileKey { path, .. } | Target::OwnedFile { path }) =
                change.target
            else {
                continue;
            };
            assert!(!path.starts_with("/usr/"), "{}: {path}", desk.name);
        }
    }
}

#[test]
fn plans_read_as_they_did() {
    for (name, profile) in [
        ("epyc-7f32-2x8", Profile::Trading),
        ("epyc-7f32-stock", Profile::Trading),
        ("epyc-7f32-stock", Profile::Guide57037),
    ] {
        let path = common::capture(name);
        let host = read(&path);
        let role = Role { profile, ..Role::default() };
        let allocation = Allocation::choose(&host, &role);
        let desk = NamedHost { name: name.to_owned(), host, role, allocation };
        let context = Context { catalogue: common::sample(), ..desk.context() };
        let text = lowlat_tune_report::plan_text(&Plan::of(&context, "0.0.0"), 80);
        let plain = anstream::adapter::strip_str(&text).to_string();
        for line in plain.lines() {
            assert!(line.chars().count() <= 80 && line == line.trim_end(), "{name}: \"{line}\"");
        }
        insta::assert_snapshot!(format!("plan@{name}@{profile}"), plain);
    }
}

/// The role's ids exist, and on the guide's server it leaves out only what it says it leaves out.
#[test]
fn the_built_in_role_accepts_the_guides_own_risks() {
    let path = common::capture("epyc-7f32-stock");
    let root = path.display().to_string();
    let output = common::lowlat(&["tune", "plan", "--root", &root, "--role", "guide-57037", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", common::text(&output.stderr));
    let plan: Plan = serde_json::from_slice(&output.stdout).expect("a plan");
    assert_eq!(plan.profile, Profile::Guide57037);
    let refused = plan.left_out.iter().filter(|left| matches!(left.why, WhyLeftOut::NotAccepted(_)));
    let refused: BTreeSet<&str> = refused.map(|left| left.setting.as_str()).collect();
    let kept = ["service.dbus", "service.systemd-journald", "service.systemd-journald.socket"];
    assert_eq!(refused, BTreeSet::from(kept));
    let changed = changed(&plan);
    for id in ["boot.selinux", "service.netfilter", "kthread.ksoftirqd", "service.tuned.profile"] {
        assert!(changed.contains(id), "{id} is not planned: {changed:?}");
    }
    // A file of the same name has precedence.
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("guide-57037"), "profile = \"trading\"\n").expect("a role file");
    let own = std::process::Command::new(common::binary())
        .current_dir(folder.path())
        .args(["tune", "plan", "--root", &root, "--role", "guide-57037", "--json"])
        .output()
        .expect("lowlat runs");
    let plan: Plan = serde_json::from_slice(&own.stdout).expect("a plan");
    assert_eq!(plan.profile, Profile::Trading);
}

#[test]
fn the_command_answers_by_exit_code_and_saves_the_plan() {
    let path = common::capture("epyc-7f32-stock");
    let root = path.display().to_string();
    let saved = std::env::temp_dir().join(format!("lowlat-plan-{}.json", std::process::id()));
    let file = saved.display().to_string();
    let output = common::lowlat(&["tune", "plan", "--root", &root, "--json", "--out", &file]);
    assert_eq!(output.status.code(), Some(1), "{}", common::text(&output.stderr));
    let printed: Plan = serde_json::from_slice(&output.stdout).expect("a plan");
    let kept: Plan = serde_json::from_slice(&std::fs::read(&saved).expect("the saved plan")).expect("a plan");
    std::fs::remove_file(&saved).expect("the saved plan");
    assert_eq!(printed, kept);

    let output = common::lowlat(&["tune", "plan", "--root", &root, "--accept-risk", "boot.selinus"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(common::text(&output.stderr).contains("did you mean \"boot.selinux\"?"));

    let empty = std::env::temp_dir().join(format!("lowlat-empty-{}", std::process::id()));
    std::fs::create_dir_all(empty.join("proc")).expect("a directory");
    let root = empty.display().to_string();
    let output = common::lowlat(&["tune", "plan", "--root", &root]);
    let applied = common::lowlat(&["tune", "apply", "--root", &root, "--yes", "--json"]);
    std::fs::remove_dir_all(&empty).expect("the directory");
    let said = common::text(&applied.stdout);
    let outcome: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((&outcome["document"], &outcome["is_changed"]), (&"lowlat-apply".into(), &false.into()));
    let said = common::text(&output.stdout);
    assert!(matches!(output.status.code(), Some(4)), "{said} {}", common::text(&output.stderr));
    assert!(said.starts_with("Could not judge: "), "nothing could be read: {said}");
}

/// The check of a reviewed plan before it is applied must never refuse a plan that lowlat made.
#[test]
fn a_saved_plan_is_one_that_planning_gives_again() {
    for desk in desks() {
        let nics: Vec<String> = desk.host.nics.iter().map(|nic| nic.name.clone()).take(1).collect();
        let some = desk.allocation.isolated.iter().next().map(lowlat_host::CpuSet::of);
        let roles = [
            desk.role.clone(),
            Role { nics: nics.clone(), ..desk.role.clone() },
            Role {
                nics,
                is_busy_polling: true,
                is_using_onload: true,
                accepted_risks: vec!["service.firewalld".to_owned()],
                ..desk.role.clone()
            },
            Role { isolated: some, ..desk.role.clone() },
            Role { isolate_by: IsolateBy::Cpuset, ..desk.role.clone() },
        ];
        for role in roles {
            let allocation = Allocation::choose(&desk.host, &role);
            let (host, profile) = (&desk.host, role.profile);
            let context =
                Context { host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE };
            let of_interface = role.nics.first().map(|nic| Plan::for_interface(&context, "0.0.0", nic));
            for plan in [Some(Plan::of(&context, "0.0.0")), of_interface].into_iter().flatten() {
                let saved: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
                // As it was planned for, and with the run-time values in effect.
                let mut applied = desk.host.clone();
                for change in &plan.changes {
                    change.target.kind().put(&mut applied, &change.after);
                }
                for host in [&desk.host, &applied] {
                    let foreign = saved.foreign_changes(host, CATALOGUE);
                    assert_eq!(foreign, Vec::<String>::new(), "{}, {role:?}", desk.name);
                }
            }
        }
    }
}
