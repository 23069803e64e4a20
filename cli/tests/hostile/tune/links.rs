//! Links planted where lowlat keeps its own files, in a tree that root is asked to change.

use super::tree::{FAMILIES, Tree, files_in, is_root, said};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
};

/// Path of the link in the tree, and its target below the folder outside.
const LINKS: [(&str, &str); 13] = [
    ("var", ""),
    ("var/lib", ""),
    ("var/lib/lowlat", ""),
    ("var/lib/lowlat/undo", ""),
    ("var/lib/lowlat/undo/lock", "victim"),
    ("var/lib/lowlat/undo/segment-00000001", "victim"),
    ("var/lib/lowlat/undo/contents", ""),
    ("var/lib/lowlat/undo/new.tmp", "victim"),
    ("var/lib/lowlat/undo/contents/new.tmp", "victim"),
    ("var/lib/lowlat/in-force.json", "victim"),
    ("var/lib/lowlat/in-force.new", "victim"),
    ("var/lib/lowlat/new.tmp", "victim"),
    ("var/lib/lowlat/plans", ""),
];

fn private(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn no_link_leads_out_of_the_tree() {
    if !is_root() {
        return;
    }
    for family in FAMILIES {
        for (link, to) in LINKS {
            for verb in ["apply", "rollback"] {
                let tree = Tree::new(family);
                let outside = tree.beside("outside");
                private(&outside);
                fs::write(outside.join("victim"), "root:*:19000:0:99999:7:::\n").unwrap();
                let before = files_in(&outside);
                private(tree.path(link).parent().unwrap());
                for dir in ["var/lib/lowlat", "var/lib/lowlat/undo"] {
                    if link.starts_with(&format!("{dir}/")) {
                        private(&tree.path(dir));
                    }
                }
                symlink(outside.join(to), tree.path(link)).unwrap();
                let output = tree.tune(&[verb, "--yes"]);
                assert_eq!(
                    before,
                    files_in(&outside),
                    "{family:?}, {verb} with a link at {link}: {}",
                    said(&output)
                );
                let is_name_of_a_new_file = link.contains("new.tmp") || link.contains(".new");
                if verb == "apply" && !is_name_of_a_new_file {
                    assert_eq!(output.status.code(), Some(2), "a link at {link}: {}", said(&output));
                    assert!(said(&output).contains("a symbolic link"), "a link at {link}: {}", said(&output));
                }
            }
        }
    }
}

/// A pipe must not block lowlat.
#[test]
fn a_pipe_in_place_of_a_file_is_refused() {
    if !is_root() {
        return;
    }
    for name in ["undo/lock", "undo/segment-00000001", "in-force.json"] {
        let tree = Tree::new(FAMILIES[0]);
        private(&tree.path("var/lib/lowlat/undo"));
        private(&tree.path("var/lib/lowlat"));
        let made = std::process::Command::new("mkfifo").arg(tree.path("var/lib/lowlat").join(name)).status();
        assert!(made.expect("mkfifo").success());
        let mut command = std::process::Command::new("timeout");
        command
            .arg("60")
            .arg(crate::common::binary())
            .args(["tune", "apply", "--yes", "--root"])
            .arg(tree.root());
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
    }
}

/// Whoever can write the undo log controls what a rollback writes as root, such as a set-user-ID file.
#[test]
fn an_undo_log_that_others_could_write_is_not_used() {
    type Attack = (&'static str, fn(&Path));
    let attacks: [Attack; 4] = [
        ("log of another user", |dir| chown(dir.join("undo"), Some(65_534), None).unwrap()),
        ("folder of another user", |dir| chown(dir, Some(65_534), None).unwrap()),
        ("log for all", |dir| {
            fs::set_permissions(dir.join("undo"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("folder for the group", |dir| fs::set_permissions(dir, fs::Permissions::from_mode(0o770)).unwrap()),
    ];
    for (name, attack) in attacks {
        let Some((tree, _)) = Tree::applied(FAMILIES[0]) else { return };
        attack(&tree.path("var/lib/lowlat"));
        let before = tree.files();
        for verb in ["rollback", "apply"] {
            let output = tree.tune(&[verb, "--yes"]);
            assert_eq!(output.status.code(), Some(2), "{verb}, {name}: {}", said(&output));
            assert!(
                said(&output).contains("write permission for others"),
                "{verb}, {name}: {}",
                said(&output)
            );
        }
        assert_eq!(before, tree.files(), "{name}");
    }
}
