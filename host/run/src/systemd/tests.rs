#![allow(clippy::unused_self, reason = "the interface macro calls methods on the object")]
#![allow(clippy::needless_pass_by_value, reason = "the interface macro takes arguments by value")]

use super::{connection::Ways, *};
use std::{
    collections::BTreeMap,
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
    thread,
};
use zbus::{connection::Builder, fdo, object_server::SignalEmitter, wire::ObjectPath, wire::OwnedObjectPath};

/// State of the fake manager, and the requests it received.
#[derive(Debug, Default)]
struct State {
    /// By name: object, ActiveState, enablement.
    units: BTreeMap<&'static str, (&'static str, &'static str, Option<&'static str>)>,
    asked: Vec<String>,
    job_result: &'static str,
}

#[derive(Debug, Clone)]
struct Manager(Arc<Mutex<State>>);

impl Manager {
    async fn job(&self, emitter: &SignalEmitter<'_>, asked: String) -> fdo::Result<OwnedObjectPath> {
        let result = {
            let mut state = self.0.lock().unwrap();
            state.asked.push(asked.clone());
            state.job_result
        };
        if result == "refused" {
            return Err(fdo::Error::AccessDenied("not you".into()));
        }
        let job = OwnedObjectPath::try_from("/job/7").unwrap();
        Self::job_removed(emitter, 6, ObjectPath::try_from("/job/6").unwrap(), "other.service", "failed")
            .await?;
        // The result may be sent before the call returns.
        Self::job_removed(emitter, 7, job.as_ref(), &asked, result).await?;
        Ok(job)
    }
}

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    fn load_unit(&self, name: &str) -> OwnedObjectPath {
        let object = self.0.lock().unwrap().units.get(name).map_or("/unit/none", |unit| unit.0);
        OwnedObjectPath::try_from(object).unwrap()
    }

    fn get_unit_file_state(&self, name: &str) -> fdo::Result<String> {
        let state = self.0.lock().unwrap().units.get(name).and_then(|unit| unit.2);
        state.map(str::to_owned).ok_or_else(|| fdo::Error::FileNotFound("no file".into()))
    }

    #[allow(clippy::type_complexity, reason = "systemd's own")]
    fn list_units_by_patterns(
        &self,
        states: Vec<String>,
        patterns: Vec<String>,
    ) -> Vec<(String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath)>
    {
        assert_eq!((states, patterns), (vec!["active".to_owned()], vec!["*.service".to_owned()]));
        let row = |name: &str, object: &str| {
            let object = OwnedObjectPath::try_from(object).unwrap();
            let no_job = OwnedObjectPath::try_from("/").unwrap();
            let text = String::new;
            (name.to_owned(), text(), text(), text(), text(), text(), object, 0, text(), no_job)
        };
        vec![
            row("tuned.service", "/unit/tuned"),
            row("x.service", "/unit/gone"),
            row("cron.service", "/unit/cron"),
        ]
    }

    fn subscribe(&self) {}

    fn reload(&self) {
        self.0.lock().unwrap().asked.push("reload".into());
    }

    fn enable_unit_files(
        &self,
        names: Vec<String>,
        is_runtime: bool,
        is_forced: bool,
    ) -> (bool, Vec<(String, String, String)>) {
        self.0.lock().unwrap().asked.push(format!("enable {names:?} {is_runtime} {is_forced}"));
        (true, Vec::new())
    }

    async fn start_unit(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        name: &str,
        mode: &str,
    ) -> fdo::Result<OwnedObjectPath> {
        self.job(&emitter, format!("start {name} {mode}")).await
    }

    async fn stop_unit(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        name: &str,
        mode: &str,
    ) -> fdo::Result<OwnedObjectPath> {
        self.job(&emitter, format!("stop {name} {mode}")).await
    }

    #[zbus(signal)]
    async fn job_removed(
        emitter: &SignalEmitter<'_>,
        number: u32,
        job: ObjectPath<'_>,
        unit: &str,
        result: &str,
    ) -> zbus::Result<()>;
}

/// The object of a unit.
struct UnitObject {
    id: &'static str,
    load: &'static str,
    active: &'static str,
    bound_by: Vec<String>,
}

#[zbus::interface(name = "org.freedesktop.systemd1.Unit")]
impl UnitObject {
    #[zbus(property)]
    fn id(&self) -> &str {
        self.id
    }

    #[zbus(property)]
    fn load_state(&self) -> &str {
        self.load
    }

    #[zbus(property)]
    fn active_state(&self) -> &str {
        self.active
    }

    #[zbus(property)]
    fn sub_state(&self) -> &'static str {
        "running"
    }

    #[zbus(property)]
    fn bound_by(&self) -> Vec<String> {
        self.bound_by.clone()
    }
}

/// Additional properties of a service.
struct ServiceObject(&'static str);

#[zbus::interface(name = "org.freedesktop.systemd1.Service")]
impl ServiceObject {
    #[zbus(property)]
    fn bus_name(&self) -> &'static str {
        self.0
    }
}

/// Each connection is served on a separate thread until it closes.
fn serve(stream: UnixStream, manager: Manager) {
    thread::spawn(move || {
        let unit = |id, load, active, bound_by: &[&str]| UnitObject {
            id,
            load,
            active,
            bound_by: bound_by.iter().map(|name| (*name).to_owned()).collect(),
        };
        let builder = Builder::unix_stream(stream)
            .server(zbus::Guid::generate())
            .p2p()
            .serve_at(OBJECT, manager)
            .serve_at("/unit/none", unit("", "not-found", "inactive", &[]))
            .serve_at(
                "/unit/chrony",
                unit("chrony.service", "loaded", "active", &["extra.service", "x.service"]),
            )
            .serve_at("/unit/dbus", unit("dbus.service", "loaded", "active", &[]))
            .serve_at("/unit/tuned", ServiceObject("com.redhat.tuned"))
            .serve_at("/unit/cron", ServiceObject(""))
            .serve_at("/unit/extra", unit("extra.service", "loaded", "active", &[]));
        zbus::block_on(async {
            let connection = builder.build().await.unwrap();
            connection.closed().await;
        });
    });
}

fn fake(job_result: &'static str) -> (Systemd, Arc<Mutex<State>>) {
    let units = [
        ("chrony.service", ("/unit/chrony", "active", Some("enabled"))),
        ("chronyd.service", ("/unit/chrony", "active", Some("alias"))),
        ("extra.service", ("/unit/extra", "active", None)),
        ("dbus.service", ("/unit/dbus", "active", Some("static"))),
    ];
    let state = State { units: units.into(), job_result, ..State::default() };
    let manager = Manager(Arc::new(Mutex::new(state)));
    let state = Arc::clone(&manager.0);
    let ways = Ways::new(move || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        serve(theirs, manager.clone());
        vec![("a socket pair".to_owned(), Ok(Builder::unix_stream(ours).p2p()))]
    });
    (Systemd { ways }, state)
}

#[test]
fn a_unit_is_read_by_any_of_its_names() {
    let (systemd, _) = fake("done");
    let expected = Unit {
        id: "chrony.service".into(),
        load: "loaded".into(),
        active: "active".into(),
        sub: "running".into(),
        enablement: Some("enabled".into()),
        // x.service is referenced but missing.
        stops_with_it: vec!["extra.service".into()],
    };
    assert_eq!(systemd.unit("chronyd.service").unwrap(), Some(expected));
    assert_eq!(systemd.unit("extra.service").unwrap().unwrap().enablement, None);
    assert_eq!(systemd.unit("none.service").unwrap(), None);
}

#[test]
fn what_has_a_name_on_the_bus_may_end_with_it() {
    let (systemd, _) = fake("done");
    assert_eq!(systemd.unit("dbus.service").unwrap().unwrap().stops_with_it, ["tuned.service"]);
}

#[test]
fn jobs_are_waited_for_and_other_jobs_ends_skipped() {
    let (systemd, state) = fake("done");
    systemd.start("chrony.service").unwrap();
    systemd.stop("chrony.service").unwrap();
    systemd.stop("nfs-client.target").unwrap();
    systemd.enable("chrony.service").unwrap();
    systemd.daemon_reload().unwrap();
    let expected = [
        "start chrony.service replace",
        "stop chrony.service ignore-requirements",
        "stop nfs-client.target replace",
        "enable [\"chrony.service\"] false false",
        "reload",
    ];
    assert_eq!(state.lock().unwrap().asked, expected);
}

#[test]
fn what_fails_says_so() {
    let (systemd, _) = fake("timeout");
    let error = systemd.stop("chrony.service").unwrap_err().to_string();
    let expected = "systemd could not stop chrony.service: its job ended with \"timeout\", expected \"done\", and the \
                    unit is now active (running); read journalctl -u chrony.service";
    assert_eq!(error, expected);
    let (systemd, _) = fake("refused");
    let error = systemd.start("chrony.service").unwrap_err().to_string();
    assert!(error.starts_with("systemd denied this user the request to start chrony.service: "), "{error}");
    assert!(error.ends_with("not you; run as root"), "{error}");
    // The fake does not implement this method.
    let error = systemd.job("restart", "RestartUnit", "chrony.service", "replace").unwrap_err().to_string();
    assert!(error.starts_with("systemd refused to restart chrony.service: "), "{error}");
}

#[test]
fn no_systemd_is_reported_with_every_way_that_was_tried() {
    let way =
        |path: &str| (path.to_owned(), Ok(Builder::address(format!("unix:path={path}").as_str()).p2p()));
    let ways = Ways::new(move || vec![way("/nonexistent/one"), way("/nonexistent/two")]);
    let error = Systemd { ways }.daemon_reload().unwrap_err().to_string();
    assert!(error.starts_with("cannot reach systemd (/nonexistent/one: "), "{error}");
    assert!(error.contains("; /nonexistent/two: ") && error.contains("containers"), "{error}");
}

#[test]
fn a_silent_systemd_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("private");
    let _listener = UnixListener::bind(&path).unwrap();
    let ways = Ways::new(move || {
        let stream = UnixStream::connect(&path).unwrap();
        vec![("a silent socket".to_owned(), Ok(Builder::unix_stream(stream).p2p()))]
    });
    let silent = Systemd { ways };
    let error = silent.talk(Duration::from_millis(50), "look".into(), async |_| Ok(())).unwrap_err();
    assert!(matches!(error, SystemdError::Unheard { .. }), "{error}");
}

#[test]
fn the_bus_is_not_stopped_where_it_is_the_only_way() {
    let (systemd, state) = fake("done");
    let error = systemd.stop("dbus.service").unwrap_err().to_string();
    assert!(error.starts_with("dbus.service is the bus that lowlat uses to reach systemd"), "{error}");
    assert!(state.lock().unwrap().asked.is_empty());
}

#[test]
fn the_live_host_answers_or_has_no_systemd() {
    match Systemd::live().unit("dbus.service") {
        Ok(unit) => eprintln!("systemd answers: {unit:?}"),
        Err(SystemdError::Absent { tried }) => eprintln!("skipped: no systemd here: {tried}"),
        Err(error) => panic!("{error}"),
    }
}
