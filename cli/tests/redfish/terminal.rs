//! The prompt on a real terminal: util-linux's `script` gives lowlat one.

use crate::{
    redfish::run::RedfishCaller,
    service::{PASSWORD, Service, USER},
};
use std::{
    io::{Read, Write},
    process::{Command, Stdio},
};

/// Runs lowlat on a terminal and types a line at the first prompt. Returns what it showed, and its exit code.
fn typed(arguments: &str, line: &str) -> Option<(String, Option<i32>)> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: the password prompt: there is no `script` (bsdutils)");
        return None;
    }
    let command = format!("{} bios audit {arguments} --user {USER}", crate::common::binary().display());
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let mut output = child.stdout.take().unwrap();
    let mut byte = [0];
    // Typed only when it is asked for: before, the terminal would show it.
    let is_asked =
        |shown: &[u8]| shown.ends_with(b": ") && shown.windows(12).any(|part| part == b"Password for");
    while !is_asked(&shown) && output.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
    }
    let mut input = child.stdin.take().unwrap();
    write!(input, "{line}").unwrap();
    input.flush().unwrap();
    output.read_to_end(&mut shown).unwrap();
    drop(input);
    let code = child.wait().unwrap().code();
    Some((String::from_utf8_lossy(&shown).into_owned(), code))
}

#[test]
fn the_password_is_asked_for_and_not_shown() {
    let service = Service::start();
    let desk = RedfishCaller::new(service.url());
    let line = format!("wrong\x15{PASSWORD}\r");
    let Some((shown, code)) = typed(&format!("--redfish {}", desk.url), &line) else { return };
    assert!(shown.contains("Password for operator at 127.0.0.1"), "{shown}");
    assert!(shown.contains("from profile trading"), "{shown}");
    assert!(!shown.contains(PASSWORD) && !shown.contains("wrong"), "{shown}");
    assert_eq!(code, Some(1));
}

#[test]
fn warnings_of_insecure_come_before_the_password_is_asked() {
    let services = [Service::start_tls("a.example.org"), Service::start_tls("b.example.org")];
    let desk = RedfishCaller::new(services[0].url());
    std::fs::write(desk.path("hosts"), services.each_ref().map(Service::url).join("\n")).unwrap();
    let line = format!("{PASSWORD}\r");
    let Some((shown, code)) = typed(&format!("--hosts {} --insecure", desk.path("hosts")), &line) else {
        return;
    };
    let (before, after) = shown.split_once("Password for operator at these services").unwrap();
    assert_eq!(
        (before.matches("warning: --insecure").count(), after.matches("warning:").count()),
        (2, 0),
        "{shown}"
    );
    assert_eq!(code, Some(1), "{shown}");
}
