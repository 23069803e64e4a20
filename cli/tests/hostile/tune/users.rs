//! An ordinary user, who gets the command that helps.

use super::tree::{Family, Tree, is_root, said};
use crate::common::programs::copy_binary;
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
};

#[test]
fn without_root_apply_and_status_name_sudo() {
    if !is_root() {
        return;
    }
    let Some((tree, _)) = Tree::applied(Family::Debian) else { return };
    // Another user may enter this directory and run the copy.
    fs::set_permissions(tree.root().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = tree.beside("lowlat");
    copy_binary(&copy);
    for (arguments, code) in [
        (&["apply", "--yes"][..], 2),
        (&["status"], 0),
        (&["rollback", "--dry-run"], 2),
        (&["verify", "--no-ticks"], 2),
        (&["confirm"], 2),
    ] {
        let mut command = std::process::Command::new(&copy);
        command.arg("tune").args(arguments).arg("--root").arg(tree.root()).current_dir("/");
        let output = command.uid(65_534).gid(65_534).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains("sudo"), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn a_rollback_ends_with_the_next_command() {
    let Some((tree, _)) = Tree::applied(Family::Debian) else { return };
    let output = tree.tune(&["rollback", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).ends_with("Next: lowlat tune plan\n"), "{}", said(&output));
}
