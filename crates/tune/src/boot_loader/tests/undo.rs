//! Changes of a boot loader through the undo log, and back.

use super::{Host, assert_has_plan, plan, red_hat::red_hat_8};
use lowlat_sys::undo::{OnFailure, RollbackTo, Step, TargetSpec, UndoLog, Writer};
use std::{fs, os::unix::fs::PermissionsExt};

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
    let mut log = UndoLog::open(&log_dir.path().join("undo"), writer).unwrap();
    let changes = host.loader().sources(&host.root(), &plan()).unwrap();
    let step = |(at, change): (usize, crate::boot_loader::FileChange)| {
        let target = TargetSpec::file(&change.path);
        let old = log.present(&target).unwrap();
        Step { id: at.to_string(), target, old, new: change.new }
    };
    let steps: Vec<Step> = changes.into_iter().enumerate().map(step).collect();
    let report = log.apply("p/boot", &steps, OnFailure::RollBack).unwrap();
    assert_eq!((report.done.len(), report.unchanged.len()), (2, 2), "the entries refer to the variable");
    assert_has_plan(&host.next());
    assert!(fs::symlink_metadata(host.place("/boot/grub2/grubenv")).unwrap().is_symlink());
    assert!(log.rollback(&RollbackTo::Start).unwrap().is_complete());
    assert_eq!(tree(&host), before);
}
