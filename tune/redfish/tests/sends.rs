//! Changing a service: its answers count only if its settings show the change.

use crate::service::{self, PASSWORD, Reply, SETTINGS, Service, State, USER, error};
use lowlat_bios::{BiosFacts, Request};
use lowlat_redfish::{
    Client, Credentials, Options, Origin, RedfishError, RedfishLimits, Secret, Sent, Trust,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const TASK: &str = "/redfish/v1/TaskService/Tasks/7";

fn limits() -> RedfishLimits {
    RedfishLimits {
        request_time: Duration::from_secs(20),
        read_back_time: Duration::from_millis(300),
        task_time: Duration::from_secs(20),
        ..RedfishLimits::default()
    }
}

fn options(service: &Service, limits: RedfishLimits) -> Options {
    Options {
        origin: Origin::parse(&service.url(), false).unwrap(),
        trust: Trust::System,
        credentials: Some(Credentials { user: USER.into(), password: Secret::new(PASSWORD.into()) }),
        limits,
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn smt_off(facts: &BiosFacts) -> Request {
    let body = json!({ "Attributes": { "ProcSMT": "Disabled", "MinimumSevAsid": 5 } });
    Request {
        method: "PATCH",
        uri: facts.settings_uri.clone(),
        body,
        follows: Vec::new(),
        window: None,
        then: "",
    }
}

fn send_with(options: Options) -> Result<Sent, RedfishError> {
    let mut client = Client::open(options)?;
    let saved = lowlat_redfish::read(&mut client, None)?;
    let facts = saved.facts().unwrap();
    lowlat_redfish::send(&mut client, &saved, &facts, &smt_off(&facts), false)
}

fn send(service: &Service) -> Result<Sent, RedfishError> {
    send_with(options(service, limits()))
}

fn said(service: &Service) -> String {
    let error = send(service).expect_err("this fault is an error");
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    assert!(service.state().sessions.is_empty(), "the session is ended");
    error.to_string()
}

fn all_of(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// Answers the PATCH this way; the closure does what the controller does with it.
fn at_patch(reply: impl Fn(&service::ReceivedRequest, &mut State) -> Reply + Send + 'static) -> Service {
    let service = Service::start();
    service.fault(move |seen, state| seen.is("PATCH", SETTINGS).then(|| reply(seen, state)));
    service
}

fn take(state: &mut State, seen: &service::ReceivedRequest) {
    let _ = service::route(state, seen);
}

#[test]
fn a_change_is_sent_with_the_state_it_was_made_for_and_read_back() {
    let service = Service::start();
    let sent = send(&service).unwrap();
    assert_eq!((sent.status, sent.path.as_str()), (200, SETTINGS));
    assert_eq!(sent.messages, ["SystemResetRequired"]);
    assert_eq!(sent.waiting_task, None);
    let state = service.state();
    assert_eq!(
        (&state.active["ProcSMT"], &state.pending["ProcSMT"]),
        (&json!("Enabled"), &json!("Disabled"))
    );
    let patch = state.seen.iter().find(|seen| seen.method == "PATCH").unwrap();
    assert_eq!(patch.header("if-match").map(String::as_str), Some("W/\"0000000000000001\""));
    assert_eq!(patch.json()["Attributes"]["MinimumSevAsid"], 5);
    drop(state);
    let requests = service.requests();
    let at = |wanted: &str| requests.iter().rposition(|request| request == wanted).unwrap();
    assert!(at(&format!("GET {SETTINGS}")) > at(&format!("PATCH {SETTINGS}")), "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains("Reset")), "the server is never restarted");
}

#[test]
fn a_success_without_an_effect_is_detected() {
    let service =
        at_patch(|_, _| Reply::json(200, &json!({ "Messages": [{ "MessageId": "Base.1.8.Success" }] })));
    let words = said(&service);
    all_of(
        &words,
        &["status 200", "ProcSMT = Enabled (sent Disabled)", "MinimumSevAsid = 1 (sent 5)", "Success"],
    );
    all_of(&words, &["lowlat bios audit"]);
    // Half of the change.
    let half = at_patch(|_, state| {
        state.pending.insert("ProcSMT".into(), json!("Disabled"));
        Reply::json(200, &json!({}))
    });
    let words = said(&half);
    assert!(words.contains("MinimumSevAsid") && !words.contains("ProcSMT"), "{words}");
}

#[test]
fn refusals_are_reported_in_the_service_s_words() {
    let refused = at_patch(|_, _| error(400, "PropertyNotWritable", "The property ProcSMT is read only."));
    all_of(&said(&refused), &["status 400", "ProcSMT is read only", "PropertyNotWritable"]);
    let poor = at_patch(|_, _| error(403, "InsufficientPrivilege", "Insufficient privilege."));
    all_of(&said(&poor), &["refused PATCH", "for user operator", "ConfigureComponents"]);
    let busy =
        at_patch(|_, _| error(503, "ServiceTemporarilyUnavailable", "In POST.").with("Retry-After", "60"));
    all_of(&said(&busy), &["In POST.", "60 s"]);
    for service in [&refused, &poor, &busy] {
        assert_eq!(service.state().pending["ProcSMT"], "Enabled");
    }
}

#[test]
fn a_change_by_another_client_in_between_prevents_sending() {
    let service = Service::start();
    service.fault(|seen, state| {
        // After the settings were read, before the change is sent.
        if seen.path.contains("/RegistryStore/") {
            state.pending.insert("AcpiSlit".into(), json!("Disabled"));
            state.etag += 1;
        }
        None
    });
    all_of(&said(&service), &["another client changed", "nothing was changed"]);
    assert_eq!(service.state().pending["ProcSMT"], "Enabled");
}

#[test]
fn a_service_that_rejects_its_own_etags_is_not_asked_to_compare() {
    let service = Service::start();
    service.fault(|seen, _| {
        let compares = seen.is("PATCH", SETTINGS) && seen.header("if-match").is_some();
        compares.then(|| error(412, "PreconditionFailed", "The ETag supplied did not match."))
    });
    assert_eq!(send(&service).unwrap().status, 200);
    assert_eq!(service.count(&format!("PATCH {SETTINGS}")), 2);
}

#[test]
fn a_session_that_expires_before_the_change_is_renewed() {
    let service = Service::start();
    let mut is_first = true;
    service.fault(move |seen, state| {
        if seen.is("PATCH", SETTINGS) && std::mem::take(&mut is_first) {
            state.sessions.clear();
        }
        None
    });
    assert_eq!(send(&service).unwrap().status, 200);
    assert_eq!(service.state().logins, 2);
}

#[test]
fn errors_after_sending_leave_the_outcome_open() {
    let unknown = ["the change had been sent", "lowlat bios audit"];
    let cut = at_patch(|seen, state| {
        take(state, seen);
        Reply::Cut { promised: 100, body: b"{".to_vec() }
    });
    all_of(&said(&cut), &["closed the connection", unknown[0], unknown[1]]);
    let silent = at_patch(|_, _| Reply::Silence);
    let short = RedfishLimits { request_time: Duration::from_secs(2), ..limits() };
    let words = send_with(options(&silent, short)).unwrap_err().to_string();
    all_of(&words, &["did not answer PATCH", unknown[0], unknown[1]]);
    // The change was accepted, and the service disappears before it is read back.
    let away = Service::start();
    let mut is_sent = false;
    away.fault(move |seen, _| {
        is_sent |= seen.method == "PATCH";
        (is_sent && seen.is("GET", SETTINGS)).then(|| error(503, "ServiceTemporarilyUnavailable", "Away."))
    });
    all_of(&said(&away), &["Away.", unknown[0]]);
    // Ctrl-C in the middle.
    let service = Service::start();
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    service.fault(move |seen, _| {
        if seen.method == "PATCH" {
            raised.store(true, Ordering::Relaxed);
        }
        None
    });
    let error = send_with(Options { stop, ..options(&service, limits()) }).unwrap_err();
    assert!(error.is_interrupted());
    all_of(&error.to_string(), &unknown);
    assert!(service.state().sessions.is_empty());
}

/// The PATCH creates a task; polls of it return these states in turn, the last one repeatedly.
fn with_task(states: &'static [&'static str], at_end: impl Fn(&mut State) + Send + 'static) -> Service {
    let service = Service::start();
    let mut looks = 0;
    service.fault(move |seen, state| {
        if seen.is("PATCH", SETTINGS) {
            if states.last() == Some(&"Pending") {
                take(state, seen);
            }
            return Some(Reply::json(202, &json!({ "@odata.id": TASK })).with("Location", TASK));
        }
        if !seen.is("GET", TASK) {
            return None;
        }
        let now = states.get(looks).or(states.last())?;
        looks += 1;
        if *now == "gone" {
            return Some(error(404, "ResourceMissingAtURI", "gone"));
        }
        if *now == "Completed" {
            at_end(state);
        }
        let code = if *now == "Running" { 202 } else { 200 };
        let messages = json!([{ "Message": "The BIOS said so." }]);
        Some(Reply::json(code, &json!({ "TaskState": now, "Messages": messages })).with("Retry-After", "0"))
    });
    service
}

fn smt_taken(state: &mut State) {
    for (name, value) in [("ProcSMT", json!("Disabled")), ("MinimumSevAsid", Value::from(5))] {
        state.pending.insert(name.into(), value);
    }
}

#[test]
fn a_task_is_awaited_and_its_result_is_verified() {
    let service = with_task(&["Running", "Running", "Completed"], smt_taken);
    let sent = send(&service).unwrap();
    assert_eq!((sent.status, &sent.waiting_task), (202, &None));
    assert_eq!(service.count(&format!("GET {TASK}")), 3);
    all_of(&said(&with_task(&["Running", "Completed"], |_| ())), &["status 202", "ProcSMT = Enabled"]);
    all_of(&said(&with_task(&["Running", "Exception"], |_| ())), &[TASK, "Exception", "The BIOS said so."]);
    all_of(&said(&with_task(&["gone"], |_| ())), &["ProcSMT = Enabled"]);
    // A task that ends only during the restart, and one that never ends.
    let sent = send(&with_task(&["Running", "Pending"], |_| ())).unwrap();
    assert_eq!(sent.waiting_task.as_deref(), Some(TASK));
    let endless = with_task(&["Running"], |_| ());
    let bounded = RedfishLimits { task_time: Duration::from_millis(600), ..limits() };
    all_of(&send_with(options(&endless, bounded)).unwrap_err().to_string(), &["ProcSMT = Enabled"]);
    assert!(endless.count(&format!("GET {TASK}")) < 12);
    // A task on another host is not followed.
    let elsewhere = at_patch(|_, _| Reply::json(202, &json!({})).with("Location", "http://127.0.0.2:1/task"));
    all_of(&said(&elsewhere), &["127.0.0.2", "not followed", "the change had been sent"]);
}
