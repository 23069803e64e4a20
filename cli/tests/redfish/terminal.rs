//! The prompt on a real terminal: util-linux's `script` gives lowlat one.

use crate::{
    redfish::run::RedfishCaller,
    service::{PASSWORD, Service, USER},
};
use std::{
    io::{Read, Write},
    process::{Command, Stdio},
};

#[test]
fn the_password_is_asked_for_and_not_shown() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: the password prompt: there is no `script` (bsdutils)");
        return;
    }
    let service = Service::start();
    let desk = RedfishCaller::new(service.url());
    let line =
        format!("{} bios audit --redfish {} --user {USER}", crate::common::binary().display(), desk.url);
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let mut output = child.stdout.take().unwrap();
    let mut byte = [0];
    // Typed only when it is asked for: before, the terminal would show it.
    while !shown.ends_with(b": ") && output.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
    }
    let mut input = child.stdin.take().unwrap();
    write!(input, "wrong\x15{PASSWORD}\r").unwrap();
    input.flush().unwrap();
    output.read_to_end(&mut shown).unwrap();
    drop(input);
    let code = child.wait().unwrap().code();
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("Password for operator at 127.0.0.1"), "{shown}");
    assert!(shown.contains("from profile trading"), "{shown}");
    assert!(!shown.contains(PASSWORD) && !shown.contains("wrong"), "{shown}");
    assert_eq!(code, Some(1));
}
