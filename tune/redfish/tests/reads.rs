//! Reading a service: by links only, within limits, with every failure reported.

use crate::service::{self, BIOS, PASSWORD, Reply, SESSIONS, SETTINGS, Service, USER, error};
use lowlat_bios::BiosAudit;
use lowlat_host::Profile;
use lowlat_redfish::{Client, Options, Origin, RedfishError, RedfishLimits, Resource, Saved, Trust};
use serde_json::json;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

mod common {
    use super::*;
    use lowlat_redfish::{Credentials, Secret};

    pub fn options(url: &str) -> Options {
        let credentials = Credentials { user: USER.into(), password: Secret::new(PASSWORD.into()) };
        Options {
            origin: Origin::parse(url, false).unwrap(),
            trust: Trust::System,
            credentials: Some(credentials),
            limits: RedfishLimits { request_time: Duration::from_secs(20), ..RedfishLimits::default() },
            stop: Arc::new(AtomicBool::new(false)),
        }
    }

    pub fn read_with(options: Options) -> Result<Saved, RedfishError> {
        let mut client = Client::open(options)?;
        lowlat_redfish::read(&mut client, None)
    }
}
use common::{options, read_with};

fn read(service: &Service) -> Result<Saved, RedfishError> {
    read_with(options(&service.url()))
}

/// The text of the error, which must never contain a secret.
fn said(service: &Service) -> String {
    let error = read(service).expect_err("this fault is an error");
    let words = format!("{error} {error:?}");
    assert!(!words.contains(PASSWORD) && !words.contains("token-"), "{words}");
    error.to_string()
}

fn all_of(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

#[test]
fn a_server_is_read_by_links_and_the_session_is_ended() {
    let service = Service::start();
    let saved = read(&service).unwrap();
    let kinds: Vec<Resource> = saved.answers.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [Resource::System, Resource::Bios, Resource::Settings, Resource::Registry]);
    let facts = saved.facts().unwrap();
    assert_eq!(facts.settings_uri.as_deref(), Some(SETTINGS));
    assert_eq!(facts.server.processor.as_deref(), Some("AMD EPYC 7F32 8-Core Processor"));
    let audit = BiosAudit::of(&facts, Profile::Guide57037);
    assert!(audit.counts.differences > 10, "{}", audit.counts.differences);
    let [advice] = audit.warnings.as_slice() else { panic!("{:?}", audit.warnings) };
    assert!(advice.contains("Low Latency first"), "{advice}");
    assert_eq!(service.count(&format!("POST {SESSIONS}")), 1);
    assert_eq!(service.count(&format!("DELETE {SESSIONS}s1")), 1);
    assert!(service.state().sessions.is_empty());
    assert!(service.state().seen.iter().all(|seen| seen.header("authorization").is_none()));
}

#[test]
fn services_without_sessions_get_basic_and_open_ones_no_credentials() {
    let service = Service::start();
    service.state().has_sessions = false;
    read(&service).unwrap();
    assert_eq!(service.state().logins, 0);
    // Sessions that the root names but the service refuses.
    for reply in [
        || error(405, "OperationNotAllowed", "no"),
        || error(503, "SessionLimitExceeded", "too many sessions"),
        || Reply::json(201, &json!({})),
    ] {
        let service = Service::start();
        service.fault(move |seen, _| seen.is("POST", SESSIONS).then(reply));
        read(&service).unwrap();
        assert_eq!(service.count(&format!("POST {SESSIONS}")), 1);
    }
    let service = Service::start();
    service.fault(|seen, state| {
        let basic = state.seen.iter().all(|seen| seen.header("x-auth-token").is_none());
        state.sessions = vec!["open".into()];
        let mut seen = seen.clone();
        seen.headers.push(("x-auth-token".into(), "open".into()));
        basic.then(|| service::route(state, &seen))
    });
    read_with(Options { credentials: None, ..options(&service.url()) }).unwrap();
}

#[test]
fn bad_credentials_are_tried_once() {
    use lowlat_redfish::{Credentials, Secret};
    for has_sessions in [true, false] {
        let service = Service::start();
        service.state().has_sessions = has_sessions;
        let credentials = Credentials { user: USER.into(), password: Secret::new("Wrong-one".into()) };
        let error =
            read_with(Options { credentials: Some(credentials), ..options(&service.url()) }).unwrap_err();
        all_of(&error.to_string(), &["rejected user operator", "tried once"]);
        let is_try = |seen: &&service::ReceivedRequest| {
            seen.method == "POST" || seen.header("authorization").is_some()
        };
        assert_eq!(service.state().seen.iter().filter(is_try).count(), 1, "{:?}", service.requests());
    }
    let service = Service::start();
    let error = read_with(Options { credentials: None, ..options(&service.url()) }).unwrap_err();
    all_of(&error.to_string(), &["requires credentials", "--user"]);
}

#[test]
fn a_service_that_repeats_the_password_does_not_make_us_repeat_it() {
    let service = Service::start();
    service.fault(|seen, _| {
        let echo = format!("no access for {}", String::from_utf8_lossy(&seen.body));
        seen.is("POST", SESSIONS).then(|| error(401, "UnauthorizedLoginAttempt", &echo))
    });
    all_of(&said(&service), &["rejected user", "***"]);
    let service = Service::start();
    service.fault(|seen, _| {
        let token = seen.header("x-auth-token").cloned().unwrap_or_default();
        seen.is("GET", BIOS).then(|| error(403, "InsufficientPrivilege", &format!("not with {token}")))
    });
    all_of(&said(&service), &["refused GET", "for user operator", "***", "privilege"]);
}

#[test]
fn an_expired_session_is_renewed_once() {
    let service = Service::start();
    let mut is_first = true;
    service.fault(move |seen, state| {
        if seen.is("GET", BIOS) && std::mem::take(&mut is_first) {
            state.sessions.clear();
        }
        None
    });
    read(&service).unwrap();
    assert_eq!(service.state().logins, 2);
    assert!(service.state().sessions.is_empty());
    // A session that expires at once, each time.
    let service = Service::start();
    service.fault(|seen, state| {
        if seen.is("GET", BIOS) {
            state.sessions.clear();
        }
        None
    });
    all_of(&said(&service), &["ended the session of operator twice"]);
    assert_eq!(service.state().logins, 2);
}

#[test]
fn one_of_several_systems_is_never_guessed() {
    let service = Service::start();
    service.state().systems = vec!["1", "blade-2"];
    all_of(&said(&service), &["2 systems", "1, blade-2", "--system"]);
    let with = |wanted: &str| {
        let mut client = Client::open(options(&service.url())).unwrap();
        lowlat_redfish::read(&mut client, Some(wanted))
    };
    assert_eq!(with("1").unwrap().answers.len(), 4);
    all_of(&with("9").unwrap_err().to_string(), &["no system \"9\"", "blade-2"]);
}

#[test]
fn missing_resources_are_reported() {
    let gone = |method: &'static str, path: &'static str| {
        let service = Service::start();
        service.fault(move |seen, _| {
            seen.is(method, path).then(|| error(404, "ResourceMissingAtURI", "Not here."))
        });
        service
    };
    let service = gone("GET", BIOS);
    all_of(&said(&service), &["system 1", "HPE ProLiant DL385 Gen10 Plus", "no Bios resource", "Not here."]);
    let service = Service::start();
    service.fault(|seen, _| {
        seen.is("GET", "/redfish/v1/Systems/1").then(|| Reply::json(200, &json!({"Id": "1"})))
    });
    all_of(&said(&service), &["no Bios resource"]);
    let service = gone("GET", "/redfish/v1/");
    all_of(&said(&service), &["has no /redfish/v1/"]);
    // Without the registry or pending settings the audit continues, and reports what is missing.
    let warned = |service: &Service| read(service).unwrap().facts().unwrap().warnings.join(" ");
    all_of(
        &warned(&gone("GET", "/redfish/v1/RegistryStore/en/bios/")),
        &["registry could not be read", "Not here."],
    );
    all_of(&warned(&gone("GET", SETTINGS)), &["pending settings could not be read"]);
}

#[test]
fn links_and_redirects_stay_on_the_host() {
    let redirect = |to: &'static str| {
        let service = Service::start();
        service.fault(move |seen, _| {
            seen.is("GET", BIOS).then(|| Reply::json(308, &json!({})).with("Location", to))
        });
        service
    };
    let elsewhere = "http://127.0.0.2:1/redfish/v1/systems/1/bios/";
    all_of(&said(&redirect(elsewhere)), &["127.0.0.2", "not followed"]);
    let round = redirect(BIOS);
    all_of(&said(&round), &["too many redirects"]);
    assert!(round.count(&format!("GET {BIOS}")) <= 5);
    let service = Service::start();
    service.fault(|seen, _| {
        seen.is("GET", BIOS)
            .then(|| Reply::json(301, &json!({})).with("Location", "/redfish/v1/Systems/1/Bios/"))
    });
    read(&service).unwrap();
    let service = Service::start();
    service.fault(|seen, _| {
        let place =
            json!({ "Location": [{ "Language": "en", "Uri": "https://registries.example.org/bios.json" }] });
        seen.path.contains("/Registries/Bios").then(|| Reply::json(200, &place))
    });
    let warnings = read(&service).unwrap().facts().unwrap().warnings.join(" ");
    all_of(&warnings, &["registries.example.org", "not followed"]);
}

#[test]
fn malformed_answers_give_distinct_errors() {
    let at_bios = |reply: fn() -> Reply| {
        let service = Service::start();
        service.fault(move |seen, _| seen.is("GET", BIOS).then(reply));
        service
    };
    let cut = at_bios(|| Reply::Cut { promised: 5000, body: br#"{"Attributes": {"#.to_vec() });
    all_of(&said(&cut), &["closed the connection", "GET /redfish/v1/systems/1/bios/"]);
    let closed = at_bios(|| Reply::Raw(Vec::new()));
    all_of(&said(&closed), &["closed the connection"]);
    all_of(&said(&at_bios(|| Reply::text(200, b"<html>\x1b[2JLogin"))), &["not JSON", "<html>"]);
    assert!(!said(&at_bios(|| Reply::text(200, b"<html>\x1b[2JLogin"))).contains('\x1b'));
    all_of(&said(&at_bios(|| Reply::text(200, b"[1]"))), &["no Attributes"]);
    all_of(&said(&at_bios(|| Reply::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec()))), &["does not speak HTTP"]);
    let deep = at_bios(|| Reply::text(200, "[".repeat(100_000).as_bytes()));
    all_of(&said(&deep), &["not JSON", "recursion"]);
    let busy = at_bios(|| error(503, "ServiceTemporarilyUnavailable", "Retry.").with("Retry-After", "17"));
    all_of(&said(&busy), &["busy", "again in 17 s"]);
    all_of(&said(&at_bios(|| error(500, "InternalError", "It broke."))), &["status 500", "It broke."]);
    // The session is ended after an error too.
    assert!(busy.state().sessions.is_empty() && cut.state().sessions.is_empty());
}

#[test]
fn bounds_hold_against_a_service_without_end() {
    let limited = |service: &Service, limits: RedfishLimits| {
        read_with(Options { limits, ..options(&service.url()) }).unwrap_err().to_string()
    };
    let at_bios = |reply: fn() -> Reply| {
        let service = Service::start();
        service.fault(move |seen, _| seen.is("GET", BIOS).then(reply));
        service
    };
    let short = RedfishLimits { request_time: Duration::from_secs(2), ..RedfishLimits::default() };
    all_of(&limited(&at_bios(|| Reply::Silence), short), &["did not answer GET", "in 2 s", "--timeout"]);
    all_of(&limited(&at_bios(|| Reply::Drip), short), &["did not answer GET", "--timeout"]);
    let small = RedfishLimits { answer_bytes_max: 100_000, ..RedfishLimits::default() };
    all_of(&limited(&at_bios(|| Reply::Endless), small), &["more than 100000 bytes"]);
    // Small on the wire, large uncompressed.
    let bomb = at_bios(|| Reply::text(200, &vec![b' '; 8 << 20]).packed());
    all_of(&limited(&bomb, small), &["more than 100000 bytes"]);
    let pages = Service::start();
    pages.fault(|seen, _| {
        seen.path.contains("/Systems/").then(|| {
            Reply::json(200, &json!({ "Members": [], "Members@odata.nextLink": "/redfish/v1/Systems/?page" }))
        })
    });
    let few = RedfishLimits { requests_max: 12, ..RedfishLimits::default() };
    all_of(&limited(&pages, few), &["12 requests were not enough"]);
    let late = Service::start();
    late.fault(|_, _| {
        std::thread::sleep(Duration::from_millis(300));
        None
    });
    let total = RedfishLimits { total_time: Duration::from_millis(500), ..RedfishLimits::default() };
    all_of(&limited(&late, total), &["too slow"]);
}

#[test]
fn a_closed_port_and_an_unknown_host_give_distinct_errors() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let words = |url: &str| read_with(options(url)).unwrap_err().to_string();
    all_of(&words(&format!("http://{free}")), &["cannot connect", "refused"]);
    all_of(&words("https://no-such-host.invalid"), &["cannot find host", "no-such-host.invalid"]);
}

#[test]
fn certificates_are_verified_unless_insecure_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start_tls("127.0.0.1");
    all_of(&said(&service), &["TLS with 127.0.0.1", "does not trust", "--ca FILE", "--insecure"]);
    assert!(service.requests().is_empty(), "nothing is sent to an untrusted service");
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, &service.certificate).unwrap();
    let with = |service: &Service, trust: Trust| read_with(Options { trust, ..options(&service.url()) });
    assert_eq!(with(&service, Trust::CaFile(ca.clone())).unwrap().answers.len(), 4);
    assert_eq!(with(&service, Trust::Anybody).unwrap().answers.len(), 4);
    let other = Service::start_tls("bmc.example.org");
    std::fs::write(&ca, &other.certificate).unwrap();
    all_of(
        &with(&other, Trust::CaFile(ca.clone())).unwrap_err().to_string(),
        &["another name", "--insecure"],
    );
    all_of(&with(&service, Trust::CaFile(ca.clone())).unwrap_err().to_string(), &["does not trust"]);
    std::fs::write(&ca, "no certificate").unwrap();
    all_of(
        &with(&service, Trust::CaFile(ca)).unwrap_err().to_string(),
        &["--ca", "no certificate in PEM format"],
    );
    let plain = Service::start();
    let url = plain.url().replace("http://", "https://");
    all_of(&read_with(options(&url)).unwrap_err().to_string(), &["TLS with"]);
}

/// A CA certificate used as a server's, as many controllers generate.
#[test]
fn a_certificate_that_is_its_own_ca_can_be_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let pinned = |service: &Service, certificates: &str| {
        let ca = dir.path().join("own.pem");
        std::fs::write(&ca, certificates).unwrap();
        read_with(Options { trust: Trust::CaFile(ca), ..options(&service.url()) })
    };
    let own = Service::start_tls_as_ca("127.0.0.1");
    all_of(&said(&own), &["TLS with 127.0.0.1", "--ca FILE"]);
    assert_eq!(pinned(&own, &own.certificate).unwrap().answers.len(), 4);
    // Another certificate for the same name belongs to another service, whatever it claims.
    let other = Service::start_tls_as_ca("127.0.0.1");
    all_of(&pinned(&other, &own.certificate).unwrap_err().to_string(), &["TLS with", "--ca FILE"]);
    assert!(other.requests().is_empty(), "nothing is sent to an untrusted service");
    // The certificate as one of several, and a proper certificate beside it, still work.
    let proper = Service::start_tls("127.0.0.1");
    let both = format!("{}{}", own.certificate, proper.certificate);
    assert!(pinned(&own, &both).is_ok() && pinned(&proper, &both).is_ok());
    // Its name and validity period are verified.
    let elsewhere = Service::start_tls_as_ca("bmc.example.org");
    all_of(&pinned(&elsewhere, &elsewhere.certificate).unwrap_err().to_string(), &["another name"]);
    let old = Service::start_tls_expired_ca("127.0.0.1");
    all_of(&pinned(&old, &old.certificate).unwrap_err().to_string(), &["expired"]);
    // A server that presents the certificate without its key gets nothing.
    let thief = Service::start_tls_with_certificate_of(&own);
    assert!(pinned(&thief, &own.certificate).is_err());
    assert!(thief.requests().is_empty());
}

#[test]
fn ctrl_c_ends_the_read_and_the_session() {
    let service = Service::start();
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    service.fault(move |seen, _| {
        if seen.is("GET", BIOS) {
            raised.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        None
    });
    let error = read_with(Options { stop, ..options(&service.url()) }).unwrap_err();
    assert!(error.is_interrupted(), "{error}");
    assert!(service.state().sessions.is_empty());
    assert_eq!(service.count(&format!("GET {SETTINGS}")), 0);
}

#[test]
fn junk_in_place_of_any_answer_causes_no_panic() {
    let paths = [
        "/redfish/v1/",
        SESSIONS,
        "/redfish/v1/Systems/",
        "/redfish/v1/Systems/1/",
        BIOS,
        SETTINGS,
        "/redfish/v1/Registries/",
        "/redfish/v1/Registries/BiosAttributeRegistryA42.v1_1_24/",
        "/redfish/v1/RegistryStore/en/bios/",
    ];
    let junk = [
        json!(null),
        json!([]),
        json!({}),
        json!({ "Members": 7, "Attributes": 7, "Location": 7, "RegistryEntries": 7, "Systems": 7, "Bios": 7 }),
        json!({ "Members": [7], "Attributes": { "ProcSMT": [7] }, "Location": [7], "RegistryEntries": { "Attributes": [7] } }),
        json!({ "Members": [{ "@odata.id": "\u{0}" }], "Systems": { "@odata.id": "//" }, "Location": [{ "Uri": { "extref": 7 } }] }),
        json!({ "@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "Bios": { "@odata.id": BIOS }, "Manufacturer": 7 }),
        json!({ "Attributes": {}, "@Redfish.Settings": { "SettingsObject": { "@odata.id": BIOS } }, "AttributeRegistry": "" }),
    ];
    for path in paths {
        for junk in &junk {
            let service = Service::start();
            let answer = junk.clone();
            service.fault(move |seen, _| {
                (seen.method != "DELETE" && seen.path == path).then(|| Reply::json(200, &answer))
            });
            if let Ok(saved) = read(&service) {
                let _ = saved.facts();
            }
            assert!(service.state().sessions.is_empty(), "{path} {junk}");
        }
    }
}

/// The fingerprint that an error reports.
fn fingerprint(error: &RedfishError) -> String {
    let text = error.to_string();
    let at = text.find("sha256:").unwrap_or_else(|| panic!("no fingerprint in {text}"));
    text[at..at + 71].to_owned()
}

fn read_pinned(service: &Service, pin: &str) -> Result<Saved, RedfishError> {
    read_with(Options { trust: Trust::fingerprint(pin).unwrap(), ..options(&service.url()) })
}

#[test]
fn a_certificate_is_accepted_by_its_fingerprint_whatever_else_it_says() {
    let elsewhere = Service::start_tls("bmc.example.org");
    let old = Service::start_tls_expired_ca("127.0.0.1");
    for service in [&elsewhere, &old] {
        let refusal = read(service).unwrap_err();
        let pin = fingerprint(&refusal);
        all_of(&refusal.to_string(), &["TLS with", &format!("--pin {pin}")]);
        assert_eq!(read_pinned(service, &pin).unwrap().answers.len(), 4);
    }
    let pin = fingerprint(&read(&old).unwrap_err());
    let other = read_pinned(&elsewhere, &pin).unwrap_err();
    all_of(
        &other.to_string(),
        &["another fingerprint than --pin", &fingerprint(&read(&elsewhere).unwrap_err())],
    );
    // The certificate alone proves nothing.
    let thief = Service::start_tls_with_certificate_of(&old);
    all_of(&read_pinned(&thief, &pin).unwrap_err().to_string(), &["TLS with"]);
    assert!(thief.requests().is_empty());
}

/// Certificates of version 1, without extensions, as older controllers make them.
#[test]
fn certificates_of_version_1_are_accepted_by_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    let openssl = |arguments: &str| {
        let run = std::process::Command::new("openssl").args(arguments.split(' ')).current_dir(&dir).output();
        run.is_ok_and(|run| run.status.success())
    };
    for key in ["ec -pkeyopt ec_paramgen_curve:P-256", "rsa:2048"] {
        let request = format!("req -newkey {key} -nodes -keyout key.pem -out req.pem -subj /CN=bmc");
        if !(openssl(&request) && openssl("x509 -req -in req.pem -signkey key.pem -days 2 -out cert.pem")) {
            eprintln!("skipped: certificates_of_version_1_are_accepted_by_fingerprint: openssl made none");
            return;
        }
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let service = Service::start_tls_with_pem(&read("cert.pem"), &read("key.pem"));
        let pin = fingerprint(&read_with(options(&service.url())).unwrap_err());
        assert_eq!(read_pinned(&service, &pin).unwrap().answers.len(), 4, "{key}");
        let thief = Service::start_tls_with_certificate_of(&service);
        assert!(read_pinned(&thief, &pin).is_err());
    }
}

/// Behind a tunnel the service names an address that this host cannot reach.
#[test]
fn absolute_links_into_the_service_are_asked_through_the_tunnel() {
    let service = Service::start();
    service.fault(|seen, state| {
        if !seen.is("POST", SESSIONS) {
            return None;
        }
        let mut reply = service::route(state, seen);
        if let Reply::Whole { headers, .. } = &mut reply {
            headers.retain(|(name, _)| name != "Location");
        }
        Some(reply.with("Location", "https://10.255.0.9/redfish/v1/SessionService/Sessions/s1"))
    });
    read(&service).unwrap();
    assert_eq!(service.count("DELETE /redfish/v1/SessionService/Sessions/s1"), 1);
}

#[test]
fn a_registry_that_is_refused_leaves_an_audit_without_choices() {
    for reply in [
        (|| error(403, "InsufficientPrivilege", "Not for you.")) as fn() -> Reply,
        || error(500, "InternalError", "It broke."),
        || Reply::text(200, b"<html>Login"),
        || Reply::text(200, br#"{"RegistryEntries": {}}"#),
    ] {
        let service = Service::start();
        service.fault(move |seen, _| seen.path.contains("RegistryStore").then(reply));
        let facts = read(&service).unwrap().facts().unwrap();
        assert!(facts.registry.is_none());
        all_of(&facts.warnings.join(" "), &["registry", "accepted values are not checked"]);
        assert!(BiosAudit::of(&facts, Profile::Trading).counts.judged > 40);
    }
}

#[test]
fn pending_settings_that_cannot_be_read_leave_an_audit() {
    for (reply, part) in [
        ((|| error(500, "InternalError", "It broke.")) as fn() -> Reply, "It broke."),
        (|| Reply::text(200, b"<html>Login"), "not JSON"),
        (|| Reply::text(200, br#"{"Attributes": "none", "Id": "settings"}"#), "the text \"none\""),
    ] {
        let service = Service::start();
        service.fault(move |seen, _| seen.is("GET", SETTINGS).then(reply));
        let facts = read(&service).unwrap().facts().unwrap();
        assert!(facts.pending.is_none());
        all_of(&facts.warnings.join(" "), &["pending settings could not be read", part]);
        assert!(BiosAudit::of(&facts, Profile::Trading).counts.judged > 40);
    }
}

#[test]
fn a_registry_that_is_packed_without_saying_so_is_read() {
    use std::io::Write as _;
    let service = Service::start();
    service.fault(|seen, _| {
        seen.path.contains("RegistryStore").then(|| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(service::fixture("hpe-ilo5-registry.json").to_string().as_bytes()).unwrap();
            Reply::text(200, &packer.finish().unwrap())
        })
    });
    assert!(read(&service).unwrap().facts().unwrap().registry.is_some());
}

#[test]
fn a_service_that_names_no_settings_resource_is_asked_in_the_usual_places() {
    let with = |place: &'static str, allow: &'static str| {
        let service = Service::start();
        service.fault(move |seen, state| {
            let bios = || {
                let mut bios = service::fixture("hpe-ilo5-bios.json");
                for member in ["@Redfish.Settings", "Oem"] {
                    bios.as_object_mut().unwrap().remove(member);
                }
                bios["Attributes"] = state.active.clone().into();
                bios
            };
            match seen.path.as_str() {
                BIOS => Some(Reply::json(200, &bios()).with("Allow", allow)),
                path if path.ends_with(place) => {
                    Some(Reply::json(200, &json!({"@odata.type": "#Bios.v1_0_0.Bios", "@odata.id": path})))
                }
                path if path.to_lowercase().contains("/bios/") => {
                    Some(error(404, "ResourceMissingAtURI", "None."))
                }
                _ => None,
            }
        });
        read(&service).unwrap().facts().unwrap()
    };
    let bios = BIOS.trim_end_matches('/');
    let sd = with("/bios/SD", "GET");
    assert_eq!(sd.settings_uri, Some(format!("{bios}/SD")));
    assert_eq!(sd.pending.map(|pending| pending.len()), Some(0));
    assert_eq!(with("nowhere", "GET, PATCH").settings_uri.as_deref(), Some(BIOS));
    assert_ne!(with("nowhere", "GET").settings_uri.as_deref(), Some(BIOS));
}

#[test]
fn a_busy_service_is_asked_again_when_it_says_so() {
    let service = Service::start();
    let mut left = 2;
    service.fault(move |seen, _| {
        let is_put_off = seen.is("GET", BIOS) && left > 0;
        left -= i32::from(is_put_off);
        is_put_off.then(|| error(503, "ServiceTemporarilyUnavailable", "Later.").with("Retry-After", "0"))
    });
    assert_eq!(read(&service).unwrap().answers.len(), 4);
}

#[test]
fn a_password_that_must_be_changed_is_reported() {
    let service = Service::start();
    service.fault(|seen, _| {
        seen.is("POST", SESSIONS).then(|| error(403, "PasswordChangeRequired", "Change it."))
    });
    all_of(&said(&service), &["requires a new password", USER]);
}
