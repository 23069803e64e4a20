use super::*;
use lowlat_undo::{OnFailure, PrivateDirectory, UndoLog, UndoStep};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tempfile::TempDir;

/// A model of systemd. Like systemd, it finds the links that start units at boot in the tree.
#[derive(Debug, Clone)]
struct Fake {
    root: PathBuf,
    units: Arc<Mutex<BTreeMap<String, FakeUnit>>>,
    asked: Arc<Mutex<Vec<String>>>,
    dies_after_stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Default)]
struct FakeUnit {
    active: &'static str,
    /// Its file has no [Install] section.
    is_static: bool,
    /// Stopping this unit stops those; starting one of those starts this unit.
    needed_by: Vec<&'static str>,
    /// Stop with this unit, and do not start with it.
    bound_by: Vec<&'static str>,
    never_starts: bool,
}

impl Fake {
    fn enablement(&self, name: &str) -> String {
        let dir = self.root.join("etc/systemd/system");
        let own = fs::read_link(dir.join(name));
        let unit = self.units.lock().unwrap().get(name).cloned().unwrap_or_default();
        let is_there = |place: &str| dir.join(place).join(name).symlink_metadata().is_ok();
        let has_alias = fs::read_link(dir.join("chronyd.service"))
            .is_ok_and(|to| to.file_name().is_some_and(|to| to == name));
        if own.is_ok_and(|to| to == Path::new("/dev/null")) {
            "masked".into()
        } else if ["multi-user.target.wants", "sockets.target.wants"].into_iter().any(is_there) || has_alias {
            "enabled".into()
        } else if unit.is_static {
            "static".into()
        } else {
            "disabled".into()
        }
    }

    fn set(&self, name: &str, active: &'static str) {
        if let Some(unit) = self.units.lock().unwrap().get_mut(name) {
            unit.active = active;
        }
    }

    fn of(&self, name: &str) -> FakeUnit {
        self.units.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    fn is_up(&self, name: &str) -> bool {
        self.of(name).active == "active"
    }

    fn asked(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

impl ServiceManager for Fake {
    fn unit(&self, name: &str) -> Result<Option<Unit>, SystemdError> {
        let alias = fs::read_link(self.root.join("etc/systemd/system").join(name)).ok();
        let id = alias.filter(|to| to != Path::new("/dev/null"));
        let id = id.and_then(|to| Some(to.file_name()?.to_str()?.to_owned())).unwrap_or(name.to_owned());
        if !self.units.lock().unwrap().contains_key(&id) {
            return Ok(None);
        }
        let unit = self.of(&id);
        let stops_with_it = unit.bound_by.iter().filter(|name| self.is_up(name)).map(|n| (*n).to_owned());
        Ok(Some(Unit {
            load: "loaded".into(),
            active: unit.active.into(),
            enablement: Some(self.enablement(&id)),
            stops_with_it: stops_with_it.collect(),
            id,
            ..Unit::default()
        }))
    }

    fn start(&self, unit: &str) -> Result<(), SystemdError> {
        self.asked(format!("start {unit}"));
        if self.of(unit).never_starts || self.enablement(unit) == "masked" {
            let (unit, result) = (unit.to_owned(), "failed".to_owned());
            return Err(SystemdError::Job { doing: "start", unit, result, state: "failed (failed)".into() });
        }
        let names: Vec<String> = self.units.lock().unwrap().keys().cloned().collect();
        for name in names.iter().filter(|name| self.of(name).needed_by.contains(&unit)) {
            self.set(name, "active");
        }
        self.set(unit, "active");
        Ok(())
    }

    fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        self.asked(format!("stop {unit}"));
        self.set(unit, "inactive");
        let found = self.of(unit);
        for other in found.needed_by.iter().chain(&found.bound_by) {
            self.set(other, "inactive");
        }
        assert!(!self.dies_after_stop.load(Ordering::Relaxed), "as if killed");
        Ok(())
    }

    fn enable(&self, unit: &str) -> Result<(), SystemdError> {
        self.asked(format!("enable {unit}"));
        let dir = self.root.join("etc/systemd/system/multi-user.target.wants");
        symlink(format!("/usr/lib/systemd/system/{unit}"), dir.join(unit)).unwrap();
        Ok(())
    }

    fn daemon_reload(&self) -> Result<(), SystemdError> {
        self.asked("reload".into());
        Ok(())
    }

    fn is_live(&self) -> bool {
        false
    }
}

/// A host with chrony (and its alias), a socket with its service, and a static unit.
struct Host {
    dir: TempDir,
    log_dir: TempDir,
    fake: Fake,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let system = dir.path().join("etc/systemd/system");
        for name in
            ["multi-user.target.wants", "sockets.target.wants", "chrony.service.d", "my.target.requires"]
        {
            fs::create_dir_all(system.join(name)).unwrap();
        }
        for (name, to) in [
            ("multi-user.target.wants/chrony.service", "/lib/systemd/system/chrony.service"),
            ("my.target.requires/chrony.service", "../../../lib/systemd/system/chrony.service"),
            ("chronyd.service", "/lib/systemd/system/chrony.service"),
            ("multi-user.target.wants/avahi.service", "/lib/systemd/system/avahi.service"),
            ("sockets.target.wants/avahi.socket", "/lib/systemd/system/avahi.socket"),
        ] {
            symlink(to, system.join(name)).unwrap();
        }
        fs::write(system.join("own.service"), "[Service]\n").unwrap();
        let unit = |active| FakeUnit { active, ..FakeUnit::default() };
        let units = [
            ("chrony.service", FakeUnit { bound_by: vec!["extra.service"], ..unit("active") }),
            ("extra.service", unit("active")),
            ("avahi.socket", FakeUnit { needed_by: vec!["avahi.service"], ..unit("active") }),
            ("avahi.service", unit("active")),
            ("fixed.service", FakeUnit { is_static: true, ..unit("activating") }),
            ("broken.service", FakeUnit { never_starts: true, ..unit("failed") }),
            ("own.service", unit("inactive")),
        ];
        let units = units.into_iter().map(|(name, unit)| (name.to_owned(), unit)).collect();
        let (units, asked) = (Arc::new(Mutex::new(units)), Arc::default());
        let fake = Fake { root: dir.path().to_owned(), units, asked, dies_after_stop: Arc::default() };
        Self { dir, log_dir: tempfile::tempdir().unwrap(), fake }
    }

    fn writer(&self) -> Writer {
        Writer::below(self.dir.path()).unwrap()
    }

    fn log(&self) -> UndoLog {
        let log =
            UndoLog::open(PrivateDirectory::create(self.log_dir.path(), &[]).unwrap(), self.writer(), |_| {
                true
            })
            .unwrap();
        log.with_target(Box::new(Services { manager: self.fake.clone() }))
    }

    fn step(log: &UndoLog, unit: &str, new: &str) -> UndoStep {
        let target = Services::spec(unit);
        let old = log.present(&target).unwrap();
        UndoStep { id: unit.to_owned(), target, old, new: State::Value(new.to_owned()) }
    }

    /// Units with their states, and every link with its target and time, all of which a rollback must restore.
    fn shown(&self) -> Vec<String> {
        let mut shown = Vec::new();
        for (name, unit) in self.fake.units.lock().unwrap().iter() {
            shown.push(format!("{name} {}", unit.active.replace("activating", "active")));
        }
        let mut ahead = vec![self.dir.path().to_owned()];
        while let Some(dir) = ahead.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                if kind.is_dir() {
                    ahead.push(path);
                } else {
                    let time = path.symlink_metadata().unwrap().modified().unwrap();
                    shown.push(format!("{} {:?} {time:?}", path.display(), fs::read_link(&path).ok()));
                }
            }
        }
        shown.sort();
        shown
    }

    fn state(&self, unit: &str) -> String {
        match (Services { manager: self.fake.clone() }).read(&self.writer(), &Services::spec(unit)).unwrap() {
            State::Value(text) => text.lines().next().unwrap().to_owned(),
            other => other.to_string(),
        }
    }
}

#[test]
fn a_service_is_stopped_and_disabled_and_comes_back_to_the_letter() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let step = Host::step(&log, "chrony.service", "inactive, disabled");
    let State::Value(old) = &step.old else { panic!() };
    assert!(old.starts_with("active, enabled\nlink /etc/systemd/system/chronyd.service -> "), "{old}");
    assert!(old.ends_with("\nstops with it: extra.service") && old.matches("\nlink ").count() == 3, "{old}");
    log.apply("p", std::slice::from_ref(&step), OnFailure::RollBack).unwrap();
    assert!(!host.fake.is_up("chrony.service") && !host.fake.is_up("extra.service"));
    assert_eq!(*host.fake.asked.lock().unwrap(), ["stop chrony.service", "reload"]);
    let again = log.apply("p", &[step], OnFailure::RollBack).unwrap();
    assert!(again.done.is_empty() && again.unchanged.len() == 1);
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.shown(), before);
}

#[test]
fn two_names_of_one_unit_do_no_harm_to_each_other() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let steps =
        ["chronyd.service", "chrony.service"].map(|unit| Host::step(&log, unit, "inactive, disabled"));
    log.apply("p", &steps, OnFailure::RollBack).unwrap();

    assert_eq!(
        (host.state("chronyd.service"), host.state("chrony.service")),
        ("absent".to_owned(), "inactive, disabled".to_owned())
    );
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.shown(), before);
}

#[test]
fn a_socket_that_takes_its_service_along_is_no_conflict() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let steps = ["avahi.socket", "avahi.service"].map(|unit| Host::step(&log, unit, "inactive, disabled"));
    let report = log.apply("p", &steps, OnFailure::RollBack).unwrap();
    assert_eq!(report.done, ["avahi.socket", "avahi.service"]);
    assert!(!host.fake.is_up("avahi.service") && !host.fake.is_up("avahi.socket"));
    let report = log.rollback_where(|_| true);
    assert!(report.is_complete(), "{report}");
    assert_eq!(host.shown(), before);
}

#[test]
fn a_crash_between_stopping_and_disabling_leaves_both_ways_open() {
    for goes_on in [true, false] {
        let host = Host::new();
        let before = host.shown();
        let mut log = host.log();
        let steps =
            ["chrony.service", "avahi.service"].map(|unit| Host::step(&log, unit, "inactive, disabled"));
        host.fake.dies_after_stop.store(true, Ordering::Relaxed);
        let died = catch_unwind(AssertUnwindSafe(|| log.apply("p", &steps, OnFailure::RollBack)));
        assert!(died.is_err());
        drop(log);
        host.fake.dies_after_stop.store(false, Ordering::Relaxed);
        assert_eq!(host.state("chrony.service"), "inactive, enabled");
        let mut log = host.log();
        if goes_on {
            assert_eq!(log.apply("p", &steps, OnFailure::RollBack).unwrap().done.len(), 2);
            assert_eq!(host.fake.enablement("chrony.service"), "disabled");
        }
        let report = log.rollback_where(|_| true);
        assert!(report.is_complete(), "{report}");
        assert_eq!(host.shown(), before);
    }
}

#[test]
fn what_somebody_else_made_of_it_is_left_and_told() {
    let host = Host::new();
    let mut log = host.log();
    let step = Host::step(&log, "avahi.service", "inactive, disabled");
    log.apply("p", &[step], OnFailure::RollBack).unwrap();
    links::mask(&host.writer(), "avahi.service").unwrap();
    let report = log.rollback_where(|_| true).to_string();
    assert!(report.contains("by lowlat \"inactive, disabled\", now \"inactive, masked"), "{report}");
    assert_eq!(host.fake.enablement("avahi.service"), "masked");
}

#[test]
fn a_link_that_came_since_stays() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let step = Host::step(&log, "chrony.service", "inactive, disabled");
    log.apply("p", &[step], OnFailure::RollBack).unwrap();
    let theirs = host.dir.path().join("etc/systemd/system/sockets.target.wants/chrony.service");
    symlink("/lib/systemd/system/chrony.service", &theirs).unwrap();
    assert!(log.rollback_where(|_| true).is_complete());
    assert!(theirs.symlink_metadata().is_ok());
    fs::remove_file(theirs).unwrap();
    assert_eq!(host.shown(), before);
}

#[test]
fn states_without_links_are_left_as_they_are() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let steps = [
        Host::step(&log, "fixed.service", "inactive, static"),
        // A failed unit is already stopped.
        Host::step(&log, "broken.service", "inactive"),
        Host::step(&log, "own.service", "inactive, disabled"),
    ];
    let report = log.apply("p", &steps, OnFailure::RollBack).unwrap();
    assert_eq!(report.done, ["fixed.service"]);
    assert_eq!(*host.fake.asked.lock().unwrap(), ["stop fixed.service"]);
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.shown(), before);
}

#[test]
fn masks_and_enablement_that_a_plan_asks_for() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let steps = [
        Host::step(&log, "avahi.service", "inactive, masked"),
        Host::step(&log, "extra.service", "active, enabled"),
    ];
    log.apply("p", &steps, OnFailure::RollBack).unwrap();
    assert_eq!(host.state("avahi.service"), "inactive, masked");
    assert_eq!(host.state("extra.service"), "active, enabled");
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.shown(), before);
    // A unit file of the administrator prevents masking.
    let step = Host::step(&log, "own.service", "inactive, masked");
    let error = log.apply("q", &[step], OnFailure::RollBack).unwrap_err().to_string();
    assert!(
        error.contains("/etc/systemd/system/own.service: cannot mask: found a file of 10 bytes"),
        "{error}"
    );
    assert_eq!(host.shown(), before);
}

#[test]
fn what_systemd_refuses_is_taken_back() {
    let host = Host::new();
    let before = host.shown();
    let mut log = host.log();
    let steps = [
        Host::step(&log, "avahi.service", "inactive, disabled"),
        Host::step(&log, "broken.service", "active, disabled"),
    ];
    let error = log.apply("p", &steps, OnFailure::RollBack).unwrap_err().to_string();
    assert!(
        error.contains("broken.service: cannot start: systemd could not start broken.service"),
        "{error}"
    );
    assert_eq!(host.shown(), before);
}

#[test]
fn bad_names_and_states_are_refused() {
    let host = Host::new();
    let services = Services { manager: host.fake.clone() };
    let writer = host.writer();
    let bad = ["", "chrony", ".service", "a/b.service", "../x.service", "a b.service", "a\n.service"];
    for name in bad {
        let error = services.read(&writer, &Services::spec(name)).unwrap_err().to_string();
        assert!(error.contains("expected the full name of a unit"), "{error}");
    }
    let chrony = Services::spec("chrony.service");
    let bad = [
        "",
        "running",
        "active, enabled\nlink",
        "active\nlink /etc/passwd -> /x (0:0 at 1.2)",
        "active\nunit /x",
        "active, enabled\nlink /etc/systemd/system/x.service -> /x (0:0 at 1)",
    ];
    for text in bad {
        let error = services.write(&writer, &chrony, &State::Value(text.into())).unwrap_err().to_string();
        assert!(error.contains("expected a"), "{error}");
    }
    let error = services.write(&writer, &chrony, &State::Absent).unwrap_err();
    assert!(matches!(error, HostError::Unfit(_)), "{error}");
    let gone = services.write(&writer, &Services::spec("gone.service"), &State::Value("active".into()));
    assert!(gone.unwrap_err().to_string().contains("the unit no longer exists"));
    assert_eq!(services.read(&writer, &Services::spec("gone.service")).unwrap(), State::Absent);
    assert!(host.fake.asked.lock().unwrap().is_empty());
    let error = Services::live().read(&writer, &chrony).unwrap_err().to_string();
    assert!(error.contains("belongs to the running host, and a directory was given"), "{error}");
}
