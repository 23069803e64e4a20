//! Scripts that a failure, a kill or a power cut ends early, and what the next run of them makes of that.

use super::on_a_tree::{differ, tree_of};
use super::{Desk, SHELLS, assert_success, common, stock};
use lowlat_model::Profile;
use std::fs;

const MENU: &str = "/boot/grub/grub.cfg";

/// What update-grub was to be told is on record until it was told.
#[test]
fn an_update_grub_that_failed_is_run_again() {
    let desk = Desk::of(&stock(), Profile::Trading, false);
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
            assert!(said.contains("update-grub: No space left on device; the next run of this script"), "{said}");
            assert_eq!(tree.read(MENU) == stock_menu, is_tuned, "{shell} {verb}: the menu is the old one");
            let output = tree.run(shell, script, "show");
            assert!(common::text(&output.stdout).contains("\nchange  update-grub: still"), "{shell} {verb}");
            fs::remove_file(tree.path("boot-is-full")).expect("room again");
            let output = tree.run(shell, script, verb);
            assert_success(&output);
            assert_eq!(tree.read(MENU).contains("nohz_full="), is_tuned, "{shell} {verb}");
            assert!(common::text(&output.stdout).contains("ran     update-grub"), "{shell} {verb}");
            let output = tree.run(shell, script, verb);
            assert_success(&output);
            assert!(!common::text(&output.stdout).contains("update-grub"), "{shell}: {verb} owes nothing more");
        }
        differ(&before, &tree.places(), shell);
    }
}

/// A kill between a file and who is told of it leaves the file changed, and on record who is to be told.
#[test]
fn a_kill_before_the_telling_does_not_lose_it() {
    let desk = Desk::of(&stock(), Profile::Trading, false);
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
