//! Scripts that a failure, a kill or a power cut ends early, and their next runs.

use super::on_a_tree::{differ, tree_of};
use super::{HostWithRole, SHELLS, assert_success, common, stock};
use lowlat_host::Profile;
use std::fs;

const MENU: &str = "/boot/grub/grub.cfg";
const STATE: &str = "/var/lib/lowlat-export";
const OWED: &str = "/var/lib/lowlat-export/tell/update-grub";

/// A call of update-grub that is due stays on record until it succeeds.
#[test]
fn an_update_grub_that_failed_is_run_again() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        let before = tree.places();
        let stock_menu = tree.read(MENU);
        for (verb, is_tuned) in [("apply", true), ("undo", false)] {
            tree.write("boot-is-full", "");
            let output = tree.run(shell, script, verb);
            let said = common::text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{shell} {verb}: {said}");
            assert!(
                said.contains("update-grub: No space left on device; the next run of this script"),
                "{said}"
            );
            assert_eq!(tree.read(MENU) == stock_menu, is_tuned, "{shell} {verb}: the menu is the old one");
            assert!(tree.path(OWED).exists(), "{shell} {verb}");
            if is_tuned {
                let output = tree.run(shell, script, "show");
                assert!(
                    common::text(&output.stdout).contains("\nchange  update-grub: to be notified"),
                    "{shell}"
                );
            }
            fs::remove_file(tree.path("boot-is-full")).expect("room again");
            let output = tree.run(shell, script, verb);
            assert_success(&output);
            assert_eq!(tree.read(MENU).contains("nohz_full="), is_tuned, "{shell} {verb}");
            assert!(common::text(&output.stdout).contains("ran     update-grub"), "{shell} {verb}");
            assert!(!tree.path(OWED).exists(), "{shell} {verb}");
        }
        differ(&before, &tree.places(), shell);
    }
}

/// A kill after a file was changed, and before its reader was notified, leaves the notification on record.
#[test]
fn a_kill_before_the_telling_does_not_lose_it() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let (head, tail) = script.split_once("\ntell() {").expect("the function that tells");
    let killed = format!("{head}\ntell() {{ kill -9 $$; }}\nunused() {{{tail}");
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        let before = tree.places();
        for (verb, is_tuned) in [("apply", true), ("undo", false)] {
            assert_eq!(tree.run(shell, &killed, verb).status.code(), None, "{shell} {verb}: killed");
            assert_eq!(tree.read(MENU).contains("nohz_full="), !is_tuned, "{shell} {verb}: not told yet");
            assert_success(&tree.run(shell, script, verb));
            assert_eq!(tree.read(MENU).contains("nohz_full="), is_tuned, "{shell} {verb}");
        }
        differ(&before, &tree.places(), shell);
    }
}

/// A truncated record does not mean that its change was not made.
#[test]
fn a_record_that_is_cut_short_is_told_and_its_copy_kept() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let file = "/etc/sysctl.d/99-zz-lowlat.conf";
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        tree.write(file, "theirs\n");
        let before = tree.places();
        assert_success(&tree.run(shell, script, "apply"));
        let ours = tree.read(file);
        let records = fs::read_dir(tree.path(&format!("{STATE}/files"))).expect("records").flatten();
        let names = records.map(|entry| format!("{STATE}/files/{}", entry.file_name().display()));
        let mut copied = names.filter_map(|name| name.strip_suffix(".old").map(str::to_owned));
        let record = copied.find(|name| tree.read(&format!("{name}.old")) == "theirs\n").expect("a copy");
        let copy = format!("{record}.old");
        let whole = tree.read(&record);
        for kept in ["", &whole[..whole.len() / 2]] {
            tree.write(&record, kept);
            let output = tree.run(shell, script, "undo");
            let said = common::text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{shell}: {said}");
            assert!(said.contains(&format!("{}", tree.path(&copy).display())), "{shell}: {said}");
            assert_eq!((tree.read(&copy), tree.read(file)), ("theirs\n".into(), ours.clone()), "{shell}");
        }
        tree.write(&record, &whole);
        assert_success(&tree.run(shell, script, "undo"));
        differ(&before, &tree.places(), shell);
    }
}

/// Records each name that it is given, and the last line of the file.
const SYNC: &str = "#!/bin/sh\nhere=${0%/usr/bin/sync}\nfor name; do\n\
     if [ -f \"$name\" ]; then end=$(tail -n 1 \"$name\"); else end=; fi\n\
     printf '%s %s\\n' \"${name#\"$here\"}\" \"$end\" >> \"$here/synced\"\ndone\n";

/// After a power cut a disk may have the latest write, and not an earlier one.
#[test]
fn a_record_is_on_the_disk_before_its_change() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let file = "/etc/sysctl.d/99-zz-lowlat.conf";
    for shell in SHELLS {
        let tree = tree_of(&desk, &desk.plan());
        tree.write(file, "theirs\n");
        tree.program("usr/bin/sync", SYNC);
        assert_success(&tree.run(shell, script, "apply"));
        let synced = tree.read("synced");
        let at = |wanted: &str| {
            let found = synced.lines().position(|line| line == wanted);
            found.unwrap_or_else(|| panic!("{shell}: {wanted}: {synced}"))
        };
        let copy = synced.lines().find(|line| line.ends_with(".old theirs")).expect("a copy");
        let record = copy.strip_suffix(".old theirs").expect("its record");
        let written = at(&format!("{record}.lowlat-new end"));
        assert!(at(copy) < written, "{shell}: {synced}");
        assert_eq!(
            synced.lines().nth(written + 1),
            Some(format!("{STATE}/files ").as_str()),
            "{shell}: {synced}"
        );
        let changed = synced.lines().position(|line| line.starts_with(&format!("{file}.lowlat-new ")));
        assert!(Some(written + 1) < changed, "{shell}: {synced}");
        assert!(at(&format!("{STATE}/tell/update-grub ")) < at("/etc/default/grub.d "), "{shell}: {synced}");
        assert!(!synced.contains("/run"), "{shell}: no disk for what ends with the boot: {synced}");
        // The old file is restored before the copy of it is deleted.
        tree.write("synced", "");
        assert_success(&tree.run(shell, script, "undo"));
        let synced = tree.read("synced");
        assert!(synced.contains(&format!("{file}.lowlat-new theirs\n/etc/sysctl.d \n")), "{shell}: {synced}");
    }
}
