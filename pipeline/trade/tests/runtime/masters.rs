//! Masters that die, conflict, or cannot start.

use crate::{
    master_thread::{join, reads, until, writes},
    runtime::{child, in_process::poll_until},
};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Keys, Node, NodeEnded, address::RunFolder};
use lowlat_trade::master::{Master, Options};
use rustix::process::geteuid;
use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

fn join_when_there(socket: &Path, what: &lowlat_node::Join) -> Node {
    let mut joined = None;
    until("the master listens", || {
        joined = Node::join(socket, what).ok();
        joined.is_some()
    });
    joined.unwrap()
}

#[test]
fn nodes_continue_when_their_master_is_killed_and_a_new_one_takes_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("master.sock");
    let killed = child::start(&format!("master:{} go-on 2", folder.path().display()));
    let mut writer = join_when_there(&socket, &join("writer", writes("a", 1), vec![]));
    let mut reader = join_when_there(&socket, &join("reader", None, vec![reads("a", Keys::All)]));
    assert_eq!(poll_until(&mut reader, |seen| !seen.is_empty()), ["begin"]);
    poll_until(&mut writer, |seen| !seen.is_empty());
    drop(killed);
    for round in 0..20 {
        writer.publisher().publish(&Stamp::default(), format!("{round}").as_bytes()).unwrap();
        assert_eq!(poll_until(&mut reader, |seen| !seen.is_empty()), [format!("a 0 {round}")]);
    }
    assert_eq!((writer.ended(), reader.ended()), (None, None));
    // The folder is unlocked, and its old socket blocks nothing.
    let next = child::start(&format!("master:{} go-on 2", folder.path().display()));
    let other = join_when_there(&socket, &join("writer", writes("a", 1), vec![]));
    assert_eq!((other.number(), other.epoch()), (0, 1), "a new master");
    drop((other, next));
}

#[test]
fn nodes_stop_with_their_master_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("master.sock");
    let killed = child::start(&format!("master:{} stop 1", folder.path().display()));
    let mut node = join_when_there(&socket, &join("node", None, vec![]));
    poll_until(&mut node, |seen| !seen.is_empty());
    drop(killed);
    assert_eq!(poll_until(&mut node, |seen| !seen.is_empty()), ["stop"]);
    assert_eq!(node.ended(), Some(NodeEnded::MasterGone));
    assert!(node.ended().unwrap().to_string().contains("restart it"));
}

#[test]
fn a_second_master_is_refused_with_the_firsts_process_id() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options::new(RunFolder::at(folder.path()).unwrap());
    let first = Master::open(options()).unwrap();
    let error = Master::open(options()).unwrap_err().to_string();
    assert!(error.contains(&format!("process {} is its master", std::process::id())), "{error}");
    assert!(folder.path().join("master.sock").exists());
    drop(first);
    assert!(!folder.path().join("master.sock").exists());
    drop(Master::open(options()).unwrap());
}

#[test]
fn an_unwritable_folder_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        |path: &Path| Master::open(Options::new(RunFolder::at(path).unwrap())).unwrap_err().to_string();
    // A file in place of the folder.
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file.join("run"));
    assert!(error.contains("/file: found a file, expected a directory"), "{error}");
    // A link in place of the lock.
    let linked = folder.path().join("linked");
    fs::DirBuilder::new().mode(0o700).create(&linked).unwrap();
    std::os::unix::fs::symlink("/dev/full", linked.join("lock")).unwrap();
    let error = open(&linked);
    assert!(error.contains("linked/lock: found a symbolic link, expected a file"), "{error}");
    if geteuid().is_root() {
        eprintln!("skipped: a folder without permission to write: root may write everywhere");
        return;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let error = open(&folder.path().join("run"));
    assert!(error.contains("this user can write"), "{error}");
}
