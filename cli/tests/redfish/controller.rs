//! The controller in this process: whole changes, and failures on the way, as users see them.

use crate::{
    redfish::run::{RedfishCaller, all_of, said},
    service::{Maker, PASSWORD, Reply, SESSIONS, SETTINGS, Service, USER, error},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

const GUIDE: [&str; 2] = ["--profile", "guide-57037"];

fn desk(service: &Service) -> RedfishCaller {
    RedfishCaller::new(service.url())
}

#[test]
fn an_audit_over_the_network_says_what_one_of_its_saved_answers_says() {
    let service = Service::start();
    let desk = desk(&service);
    let (code, online, talk) = desk.bios(&["audit", "--profile", "guide-57037", "--save", "kept/bmc7"]);
    assert_eq!(code, 1, "{talk}");
    all_of(&online, &["HPE ProLiant DL385 Gen10 Plus", "differs       firmware.smt"]);
    all_of(&talk, &["wrote kept/bmc7/system.json", "wrote kept/bmc7/registry.json"]);
    assert!(service.state().sessions.is_empty());
    let mut offline = vec!["audit", "--profile", "guide-57037"];
    for name in ["system", "bios", "settings", "registry"] {
        offline.extend(["--file", Box::leak(format!("kept/bmc7/{name}.json").into_boxed_str())]);
    }
    let (code, from_files, _) = said(&desk.command(&offline).output().unwrap());
    assert_eq!((code, from_files), (1, online));
    // A second run does not mix its answers with those of the first.
    let (code, _, talk) = desk.bios(&["audit", "--save", "kept/bmc7"]);
    assert_eq!(code, 2);
    all_of(&talk, &["kept/bmc7/system.json", "earlier run", "--save"]);
    let kept = fs::read_to_string(desk.path("kept/bmc7/bios.json")).unwrap();
    assert!(!kept.contains(PASSWORD));
}

#[test]
fn an_export_over_the_network_has_steps_and_the_way_back() {
    let service = Service::start();
    let desk = desk(&service);
    let (code, said, talk) =
        desk.bios(&["apply", "--dry-run", "--profile", "guide-57037", "--out", "change.json"]);
    assert_eq!((code, said.as_str()), (1, ""), "{talk}");
    let export: Value = serde_json::from_slice(&fs::read(desk.path("change.json")).unwrap()).unwrap();
    assert_eq!(export["steps"][0]["uri"], SETTINGS);
    assert_eq!(export["steps"].as_array().unwrap().len(), 2);
    assert_eq!(service.count(&format!("PATCH {SETTINGS}")), 0);
}

#[test]
fn a_change_goes_out_one_request_per_restart_and_comes_back_whole() {
    let service = Service::start();
    let desk = desk(&service);
    let first = service.state().active.clone();
    let apply = |more: &[&str]| desk.bios(&[&["apply"], more].concat());
    // Shown, and not sent.
    let (code, text, _) = apply(&GUIDE);
    assert_eq!(code, 1);
    all_of(
        &text,
        &["Request 1 of 2", "WorkloadProfile  GeneralPowerEfficientCompute  -> LowLatency", "Add --yes"],
    );
    assert_eq!(service.count(&format!("PATCH {SETTINGS}")), 0);
    assert!(!desk.dir.path().join("lowlat-bios-before.json").exists());
    // Sent: the first, and not the second before the restart.
    let yes = [&GUIDE[..], &["--yes"]].concat();
    let (code, text, talk) = apply(&yes);
    assert_eq!(code, 1, "{text}{talk}");
    all_of(
        &text,
        &["Sent (status 200)", "SystemResetRequired", "Restart the server", "run this command again"],
    );
    all_of(&talk, &["wrote lowlat-bios-before.json"]);
    assert_eq!(service.state().pending["WorkloadProfile"], "LowLatency");
    let (code, text, _) = desk.bios(&["audit", "--profile", "guide-57037"]);
    assert_eq!(code, 1);
    all_of(&text, &["WorkloadProfile = GeneralPowerEfficientCompute, after the restart LowLatency"]);
    let (code, _, talk) = apply(&yes);
    assert_eq!(code, 2);
    all_of(&talk, &["changes are already pending (WorkloadProfile)", "cannot send", "--with-pending"]);
    assert_eq!(service.count(&format!("PATCH {SETTINGS}")), 1);
    service.restart_host();
    let (code, text, talk) = apply(&yes);
    // The settings left out make it 1.
    assert_eq!(code, 1, "{text}{talk}");
    all_of(&text, &["Request", "ProcSMT", "Not as wanted, but left out", "`lowlat bios audit`"]);
    all_of(&talk, &["wrote lowlat-bios-before-2.json"]);
    service.restart_host();
    assert_eq!(service.state().active["ProcSMT"], "Disabled");
    // Restores the settings in the first file.
    let restore = ["--restore", "lowlat-bios-before.json", "--yes"];
    for _ in 0..4 {
        let (code, text, talk) = apply(&restore);
        service.restart_host();
        if code == 0 {
            all_of(&text, &["Restart the server"]);
            break;
        }
        assert_eq!(code, 1, "{text}{talk}");
    }
    assert_eq!(service.state().active, first);
    let (code, text, _) = apply(&restore);
    assert_eq!((code, text.trim()), (0, "Nothing to send."));
    assert!(!service.requests().iter().any(|request| request.contains("Reset")));
}

#[test]
fn the_way_back_is_written_before_anything_is_sent_and_never_over_an_old_one() {
    let service = Service::start();
    let desk = desk(&service);
    fs::write(desk.path("old.json"), "mine").unwrap();
    for (before, part) in [("old.json", "already exists"), ("none/x.json", "cannot write none/x.json")] {
        let (code, _, talk) = desk.bios(&["apply", "--yes", "--before", before]);
        assert_eq!(code, 2, "{talk}");
        all_of(&talk, &[part, "--before"]);
    }
    assert_eq!(fs::read_to_string(desk.path("old.json")).unwrap(), "mine");
    assert_eq!(service.count(&format!("PATCH {SETTINGS}")), 0);
    // Refused by the service: the file is there, whole.
    service.fault(|seen, _| {
        seen.is("PATCH", SETTINGS).then(|| error(400, "PropertyNotWritable", "Not that one."))
    });
    let (code, _, talk) = desk.bios(&["apply", "--yes", "--before", "new.json"]);
    assert_eq!(code, 2);
    all_of(&talk, &["status 400", "Not that one."]);
    let before: Value = serde_json::from_slice(&fs::read(desk.path("new.json")).unwrap()).unwrap();
    assert_eq!(before["snapshot"]["ProcSMT"], "Enabled");
    let (code, _, talk) = desk.bios(&["apply", "--restore", "old.json"]);
    assert_eq!(code, 2);
    all_of(&talk, &["old.json as JSON"]);
}

#[test]
fn a_success_without_an_effect_is_an_error() {
    let service = Service::start();
    let desk = desk(&service);
    service.fault(|seen, _| seen.is("PATCH", SETTINGS).then(|| Reply::json(200, &json!({}))));
    let (code, text, talk) = desk.bios(&["apply", "--yes", "--profile", "guide-57037"]);
    assert_eq!((code, text.as_str()), (2, ""));
    all_of(
        &talk,
        &["differ from the request", "WorkloadProfile = GeneralPowerEfficientCompute (sent LowLatency)"],
    );
    assert!(service.state().sessions.is_empty());
}

#[test]
fn other_pending_changes_are_kept_only_on_request() {
    let service = Service::start();
    let desk = desk(&service);
    service.state().pending.insert("AdminName".into(), json!("someone"));
    let (code, text, _) = desk.bios(&["apply"]);
    assert_eq!(code, 1);
    all_of(&text, &["1 setting already waits for the restart", "AdminName = , after the restart someone"]);
    let (code, _, talk) = desk.bios(&["apply", "--yes"]);
    assert_eq!(code, 2);
    all_of(&talk, &["(AdminName)", "--with-pending"]);
    let (_, text, talk) = desk.bios(&["apply", "--yes", "--with-pending", "--json"]);
    let outcome: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{talk}"));
    assert_eq!(outcome["document"], "lowlat bios apply");
    assert_eq!(
        (&outcome["sent"]["status"], &outcome["before"]),
        (&json!(200), &json!("lowlat-bios-before.json"))
    );
    assert_eq!(outcome["waiting"][0]["attribute"], "AdminName");
}

#[test]
fn unknown_pending_changes_are_kept_only_on_request() {
    let service = Service::start();
    let desk = desk(&service);
    let mut is_first = true;
    service.fault(move |seen, _| {
        let is_read = seen.is("GET", SETTINGS) && std::mem::take(&mut is_first);
        is_read.then(|| error(403, "InsufficientPrivilege", "Not for you."))
    });
    let (code, _, talk) = desk.bios(&["apply", "--yes"]);
    assert_eq!((code, service.count(&format!("PATCH {SETTINGS}"))), (2, 0), "{talk}");
    all_of(&talk, &["pending settings could not be read", "--with-pending"]);
    let (code, text, talk) = desk.bios(&["apply", "--yes"]);
    assert_eq!(code, 1, "{text}{talk}");
}

#[test]
fn credentials_come_from_private_files_only() {
    let service = Service::start();
    let desk = desk(&service);
    let with = |mode: u32, text: &str, arguments: &[&str]| {
        fs::write(desk.path("c"), text).unwrap();
        fs::set_permissions(desk.path("c"), fs::Permissions::from_mode(mode)).unwrap();
        let url = ["--redfish", &desk.url];
        said(&desk.command(&[&["audit"], &url[..], arguments].concat()).output().unwrap())
    };
    let lines = format!("user: {USER}\npassword: {PASSWORD}\n");
    assert_eq!(with(0o600, &lines, &["--credentials-file", "c"]).0, 1);
    let (code, _, talk) = with(0o644, &lines, &["--credentials-file", "c"]);
    assert_eq!(code, 2);
    all_of(&talk, &["--credentials-file c", "chmod 600"]);
    let (code, _, talk) = with(0o644, PASSWORD, &["--user", USER, "--password-file", "c"]);
    assert_eq!(code, 2);
    all_of(&talk, &["--password-file c", "chmod 600"]);
    let (code, _, talk) = with(0o600, "Not-the-password", &["--user", USER, "--password-file", "c"]);
    assert_eq!(code, 2);
    all_of(&talk, &["rejected user operator", "tried once"]);
    let (code, _, talk) = with(0o600, "", &[]);
    assert_eq!(code, 2);
    all_of(&talk, &["requires credentials", "--user"]);
    // No option takes a password, and an address with one is refused unrepeated.
    let (code, _, talk) = with(0o600, "", &["--password", "x"]);
    assert_eq!(code, 2);
    all_of(&talk, &["unexpected argument"]);
    let url = desk.url.replace("http://", &format!("http://{USER}:{PASSWORD}@"));
    let (code, _, talk) = said(&desk.command(&["audit", "--redfish", &url]).output().unwrap());
    assert_eq!(code, 2);
    all_of(&talk, &["contains an '@'", "--password-file"]);
}

#[test]
fn conflicting_arguments_are_refused() {
    let desk = RedfishCaller::new("http://127.0.0.1:1".into());
    for (arguments, part) in [
        (&["audit"][..], "--file"),
        (&["apply", "--yes"], "--redfish"),
        (&["audit", "--redfish", "x", "--file", "y"], "cannot be used with"),
        (&["audit", "--file", "y", "--user", "x"], "--user requires a Redfish service"),
        (&["apply", "--dry-run", "--file", "y", "--save", "x"], "--save requires a Redfish service"),
        (&["audit", "--redfish", "x", "--password-file", "y"], "--user"),
        (&["audit", "--redfish", "x", "--timeout", "0s"], "1 s to 10 min"),
        (&["audit", "--redfish", "x", "--insecure", "--ca", "y"], "cannot be used with"),
        (&["audit", "--redfish", "http://192.0.2.7"], "sends the password in clear text"),
        (&["audit", "--redfish", "https://x/y"], "its path"),
        (&["apply", "--redfish", "x", "--restore", "y", "--profile", "trading"], "cannot be used with"),
        (&["apply", "--redfish", "x", "--accept-risk", "firmware.amd_iomu"], "did you mean"),
        (&["apply", "--redfish", "x", "--restore", "nowhere.json"], "nowhere.json"),
    ] {
        let (code, _, talk) = said(&desk.command(arguments).output().unwrap());
        assert_eq!(code, 2, "{arguments:?}: {talk}");
        all_of(&talk, &[part]);
    }
}

#[test]
fn certificates_are_verified_unless_insecure_is_given() {
    let service = Service::start_tls("127.0.0.1");
    let desk = desk(&service);
    let (code, _, talk) = desk.bios(&["audit"]);
    assert_eq!(code, 2);
    all_of(&talk, &["TLS with 127.0.0.1", "--ca FILE", "--insecure"]);
    fs::write(desk.path("ca.pem"), &service.certificate).unwrap();
    let (code, _, talk) = desk.bios(&["audit", "--ca", "ca.pem"]);
    assert_eq!((code, talk.as_str()), (1, ""));
    // CAs that the machine trusts.
    let trusting = |file: &str| {
        let mut command = desk.as_operator(&["audit"]);
        command.env_remove("SSL_CERT_DIR").env("SSL_CERT_FILE", desk.path(file));
        said(&command.output().unwrap())
    };
    assert_eq!(trusting("ca.pem").0, 1);
    let (code, _, talk) = trusting("none.pem");
    assert_eq!(code, 2);
    all_of(&talk, &["trusts no CA", "ca-certificates"]);
    let (code, _, talk) = desk.bios(&["audit", "--insecure"]);
    assert_eq!(code, 1);
    all_of(&talk, &["warning: --insecure", "can read the password"]);
}

#[test]
fn a_slow_service_is_told_with_the_setting_that_waits_longer() {
    let service = Service::start();
    let desk = desk(&service);
    service.fault(|seen, _| seen.is("GET", SETTINGS).then_some(Reply::Silence));
    let (code, _, talk) = desk.bios(&["audit", "--timeout", "3s"]);
    assert_eq!(code, 2);
    all_of(&talk, &["did not answer GET", "in 3 s", "--timeout"]);
    assert!(service.state().sessions.is_empty());
}

#[test]
fn ctrl_c_ends_the_session_and_has_its_exit_code() {
    let service = Service::start();
    let desk = desk(&service);
    let (reached, is_reached) = std::sync::mpsc::channel();
    service.fault(move |seen, _| {
        if seen.is("GET", SETTINGS) {
            let _ = reached.send(());
            std::thread::sleep(Duration::from_secs(3));
        }
        None
    });
    let child = desk.spawn(&["audit"]);
    is_reached.recv_timeout(Duration::from_secs(60)).expect("it comes to the settings");
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, text, talk) = said(&child.wait_with_output().unwrap());
    assert_eq!((code, text.as_str()), (130, ""), "{talk}");
    all_of(&talk, &["interrupted", "nothing was changed"]);
    assert!(service.state().sessions.is_empty());
    assert_eq!(service.count(&format!("POST {SESSIONS}")), 1);
}

/// The certificate that an error offers to pin.
fn pin_in(text: &str) -> String {
    let at = text.find("sha256:").unwrap_or_else(|| panic!("no fingerprint in {text}"));
    text[at..at + 71].to_owned()
}

#[test]
fn many_services_are_audited_and_one_that_fails_is_named() {
    let (plain, encrypted) = (Service::start(), Service::start_tls("bmc.example.org"));
    let desk = desk(&plain);
    let audit = |hosts: &str, more: &[&str]| {
        fs::write(desk.path("hosts"), hosts).unwrap();
        let password = desk.path("password");
        let file = ["audit", "--hosts", "hosts", "--user", USER, "--password-file", &password];
        said(&desk.command(&[&file[..], more].concat()).output().unwrap())
    };
    let hosts = format!("# two controllers\n{}\n\n{} # of desk 8\n", plain.url(), encrypted.url());
    let (code, text, talk) = audit(&hosts, &["--parallel", "1", "--save", "kept"]);
    assert_eq!(code, 1, "{text}{talk}");
    all_of(&text, &["2 servers", "HPE ProLiant DL385 Gen10 Plus", "not read", "1  firmware.smt", "sha256:"]);
    let folder = plain.url().replace("http://", "").replace(':', "-");
    all_of(&talk, &[&format!("wrote kept/{folder}/bios.json")]);
    let hosts = format!("{}\n{} {}\n", plain.url(), encrypted.url(), pin_in(&text));
    let page = ["--report", "servers.html", "--title", "desks"];
    let (code, text, _) = audit(&hosts, &[&["--json"][..], &page].concat());
    let html = fs::read_to_string(desk.path("servers.html")).unwrap();
    all_of(&html, &["2 servers", "firmware.smt", "<td>2</td>", "ProcSMT", "desks", &plain.url()]);
    let fleet: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &fleet["servers"][1]["address"]), (1, &encrypted.url().into()));
    assert_eq!((&fleet["differences"][0][1], &fleet["title"]), (&2.into(), &"desks".into()));
    let (_, text, _) = audit(&hosts, &["--anonymous", "--report", "anonymous.html"]);
    let html = fs::read_to_string(desk.path("anonymous.html")).unwrap();
    for (said, name) in [(&text, "server 2"), (&html, "server 1")] {
        assert!(said.contains(name) && !said.contains("127.0.0.1"), "{said}");
    }
    assert!(plain.state().sessions.is_empty() && encrypted.state().sessions.is_empty());
    for (hosts, part) in [("", "names no service"), ("bmc7 sha1:00", "line 1"), ("a sha256:00 c", "line 1")] {
        let (code, _, said) = audit(hosts, &[]);
        assert_eq!(code, 2, "{said}");
        all_of(&said, &["cannot use --hosts hosts", part]);
    }
    assert_eq!(audit("http://127.0.0.1:1\n", &[]).0, 2, "none was read");
}

#[test]
fn a_dell_is_changed_and_restored_in_the_order_that_its_controller_accepts() {
    let service = Service::start_as(Maker::Dell);
    let desk = desk(&service);
    let first = service.state().active.clone();
    let until_done = |arguments: &[&str]| {
        for restarts in 1..=4 {
            let (code, text, talk) = desk.bios(arguments);
            service.restart_host();
            if code == 0 {
                return (restarts, text);
            }
            assert_eq!(code, 1, "{text}{talk}");
        }
        panic!("{arguments:?} does not end");
    };
    let (restarts, _) = until_done(&["apply", "--yes"]);
    assert_eq!((restarts, &service.state().active["ProcC1E"]), (2, &json!("Disabled")));
    let (code, text, _) = desk.bios(&["audit"]);
    assert_eq!(code, 0, "{text}");
    // A setting that the controller refuses without a reason in its registry: the others are restored.
    service.state().firmware.refuses.push("LogicalProc".into());
    let restore = ["apply", "--yes", "--restore", "lowlat-bios-before.json"];
    let (code, text, talk) = desk.bios(&restore);
    assert_eq!(code, 1, "{text}{talk}");
    service.restart_host();
    let (code, text, talk) = desk.bios(&restore);
    assert_eq!(code, 1, "{text}{talk}");
    all_of(
        &text,
        &["Not sent, because the service refuses it: LogicalProc: The property LogicalProc is a read only"],
    );
    service.restart_host();
    let differing = || {
        first.keys().filter(|name| service.state().active[*name] != first[*name]).cloned().collect::<Vec<_>>()
    };
    assert_eq!(differing(), ["LogicalProc"]);
    let (code, _, talk) = desk.bios(&restore);
    assert_eq!(code, 2);
    all_of(&talk, &["LogicalProc is a read only property"]);
    service.state().firmware.refuses.clear();
    until_done(&restore);
    assert_eq!(differing(), Vec::<String>::new());
}

#[test]
fn a_change_waits_for_a_maintenance_window_that_the_service_confirms() {
    let service = Service::start_as(Maker::Dell);
    let desk = desk(&service);
    let window = ["--window-start", "2099-01-31T02:00:00Z", "--window-length", "30m"];
    let apply = |more: &[&str]| desk.bios(&[&["apply"], more, &window].concat());
    let (code, text, talk) = apply(&[]);
    assert_eq!(code, 1, "{talk}");
    all_of(&text, &["in the maintenance window of 2099-01-31T02:00:00Z for 30 min", "Nothing was sent"]);
    let (code, text, talk) = apply(&["--yes"]);
    assert_eq!(code, 1, "{talk}");
    all_of(
        &text,
        &["Pending until the maintenance window of 2099-01-31T02:00:00Z for 30 min", "may restart"],
    );
    let time = service.state().apply_time.clone().unwrap();
    assert_eq!(
        (&time["ApplyTime"], &time["MaintenanceWindowDurationInSeconds"]),
        (&json!("AtMaintenanceWindowStart"), &json!(1800))
    );
    let (_, text, _) = desk.bios(&["audit"]);
    all_of(
        &text,
        &["LogicalProc = Enabled, after the restart Disabled", "until the maintenance window of 2099"],
    );
    // The service takes the change and forgets the window.
    let forgetful = Service::start_as(Maker::Dell);
    forgetful.fault(|seen, state| {
        state.apply_time.take_if(|_| seen.is("GET", SETTINGS));
        None
    });
    let forgetful = RedfishCaller::new(forgetful.url());
    let (_, text, _) = forgetful.bios(&[&["apply", "--yes"], &window[..]].concat());
    all_of(&text, &["does not confirm the maintenance window"]);
    // Not offered, and not a time.
    let plain = Service::start();
    let plain = RedfishCaller::new(plain.url());
    let (code, _, talk) = plain.bios(&[&["apply", "--yes"], &window[..]].concat());
    assert_eq!(code, 2);
    all_of(&talk, &["does not offer AtMaintenanceWindowStart", "hint: omit --window-start"]);
    for (start, part) in [
        ("tomorrow", "RFC 3339"),
        ("2001-01-31T02:00:00Z", "in the past"),
        ("2099-01-31T02:00:00", "RFC 3339"),
    ] {
        let (code, _, talk) = desk.bios(&["apply", "--window-start", start, "--window-length", "30m"]);
        assert_eq!(code, 2);
        all_of(&talk, &[part]);
    }
}
