//! Steps of the script after it wrote the boot menu, so that GRUB finds the menu without the file system's journal.

use super::on_a_tree::tree_of;
use super::tree::Tree;
use super::{HostWithRole, SHELLS, assert_success, common, stock};
use lowlat_host::Profile;
use std::{thread, time::Duration};

/// Prints the tree's `mounted`; the root file system is 8:1.
const FINDMNT: &str = "#!/bin/sh\nhere=${0%/usr/bin/findmnt}\nfor place; do :; done\n\
     if [ \"$place\" = / ]; then echo ' 8:1 '; else sed \"s|HERE|$here|\" \"$here/mounted\"; fi\n";

/// Records its arguments and the number of tuned entries in the menu. `--freeze` then runs the tree's `freeze`.
const FSFREEZE: &str = "#!/bin/sh\nhere=${0%/usr/sbin/fsfreeze}\n\
     printf '%s %s %s\\n' \"$1\" \"${2#\"$here\"}\" \"$(grep -c nohz_full= \"$here/boot/grub/grub.cfg\")\" >> \"$here/asked\"\n\
     if [ \"$1\" = --freeze ]; then . \"$here/freeze\"; fi\n";

const SYNC: &str = "#!/bin/sh\nhere=${0%/usr/bin/sync}\n\
     if [ \"$1\" = -f ]; then printf 'sync -f %s\\n' \"${2#\"$here\"}\" >> \"$here/asked\"; fi\n";

/// Kills the script, and neither this program nor the process that called it.
const KILL: &str = "pid=$PPID script=\nwhile grep -q '[.]sh' \"/proc/$pid/cmdline\"; do\nscript=$pid\n\
     stat=$(cat \"/proc/$pid/stat\")\nset -- ${stat##*) }\npid=$2\ndone\n\
     [ \"$script\" != \"$PPID\" ] || exit 1\nkill -9 \"$script\"\n";

/// A tree with findmnt's line for /boot, and a script for the outcome of freezing it.
fn tree(desk: &HostWithRole, mounted: &str, freeze: &str) -> Tree {
    let tree = tree_of(desk, &desk.plan());
    tree.program("usr/bin/findmnt", FINDMNT);
    tree.program("usr/sbin/fsfreeze", FSFREEZE);
    tree.program("usr/bin/sync", SYNC);
    tree.write("mounted", mounted);
    tree.write("freeze", freeze);
    tree.write("asked", "");
    tree
}

#[test]
fn a_boot_of_its_own_is_frozen_and_thawed_and_no_other() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let (machinery, _) = script.split_once("\nmode=").expect("the script's last part");
    let only_settles = format!("{machinery}\nsettle_boot\n");
    let thawed = "--freeze /boot 0\n--unfreeze /boot 0\n";
    let refused = "--freeze /boot 0\nsync -f /boot\n";
    let only_synced = "sync -f /boot\n";
    let cases = [
        ("  8:2 ext4   HERE/boot\n", "", thawed),
        ("8:2 xfs HERE/boot\n", "", thawed),
        ("8:2 xfs HERE/boot\n", "exit 1\n", refused),
        ("8:1 ext4 HERE/boot\n", "", only_synced),
        ("8:1 ext4 /\n", "", only_synced),
        ("8:2 ext4 HERE\n", "", only_synced),
        ("0:31 btrfs HERE/boot\n", "", only_synced),
        ("", "", only_synced),
    ];
    let tree = tree(&desk, "", "");
    for shell in SHELLS {
        for (mounted, freeze, asked) in cases {
            tree.write("mounted", mounted);
            tree.write("freeze", freeze);
            tree.write("asked", "");
            assert_success(&tree.run(shell, &only_settles, ""));
            assert_eq!(tree.read("asked"), asked, "{shell}: {mounted}");
        }
    }
}

#[test]
fn a_menu_is_settled_once_it_is_written() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    let tree = tree(&desk, "8:2 ext4 HERE/boot\n", "");
    for (verb, menu) in [("apply", 1), ("undo", 0)] {
        tree.write("asked", "");
        assert_success(&tree.run("dash", script, verb));
        assert_eq!(tree.read("asked"), format!("--freeze /boot {menu}\n--unfreeze /boot {menu}\n"), "{verb}");
    }
}

#[test]
fn what_is_frozen_is_thawed_though_the_script_is_killed() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree(&desk, "8:2 ext4 HERE/boot\n", KILL);
        assert_eq!(tree.run(shell, script, "apply").status.code(), None, "{shell}: killed");
        let thawed = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            tree.read("asked").contains("--unfreeze /boot")
        });
        assert!(thawed, "{shell}: {}", tree.read("asked"));
    }
}

#[test]
fn a_boot_that_does_not_thaw_is_named_with_the_way_out() {
    let desk = HostWithRole::of(&stock(), Profile::Trading, false);
    let script = &desk.files("shell")[0].text;
    for shell in SHELLS {
        let tree = tree(&desk, "8:2 ext4 HERE/boot\n", "");
        tree.program(
            "usr/sbin/fsfreeze",
            "#!/bin/sh\nif [ \"$1\" = --unfreeze ]; then echo no >&2; exit 1; fi\n",
        );
        let output = tree.run(shell, script, "apply");
        let said = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{shell}: {said}");
        let boot = tree.path("boot").display().to_string();
        assert!(
            said.contains(&format!("may still be frozen: no; thaw it with `fsfreeze --unfreeze {boot}`")),
            "{said}"
        );
    }
}
