//! Changes of a boot loader through the undo log, and their rollback.

use super::{
    Host, assert_has_plan, plan,
    red_hat::{red_hat_8, red_hat_9},
};
use crate::boot_loader::GrubVariable;
use crate::flow::{ApplyOptions, PlanFrom, Ready, RollbackRequest, Site, rollback};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Reading, Role};
use lowlat_plan::{Plan, boot_files::grubenv::GrubEnv};
use lowlat_settings::{
    Context, Risk,
    change::{Change, Moment, Target},
};
use lowlat_undo::{
    FileState, HostError, OnFailure, PrivateDirectory, State, Target as _, TargetSpec, UndoLog, UndoStep,
    Writer,
};
use std::{fs, os::unix::fs::PermissionsExt};

const BLOCK: &str = "/boot/efi/EFI/redhat/grubenv";

fn tree(host: &Host) -> Vec<(String, u32, Vec<u8>)> {
    ["/boot/efi/EFI/redhat/grubenv", "/etc/default/grub", "/boot/efi/EFI/redhat/grub.cfg"]
        .into_iter()
        .chain(["/boot/grub2/grubenv"])
        .map(|path| {
            let place = host.place(path);
            let is_link = fs::symlink_metadata(&place).unwrap().is_symlink();
            let mode = fs::metadata(&place).unwrap().permissions().mode() + u32::from(is_link) * 0o200_000;
            (path.to_owned(), mode, fs::read(place).unwrap())
        })
        .collect()
}

#[test]
fn the_rollback_restores_every_file_byte_for_byte() {
    let host = red_hat_8();
    let before = tree(&host);
    let log_dir = tempfile::tempdir().unwrap();
    let writer = Writer::below(host.dir.path()).unwrap();
    let log = UndoLog::open(PrivateDirectory::create(log_dir.path(), &["undo"]).unwrap(), writer, |_| true)
        .unwrap();
    let mut log = log.with_target(Box::new(GrubVariable));
    let changes = host.loader().sources(&host.root(), &plan()).unwrap();
    let step = |(at, change): (usize, crate::boot_loader::FileChange)| {
        let target = change.target();
        let old = log.present(&target).unwrap();
        UndoStep { id: at.to_string(), target, old, new: change.new }
    };
    let steps: Vec<UndoStep> = changes.into_iter().enumerate().map(step).collect();
    let report = log.apply("p/boot", &steps, OnFailure::RollBack).unwrap();
    assert_eq!((report.done.len(), report.unchanged.len()), (2, 2), "the entries refer to the variable");
    assert_has_plan(&host.next());
    let modes = |tree: &[(String, u32, Vec<u8>)]| {
        tree.iter().map(|(path, mode, bytes)| (path.clone(), *mode, bytes.len() == 1024)).collect::<Vec<_>>()
    };
    assert_eq!(modes(&tree(&host)), modes(&before));
    assert!(fs::symlink_metadata(host.place("/boot/grub2/grubenv")).unwrap().is_symlink());
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(tree(&host), before);
}

/// The flows' site below the host's tree, and a plan that contains only its command line.
fn site_and_plan(host: &Host) -> (Site, Plan) {
    let (facts, role) = (HostSnapshot::default(), Role::default());
    let allocation = Allocation::choose(&facts, &role);
    let context = Context {
        host: &facts,
        role: &role,
        allocation: &allocation,
        profile: role.profile,
        catalogue: CATALOGUE,
    };
    let mut whole = Plan::of(&context, "0.0.0");
    whole.changes = vec![Change {
        settings: vec!["boot.nohz_full".into()],
        layer: "boot".into(),
        target: Target::CommandLine { tokens: plan() },
        before: Reading::Known(String::new()),
        after: String::new(),
        moment: Moment::AtBoot,
        reason: String::new(),
        cost: String::new(),
        risk: Risk::None,
        sources: Vec::new(),
    }];
    (Site::below(host.dir.path(), CATALOGUE).unwrap(), whole)
}

fn set_in(block: &str, host: &Host, name: &str, value: &str) {
    let env = GrubEnv::parse(&fs::read(host.place(block)).unwrap()).unwrap();
    fs::write(host.place(block), env.with(name, value).unwrap()).unwrap();
}

fn set_in_block(host: &Host, name: &str, value: &str) {
    set_in(BLOCK, host, name, value);
}

#[test]
fn what_others_write_to_the_block_of_variables_stays_and_stops_no_rollback() {
    let host = red_hat_8();
    let (site, plan) = site_and_plan(&host);
    let facts = HostSnapshot::default();
    let line = host.next();
    let block = || GrubEnv::parse(&fs::read(host.place(BLOCK)).unwrap()).unwrap();
    let kernelopts = block().get("kernelopts");
    let ready = Ready::new(&site, &facts, plan, PlanFrom::Host, ApplyOptions::default()).unwrap();
    ready.carry_out(&site, &facts, &mut |_| ()).unwrap();
    assert_has_plan(&host.next());
    // Written by GRUB at each boot, by a login, by an installed kernel, and by TuneD.
    for (name, value) in [("boot_success", "1"), ("saved_entry", "0-rescue"), ("tuned_params", "a=b")] {
        set_in_block(&host, name, value);
    }
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    assert!(report.is_complete() && report.given_up.is_empty(), "{report:#?}");
    assert!(report.restored.iter().any(|r| r.name == format!("{BLOCK} kernelopts")), "{report:#?}");
    assert_eq!(block().get("kernelopts"), kernelopts);
    assert_eq!(block().get("saved_entry").as_deref(), Some("0-rescue"));
    assert_eq!(block().get("boot_success").as_deref(), Some("1"));
    set_in_block(&host, "saved_entry", "3a17f34dc2694acda37caa478a339408-4.18.0-553.el8_10.x86_64");
    assert_eq!(host.next(), format!("{line} a=b"));

    // A line that another tool has changed is left unchanged.
    let (_, plan) = site_and_plan(&host);
    let ready = Ready::new(&site, &facts, plan, PlanFrom::Host, ApplyOptions::default()).unwrap();
    ready.carry_out(&site, &facts, &mut |_| ()).unwrap();
    set_in_block(&host, "kernelopts", "mine");
    let report = rollback(&site, &RollbackRequest::default()).unwrap();
    let [conflict] = report.conflicts.as_slice() else { panic!("{report:#?}") };
    assert_eq!(conflict.name, format!("{BLOCK} kernelopts"));
    let forced = RollbackRequest { forced: vec![conflict.name.clone()], ..RollbackRequest::default() };
    assert!(rollback(&site, &forced).unwrap().is_complete());
    assert_eq!(block().get("kernelopts"), kernelopts);
}

#[test]
fn a_log_that_holds_the_whole_block_as_a_file_is_taken_back_as_it_was_made() {
    let host = red_hat_8();
    let (site, _) = site_and_plan(&host);
    let before = tree(&host);
    let writer = Writer::below(host.dir.path()).unwrap();
    let mut log = UndoLog::open(site.state.make_undo_log().unwrap(), writer, |_| true).unwrap();
    let target = TargetSpec::file(BLOCK);
    let old = log.present(&target).unwrap();
    let State::File(file) = &old else { panic!("{old}") };
    let bytes = GrubEnv::parse(&file.bytes).unwrap().with("kernelopts", "root=/dev/sda ours").unwrap();
    let new = State::File(FileState { bytes, ..file.clone() });
    let step = UndoStep { id: BLOCK.into(), target, old: old.clone(), new };
    log.apply("9f86d081884c7d65/boot", &[step], OnFailure::RollBack).unwrap();
    drop(log);
    assert_ne!(tree(&host), before);
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert_eq!(tree(&host), before);
}

#[test]
fn a_variable_that_was_not_set_is_taken_out_and_a_block_that_is_none_is_told() {
    let host = red_hat_8();
    let writer = Writer::below(host.dir.path()).unwrap();
    let spec = GrubVariable::spec(BLOCK, "x");
    let before = fs::read(host.place(BLOCK)).unwrap();
    assert_eq!(GrubVariable.read(&writer, &spec).unwrap(), State::Absent);
    let value = State::Value("a \\ b\nc".into());
    GrubVariable.write(&writer, &spec, &value).unwrap();
    assert_eq!(GrubVariable.read(&writer, &spec).unwrap(), value);
    GrubVariable.write(&writer, &spec, &State::Absent).unwrap();
    assert_eq!(fs::read(host.place(BLOCK)).unwrap(), before);

    let told = |result: Result<(), HostError>| result.unwrap_err().to_string();
    assert!(
        told(GrubVariable.write(&writer, &spec, &State::Value("x".repeat(1024))))
            .contains("remove unneeded variables"),
    );
    fs::write(host.place(BLOCK), "nonsense").unwrap();
    let text = told(GrubVariable.read(&writer, &spec).map(drop));
    assert!(
        text.starts_with(BLOCK) && text.contains("\"nonsense\"") && text.contains("grub2-editenv"),
        "{text}"
    );
    fs::remove_file(host.place(BLOCK)).unwrap();
    assert_eq!(GrubVariable.read(&writer, &spec).unwrap(), State::Absent);
    GrubVariable.write(&writer, &spec, &State::Absent).unwrap();
    assert!(told(GrubVariable.write(&writer, &spec, &value)).contains("grub2-editenv create"));
    assert!(!host.place(BLOCK).exists());
}

#[test]
fn what_changes_between_the_question_and_the_answer_is_built_on() {
    let host = red_hat_9();
    let (site, plan) = site_and_plan(&host);
    let facts = HostSnapshot::default();
    let ready = Ready::new(&site, &facts, plan, PlanFrom::Host, ApplyOptions::default()).unwrap();
    // A kernel is installed, the oldest one is removed, and an administrator edits the defaults.
    let entry =
        |version: &str| format!("/boot/loader/entries/3a17f34dc2694acda37caa478a339408-{version}.conf");
    let (oldest, newest) = (entry("5.14.0-362.8.1.el9_3.x86_64"), entry("5.14.0-503.el9.x86_64"));
    host.put(&newest, host.read(&oldest).replace("5.14.0-362.8.1.el9_3", "5.14.0-503.el9"));
    fs::remove_file(host.place(&oldest)).unwrap();
    set_in(
        "/boot/grub2/grubenv",
        &host,
        "saved_entry",
        "3a17f34dc2694acda37caa478a339408-5.14.0-503.el9.x86_64",
    );
    let defaults = host.read("/etc/default/grub") + "GRUB_TIMEOUT=1\n";
    host.put("/etc/default/grub", &defaults);
    ready.carry_out(&site, &facts, &mut |_| ()).unwrap();
    assert!(!host.place(&oldest).exists());
    assert!(host.next().contains("vmlinuz-5.14.0-503.el9"), "{}", host.next());
    assert_has_plan(&host.next());
    let text = host.read("/etc/default/grub");
    assert!(text.contains("GRUB_TIMEOUT=1") && text.contains("nohz_full="), "{text}");
    assert!(rollback(&site, &RollbackRequest::default()).unwrap().is_complete());
    assert_eq!(host.read("/etc/default/grub"), defaults);
}
