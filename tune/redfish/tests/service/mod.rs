//! A management controller for tests: a small HTTP(S) server in this process, in iLO's layout, with faults on
//! demand. It follows the specification unless a fault handles the request.
#![allow(dead_code, reason = "each test file uses a part")]

mod firmware;
mod wire;

pub use firmware::{Firmware, Maker};
use serde_json::{Map, Value, json};
use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};
pub use wire::{ReceivedRequest, Reply};

pub const USER: &str = "operator";
/// A password that occurs in no other text, so that leaks are found.
pub const PASSWORD: &str = "Zq7-correct-horse";
pub const BIOS: &str = "/redfish/v1/systems/1/bios/";
pub const SETTINGS: &str = "/redfish/v1/systems/1/bios/settings/";
pub const SESSIONS: &str = "/redfish/v1/SessionService/Sessions/";

/// Handles a request instead of the controller; `None` leaves it to the controller.
pub type Fault = Box<dyn FnMut(&ReceivedRequest, &mut State) -> Option<Reply> + Send>;

pub struct State {
    pub active: Map<String, Value>,
    pub pending: Map<String, Value>,
    pub seen: Vec<ReceivedRequest>,
    pub sessions: Vec<String>,
    pub logins: usize,
    pub etag: usize,
    pub has_sessions: bool,
    pub systems: Vec<&'static str>,
    pub settings_messages: Value,
    pub firmware: Firmware,
    /// The annotation of the last change that names when it is applied.
    pub apply_time: Option<Value>,
    documents: Documents,
    fault: Option<Fault>,
}

/// The running server; dropping it stops the server.
pub struct Service {
    pub address: SocketAddr,
    /// The certificate as PEM; empty without TLS.
    pub certificate: String,
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
}

pub fn fixture(name: &str) -> Value {
    // Tests of the command use this file too.
    let top =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    let path = top.unwrap().join("fixtures/redfish").join(name);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

/// What a service answers besides its state.
struct Documents {
    system: Value,
    bios: Value,
    registry_id: String,
}

impl Documents {
    fn of(maker: Maker) -> (Self, Value) {
        let (system, bios, registry) = match maker {
            Maker::Hpe => (
                fixture("hpe-ilo5-as-guide.json")["/redfish/v1/systems/1/"].clone(),
                fixture("hpe-ilo5-bios.json"),
                fixture("hpe-ilo5-registry.json"),
            ),
            Maker::Dell => {
                let all = fixture("dell-idrac.json");
                (all["/redfish/v1/systems/1/"].clone(), all[BIOS].clone(), all["registry"].clone())
            }
        };
        let registry_id = bios["AttributeRegistry"].as_str().unwrap().to_owned();
        (Self { system, bios, registry_id }, registry)
    }
}

impl Service {
    pub fn start() -> Self {
        Self::start_as(Maker::Hpe)
    }

    pub fn start_as(maker: Maker) -> Self {
        Self::listen_as(maker, None, String::new())
    }

    /// Starts with a private certificate for this name.
    pub fn start_tls(name: &str) -> Self {
        Self::start_tls_with(&rcgen::CertificateParams::new([name.to_owned()]).unwrap())
    }

    /// Starts with a certificate marked as a CA's.
    pub fn start_tls_as_ca(name: &str) -> Self {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self::start_tls_with(&params)
    }

    /// Like [`Service::start_tls_as_ca`], with an expired certificate.
    pub fn start_tls_expired_ca(name: &str) -> Self {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        Self::start_tls_with(&params)
    }

    /// Presents the certificate of another service without its key.
    pub fn start_tls_with_certificate_of(other: &Self) -> Self {
        Self::start_tls_with_pem(&other.certificate, &rcgen::KeyPair::generate().unwrap().serialize_pem())
    }

    /// Presents a certificate as it is, without checking it.
    pub fn start_tls_with_pem(certificate: &str, key: &str) -> Self {
        use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        let shown = rustls::sign::CertifiedKey::new(vec![der], key);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(shown)));
        Self::listen(Some(Arc::new(config)), certificate.to_owned())
    }

    fn start_tls_with(params: &rcgen::CertificateParams) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Self::listen(Some(Arc::new(config)), certificate.pem())
    }

    fn listen(tls: Option<Arc<rustls::ServerConfig>>, certificate: String) -> Self {
        Self::listen_as(Maker::Hpe, tls, certificate)
    }

    fn listen_as(maker: Maker, tls: Option<Arc<rustls::ServerConfig>>, certificate: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (documents, registry) = Documents::of(maker);
        let attributes = documents.bios["Attributes"].as_object().unwrap().clone();
        let state = Arc::new(Mutex::new(State {
            active: attributes.clone(),
            pending: attributes,
            seen: Vec::new(),
            sessions: Vec::new(),
            logins: 0,
            etag: 1,
            has_sessions: true,
            systems: vec!["1"],
            settings_messages: json!([]),
            firmware: Firmware::new(maker, registry),
            apply_time: None,
            documents,
            fault: None,
        }));
        let ended = Arc::new(AtomicBool::new(false));
        let service = Self { address, certificate, state, ended };
        let (state, ended) = (Arc::clone(&service.state), Arc::clone(&service.ended));
        std::thread::spawn(move || {
            wire::serve(&listener, tls.as_ref(), &ended, &move |seen| answer(&state, &seen));
        });
        service
    }

    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}", self.address)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn fault(&self, fault: impl FnMut(&ReceivedRequest, &mut State) -> Option<Reply> + Send + 'static) {
        self.state().fault = Some(Box::new(fault));
    }

    /// Requests as "METHOD path", in order.
    pub fn requests(&self) -> Vec<String> {
        self.state().seen.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }

    pub fn count(&self, request: &str) -> usize {
        self.requests().iter().filter(|seen| *seen == request).count()
    }

    /// Simulates the restart of the server: pending settings and what they force take effect.
    pub fn restart_host(&self) {
        let mut state = self.state();
        let active = state.firmware.start(&state.active, &state.pending);
        state.active.clone_from(&active);
        state.pending = active;
        state.apply_time = None;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Unblocks the listener, which then sees the flag.
        let _ = std::net::TcpStream::connect(self.address);
    }
}

fn answer(state: &Mutex<State>, seen: &ReceivedRequest) -> Reply {
    let mut state = state.lock().unwrap();
    state.seen.push(seen.clone());
    let mut fault = state.fault.take();
    let taken = fault.as_mut().and_then(|fault| fault(seen, &mut state));
    state.fault = fault;
    taken.unwrap_or_else(|| route(&mut state, seen))
}

pub fn error(status: u16, id: &str, message: &str) -> Reply {
    let info = json!([{ "MessageId": format!("Base.1.8.{id}"), "Message": message }]);
    Reply::json(
        status,
        &json!({ "error": { "code": "iLO.0.10.ExtendedInfo", "message": "See @Message.ExtendedInfo", "@Message.ExtendedInfo": info } }),
    )
}

/// Answers as the controller does without faults.
pub fn route(state: &mut State, seen: &ReceivedRequest) -> Reply {
    let link = |path: &str| json!({ "@odata.id": path });
    let path = seen.path.trim_end_matches('/').to_ascii_lowercase();
    if path == "/redfish/v1" {
        let mut root = json!({
            "@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_5_1.ServiceRoot", "Id": "RootService",
            "RedfishVersion": "1.6.0", "Vendor": "HPE", "Product": "ProLiant DL385 Gen10 Plus",
            "Systems": link("/redfish/v1/Systems/"), "Registries": link("/redfish/v1/Registries/"),
        });
        if state.has_sessions {
            root["Links"] = json!({ "Sessions": link(SESSIONS) });
        }
        return Reply::json(200, &root);
    }
    if path == SESSIONS.trim_end_matches('/').to_ascii_lowercase()
        && seen.method == "POST"
        && state.has_sessions
    {
        return log_in(state, seen);
    }
    if !is_known(state, seen) {
        return error(
            401,
            "NoValidSession",
            "There is no valid session established with the implementation.",
        );
    }
    match (seen.method.as_str(), path.as_str()) {
        ("DELETE", path) if path.starts_with("/redfish/v1/sessionservice/sessions/") => {
            let id = path.rsplit('/').next().unwrap_or_default().to_owned();
            state.sessions.retain(|token| !token.ends_with(&id));
            Reply::json(200, &json!({}))
        }
        ("GET", "/redfish/v1/systems") => {
            let members: Vec<Value> =
                state.systems.iter().map(|id| link(&format!("/redfish/v1/Systems/{id}/"))).collect();
            Reply::json(200, &json!({ "Members": members }))
        }
        ("GET", "/redfish/v1/systems/1") => {
            let mut system = state.documents.system.clone();
            system["Bios"] = link(BIOS);
            Reply::json(200, &system)
        }
        ("GET", "/redfish/v1/systems/1/bios") => {
            let mut bios = state.documents.bios.clone();
            bios["Attributes"] = state.active.clone().into();
            bios["@Redfish.Settings"]["Messages"] = state.settings_messages.clone();
            Reply::json(200, &bios)
        }
        ("GET", "/redfish/v1/systems/1/bios/settings") => {
            let mut settings = fixture("hpe-ilo5-settings.json");
            settings["Attributes"] = state.pending.clone().into();
            settings.as_object_mut().unwrap().remove("@odata.etag");
            if let Some(time) = &state.apply_time {
                settings["@Redfish.SettingsApplyTime"] = time.clone();
            }
            Reply::json(200, &settings).with("ETag", &etag(state))
        }
        ("PATCH", "/redfish/v1/systems/1/bios/settings") => patch(state, seen),
        ("GET", "/redfish/v1/registries") => {
            let members: Vec<Value> = ["Base.1.4.0", state.documents.registry_id.as_str()]
                .iter()
                .map(|name| link(&format!("/redfish/v1/Registries/{name}/")))
                .collect();
            Reply::json(200, &json!({ "Members": members }))
        }
        ("GET", path)
            if path
                .strip_prefix("/redfish/v1/registries/")
                .is_some_and(|id| id.eq_ignore_ascii_case(&state.documents.registry_id)) =>
        {
            let place = |language: &str| json!({ "Language": language, "Uri": format!("/redfish/v1/RegistryStore/{language}/bios/") });
            Reply::json(200, &json!({ "Location": [place("ja"), place("en")] }))
        }
        // iLO compresses its registries whether requested or not.
        ("GET", "/redfish/v1/registrystore/en/bios") => {
            Reply::json(200, &state.firmware.registry(&state.active)).packed()
        }
        _ => error(404, "ResourceMissingAtURI", "The resource at the URI was not found."),
    }
}

fn etag(state: &State) -> String {
    format!("W/\"{:016X}\"", state.etag)
}

fn log_in(state: &mut State, seen: &ReceivedRequest) -> Reply {
    state.logins += 1;
    let body = seen.json();
    if body["UserName"] != USER || body["Password"] != PASSWORD {
        return error(401, "UnauthorizedLoginAttempt", "The login was not successful.");
    }
    let token = format!("token-{:08x}-s{}", 0x5eed * state.logins, state.logins);
    state.sessions.push(token.clone());
    let place = format!("{SESSIONS}s{}", state.logins);
    Reply::json(201, &json!({ "Id": "s1" })).with("X-Auth-Token", &token).with("Location", &place)
}

fn is_known(state: &State, seen: &ReceivedRequest) -> bool {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let basic = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    seen.header("x-auth-token").is_some_and(|token| state.sessions.iter().any(|known| known == token))
        || seen.header("authorization") == Some(&basic)
}

fn patch(state: &mut State, seen: &ReceivedRequest) -> Reply {
    if seen.header("if-match").is_some_and(|given| *given != etag(state)) {
        return error(412, "PreconditionFailed", "The ETag supplied did not match.");
    }
    let body = seen.json();
    let Some(attributes) = body["Attributes"].as_object() else {
        return error(400, "MalformedJSON", "The request body has no Attributes.");
    };
    if let Some(name) = attributes.keys().find(|name| !state.active.contains_key(*name)) {
        let said = format!("The property {name} is not in the list of valid properties.");
        return error(400, "PropertyUnknown", &said);
    }
    let refused = state.firmware.refused(&state.active, &state.pending, attributes);
    if !refused.is_empty() {
        return Reply::json(400, &firmware::refusal(&refused));
    }
    state.pending.extend(attributes.clone());
    state.apply_time = body.get("@Redfish.SettingsApplyTime").cloned();
    state.etag += 1;
    Reply::json(
        200,
        &json!({ "error": { "@Message.ExtendedInfo": [{ "MessageId": "iLO.2.14.SystemResetRequired" }] } }),
    )
}

/// A port without a listener, for a program that needs one.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
