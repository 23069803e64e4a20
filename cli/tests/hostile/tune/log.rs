//! Records of the undo log are lost: `rollback` must not report a tuned host as restored.

use super::tree::{FAMILIES, Family, Tree, differences, said};
use std::fs;

/// Damage to the undo log after an apply: its name, and a function that causes it.
type Attack = (&'static str, fn(&Tree));

const ATTACKS: [Attack; 5] = [
    ("cut to 6,000 bytes", |tree| cut(tree, 6_000)),
    ("cut to nothing", |tree| cut(tree, 0)),
    ("segment deleted", |tree| fs::remove_file(segment(tree)).unwrap()),
    ("folder deleted", |tree| fs::remove_dir_all(tree.path("var/lib/lowlat/undo")).unwrap()),
    ("a byte changed", |tree| {
        let mut bytes = fs::read(segment(tree)).unwrap();
        bytes[4_000] ^= 1;
        fs::write(segment(tree), bytes).unwrap();
    }),
];

fn segment(tree: &Tree) -> std::path::PathBuf {
    tree.path("var/lib/lowlat/undo/segment-00000001")
}

fn cut(tree: &Tree, bytes: u64) {
    fs::File::options().write(true).open(segment(tree)).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_rollback_without_the_whole_log_fails_and_keeps_what_is_in_force() {
    for family in FAMILIES {
        for (name, attack) in ATTACKS {
            let Some((tree, _)) = Tree::applied(family) else { return };
            attack(&tree);
            let applied = tree.files();
            let output = tree.tune(&["rollback", "--yes"]);
            let text = said(&output);
            assert_eq!(output.status.code(), Some(1), "{family:?}, {name}: {text}");
            assert!(tree.path("var/lib/lowlat/in-force.json").exists(), "{family:?}, {name}: {text}");
            assert_eq!(differences(&applied, &tree.files()), Vec::<String>::new(), "{family:?}, {name}");
            // The message names the loss, and the next steps.
            assert!(
                text.contains("undo log") && text.contains("in-force.json"),
                "{family:?}, {name}: {text}"
            );
            assert!(text.contains("/etc/systemd/system/lowlat.service"), "{family:?}, {name}: {text}");
            assert!(text.contains("--accept-damage"), "{family:?}, {name}: {text}");
        }
    }
}

#[test]
fn every_command_compares_the_log() {
    let Some((tree, _)) = Tree::applied(Family::RedHat) else { return };
    cut(&tree, 6_000);
    let applied = tree.files();
    for (arguments, code) in [
        (&["status"][..], 1),
        (&["verify", "--no-ticks"], 1),
        (&["verify", "--no-ticks", "--quiet"], 1),
        (&["rollback", "--dry-run"], 1),
        (&["rollback", "--run-time", "--yes"], 1),
        (&["apply", "--yes"], 2),
        (&["apply", "--at-boot"], 2),
        (&["confirm"], 2),
    ] {
        let output = tree.tune(arguments);
        let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains("the undo log"), "{arguments:?}: {text}");
        assert!(text.contains("records") || text.contains("lowlat tune rollback"), "{arguments:?}: {text}");
    }
    assert_eq!(differences(&applied, &tree.files()), Vec::<String>::new());
}

/// The remaining records restore their changes; all others are listed until they are gone.
#[test]
fn what_an_incomplete_log_knows_is_restored_on_demand() {
    let Some((tree, start)) = Tree::applied(Family::RedHat) else { return };
    cut(&tree, 12_000);
    let output = tree.tune(&["rollback", "--accept-damage", "--yes"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Restored: ") && text.contains("no rollback can undo it"), "{text}");
    assert!(!tree.path("var/lib/lowlat/in-force.json").exists());
    let output = tree.tune(&["rollback", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "the host stays tuned: {}", said(&output));
    // Somebody restores the rest from a backup.
    for name in differences(&start, &tree.files()).iter().filter_map(|line| line.split(':').next()) {
        let path = tree.path(name);
        match start.get(name) {
            None if path.is_dir() => {}
            None => fs::remove_file(&path).unwrap(),
            Some(_) => fs::write(&path, "as in a backup").unwrap(),
        }
    }
    let output = tree.tune(&["rollback", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).ends_with("Next: lowlat tune plan\n"), "{}", said(&output));
}
