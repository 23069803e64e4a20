//! OpenStack's sushy-emulator, an implementation of the service that other people wrote and use.

use crate::{
    common::venv::venv,
    redfish::run::{RedfishCaller, all_of, said},
    service::{PASSWORD, free_port},
};
use serde_json::Value;
use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const PACKAGE: &str = "sushy-tools==2.2.0";
const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redfish/emulator.conf.py");

/// The emulator as a process; it ends with this value.
struct Emulator {
    child: Child,
    url: String,
    _state: tempfile::TempDir,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, installed below target/ at the first run; or the reason why it cannot be.
fn installed() -> Result<PathBuf, String> {
    Ok(venv("sushy-emulator", PACKAGE)?.join("bin/sushy-emulator"))
}

fn start(program: &Path, tls: Option<(&str, &str)>) -> Emulator {
    let state = tempfile::tempdir().unwrap();
    let port = free_port();
    let log = state.path().join("log");
    let mut command = Command::new(program);
    command
        .args(["--config", CONFIGURATION, "--fake", "-i", "127.0.0.1", "-p", &port.to_string()])
        .env("LOWLAT_EMULATOR_STATE", state.path())
        .env("LOWLAT_EMULATOR_PASSWORD", PASSWORD)
        .stdin(Stdio::null())
        .stdout(File::create(&log).unwrap())
        .stderr(File::options().append(true).open(&log).unwrap());
    if let Some((certificate, key)) = tls {
        command.args(["--ssl-certificate", certificate, "--ssl-key", key]);
    }
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = || fs::read_to_string(&log).unwrap_or_default();
        assert!(child.try_wait().unwrap().is_none(), "the emulator ended: {}", log());
        assert!(began.elapsed() < Duration::from_secs(120), "the emulator does not listen: {}", log());
        std::thread::sleep(Duration::from_millis(50));
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    Emulator { child, url: format!("{scheme}://127.0.0.1:{port}"), _state: state }
}

fn attributes(path: &str) -> Value {
    serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap()["Attributes"].clone()
}

fn change_and_restore(program: &Path) {
    let emulator = start(program, None);
    let desk = RedfishCaller::new(emulator.url.clone());
    let guide = ["--profile", "guide-57037"];
    let bios = |arguments: &[&str]| desk.bios(&[arguments, &guide[..]].concat());
    let (code, text, talk) = bios(&["audit", "--save", "first"]);
    assert_eq!(code, 1, "{text}{talk}");
    all_of(&text, &["Sushy Emulator", "BiosAttributeRegistryP89.v1_0_0", "BootMode = Bios; wanted Uefi"]);
    assert!(!text.contains("registry was read"), "its registry is found: {text}");
    let (_, text, _) = bios(&["apply"]);
    all_of(&text, &["BootMode  Bios  -> Uefi", "Nothing was sent"]);
    let (code, text, talk) = bios(&["apply", "--yes"]);
    assert_eq!(code, 0, "{text}{talk}");
    all_of(&text, &["Sent (status 204)"]);
    let (code, text, _) = bios(&["audit", "--save", "second"]);
    assert_eq!(code, 4, "most rows have no attribute there: {text}");
    all_of(&text, &["Could not judge"]);
    assert_eq!(attributes(&desk.path("second/bios.json"))["BootMode"], "Uefi");
    let (code, text, talk) = desk.bios(&["apply", "--restore", "lowlat-bios-before.json", "--yes"]);
    assert_eq!(code, 0, "{text}{talk}");
    let (_, _, talk) = bios(&["audit", "--save", "third"]);
    assert_eq!(
        attributes(&desk.path("first/bios.json")),
        attributes(&desk.path("third/bios.json")),
        "{talk}"
    );
    // It accepts Basic authentication only, and its root needs none.
    let (code, _, talk) = said(&desk.command(&["audit", "--redfish", &desk.url]).output().unwrap());
    assert_eq!(code, 2);
    all_of(&talk, &["requires credentials"]);
    fs::write(desk.path("password"), "Not-the-password").unwrap();
    let (code, _, talk) = bios(&["audit"]);
    assert_eq!(code, 2);
    all_of(&talk, &["rejected user operator", "tried once"]);
}

fn over_tls(program: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("certificate"), made.cert.pem()).unwrap();
    fs::write(at("key"), made.signing_key.serialize_pem()).unwrap();
    let emulator = start(program, Some((&at("certificate"), &at("key"))));
    let desk = RedfishCaller::new(emulator.url.clone());
    let (code, _, talk) = desk.bios(&["audit"]);
    assert_eq!(code, 2);
    all_of(&talk, &["TLS with 127.0.0.1", "--ca FILE"]);
    let (code, text, talk) = desk.bios(&["audit", "--ca", &at("certificate")]);
    assert!(code != 2, "{text}{talk}");
    all_of(&text, &["Sushy Emulator"]);
}

#[test]
fn sushy_s_emulator_is_audited_changed_and_restored() {
    let program = match installed() {
        Ok(program) => program,
        Err(why) => {
            eprintln!("skipped: sushy's Redfish emulator cannot be installed: {why}");
            return;
        }
    };
    change_and_restore(&program);
    over_tls(&program);
}
