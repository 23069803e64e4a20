//! Parameters of network interfaces, as `ethtool` changes them. A reboot resets them.
//! A missing interface, and a setting that its driver does not support, are absent.

use super::{failed, failed_or_refused, is_live_or};
use lowlat_host_run::ethtool::Setting;
use lowlat_settings::change::{Ethtool, nic::KINDS};
use lowlat_undo::{HostError, State, Target, TargetSpec, Writer};

/// A group of parameters of interfaces. A target's name is interface and parameter: "enp1s0 combined".
#[derive(Debug)]
pub struct Nics(pub &'static Ethtool);

impl Nics {
    /// One for each kind of change with `ethtool`.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().filter_map(|kind| kind.ethtool()).map(Self)
    }

    fn parts<'a>(&self, writer: &Writer, spec: &'a TargetSpec) -> Result<(&'a str, Setting), HostError> {
        is_live_or(true, writer, spec)?;
        let parts = spec.name.split_once(' ').filter(|(nic, _)| !nic.is_empty());
        if let Some(parts) = parts.and_then(|(nic, setting)| Some((nic, Setting::of(self.0, setting)?))) {
            return Ok(parts);
        }
        let why = format!("expected an interface and {}; make a new plan", self.0.expected);
        Err(failed("use as a setting of an interface", &spec.name, why))
    }
}

impl Target for Nics {
    fn kind(&self) -> &'static str {
        self.0.undo_kind
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        let (nic, setting) = self.parts(writer, spec)?;
        let found =
            setting.get(nic).map_err(|error| failed("read the interface's setting", &spec.name, error))?;
        Ok(found.map_or(State::Absent, |value| State::Value(value.to_string())))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let (nic, setting) = self.parts(writer, spec)?;
        let text = spec.wanted_value(to)?;
        let value = setting.value(text).map_err(|error| failed("set", &spec.name, error))?;
        let set = setting.set(nic, &value);
        set.map_err(|error| failed_or_refused(error.is_refusal(), "set", &spec.name, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_settings::change::nic::{CHANNELS, COALESCING, FEATURE, NAPI, NicKind, RINGS};
    use lowlat_undo::{Comparison, OnFailure, PrivateDirectory, UndoLog, UndoStep};
    use std::process::Command;

    /// Runs the test in a private network namespace with a pair of virtual interfaces and a tap. The namespace ends
    /// with the thread. Returns false if this user may not create them.
    fn in_namespace(test: impl FnOnce() + Send + 'static) -> bool {
        let in_thread = move || {
            // SAFETY: only the network namespace is left, which changes nothing that memory or open files rely on; the
            // file table stays shared with the other threads.
            let left = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
            let ip = |arguments: &str| {
                let made = Command::new("ip").args(arguments.split(' ')).output();
                made.is_ok_and(|made| made.status.success())
            };
            let is_there = left.is_ok()
                && ip("link add lowlat0 numrxqueues 4 numtxqueues 4 type veth peer name lowlat1")
                && ip("tuntap add dev lowlat2 mode tap");
            if is_there {
                test();
            }
            is_there
        };
        std::thread::spawn(in_thread).join().unwrap()
    }

    fn log(dir: &tempfile::TempDir) -> UndoLog {
        let log = UndoLog::open(
            PrivateDirectory::create(dir.path(), &[]).unwrap(),
            Writer::live().unwrap(),
            |_| true,
        )
        .unwrap();
        Nics::all().fold(log, |log, kind| log.with_target(Box::new(kind)))
    }

    fn spec(kind: &NicKind, name: &str) -> TargetSpec {
        let kind = kind.ethtool().unwrap().undo_kind.to_owned();
        TargetSpec { kind, name: name.to_owned(), comparison: Comparison::Words }
    }

    #[test]
    fn an_interface_is_changed_and_comes_back() {
        let is_run = in_namespace(|| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = log(&dir);
            let targets = [
                (spec(&CHANNELS, "lowlat0 rx"), "1"),
                (spec(&COALESCING, "lowlat2 rx-frames"), "16"),
                (spec(&FEATURE, "lowlat0 tx-checksum-ip-generic"), "off"),
            ];
            let steps = targets.clone().map(|(target, new)| {
                let old = log.present(&target).unwrap();
                UndoStep { id: target.kind.clone(), target, old, new: State::Value(new.into()) }
            });
            let [channels, coalescing, feature] = &steps;
            if channels.old == State::Absent {
                eprintln!("skipped: this kernel's veth cannot change its queues");
            }
            assert_eq!(coalescing.old, State::Value("0".into()));
            assert_eq!(feature.old, State::Value("on".into()));
            let steps: Vec<UndoStep> = steps.into_iter().filter(|step| step.old != State::Absent).collect();
            log.apply("p", &steps, OnFailure::RollBack).unwrap();
            for step in &steps {
                assert_eq!(log.present(&step.target).unwrap(), step.new);
            }
            assert!(log.rollback_where(|_| true).is_complete());
            for step in &steps {
                assert_eq!(log.present(&step.target).unwrap(), step.old);
            }
        });
        if !is_run {
            eprintln!("skipped: may not make a network namespace with interfaces, or there is no ip command");
        }
    }

    /// A pair of virtual interfaces with GRO has a NAPI instance for each receive queue; each instance has separate
    /// values since Linux 6.13.
    #[test]
    fn one_napi_instance_is_changed_and_comes_back() {
        let is_run = in_namespace(|| {
            for interface in ["lowlat0", "lowlat1"] {
                let up = Command::new("ip").args(["link", "set", interface, "up"]).status().unwrap();
                assert!(up.success());
            }
            let dir = tempfile::tempdir().unwrap();
            let mut log = log(&dir);
            let value = |text: &str| State::Value(text.into());
            let gro = Setting::of(FEATURE.ethtool().unwrap(), "rx-gro").unwrap();
            gro.set("lowlat0", &gro.value("on").unwrap()).unwrap();
            let wanted = [
                ("napi-1/defer-hard-irqs", "100"),
                ("napi-1/gro-flush-timeout", "20000"),
                ("napi-1/irq-suspend-timeout", "20000000"),
                ("napi-3/gro-flush-timeout", "5000"),
            ];
            let steps = wanted.map(|(name, new)| {
                let target = spec(&NAPI, &format!("lowlat0 {name}"));
                UndoStep { id: name.into(), old: log.present(&target).unwrap(), target, new: value(new) }
            });
            if steps.iter().any(|step| step.old == State::Absent) {
                eprintln!("skipped: this kernel has no values of one NAPI instance (6.13)");
                return;
            }
            log.apply("p", &steps, OnFailure::RollBack).unwrap();
            for step in &steps {
                assert_eq!(
                    (step.old.clone(), log.present(&step.target).unwrap()),
                    (value("0"), step.new.clone())
                );
            }
            let other = spec(&NAPI, "lowlat0 napi-0/gro-flush-timeout");
            assert_eq!(log.present(&other).unwrap(), value("0"), "the other instances keep theirs");
            assert!(log.rollback_where(|_| true).is_complete());
            for step in &steps {
                assert_eq!(log.present(&step.target).unwrap(), step.old);
            }
        });
        if !is_run {
            eprintln!("skipped: may not make a network namespace with interfaces, or there is no ip command");
        }
    }

    #[test]
    fn what_a_driver_refuses_is_told_and_taken_back() {
        let is_run = in_namespace(|| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = log(&dir);
            let frames = spec(&COALESCING, "lowlat2 rx-frames");
            let step = |id: &str, target: TargetSpec, old: State, new: &str| UndoStep {
                id: id.into(),
                target,
                old,
                new: State::Value(new.into()),
            };
            let first = step("a", frames.clone(), State::Value("0".into()), "8");
            let none = step("b", spec(&COALESCING, "lowlat0 rx-usecs"), State::Absent, "0");
            let error = log.apply("p", &[first, none], OnFailure::RollBack).unwrap_err().to_string();
            let expected = "lowlat0 rx-usecs: cannot set: Operation not supported";
            assert!(error.contains(expected) && error.contains("leave this step out"), "{error}");
            assert_eq!(log.present(&frames).unwrap(), State::Value("0".into()));
            assert_eq!(log.present(&spec(&FEATURE, "none0 rx-lro")).unwrap(), State::Absent);
        });
        if !is_run {
            eprintln!("skipped: may not make a network namespace with interfaces, or there is no ip command");
        }
    }

    /// No virtual interface has rings of variable size. The test needs no driver: the kernel itself rejects sizes above
    /// the maximum.
    #[test]
    fn ring_sizes_are_read_and_refused() {
        let is_run = in_namespace(|| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = log(&dir);
            let ring = spec(&RINGS, "lowlat2 rx");
            assert_eq!(log.present(&ring).unwrap(), State::Absent);
            let new = State::Value("512".into());
            let step = UndoStep { id: "a".into(), target: ring, old: State::Absent, new };
            let error = log.apply("p", &[step], OnFailure::RollBack).unwrap_err().to_string();
            assert!(error.contains("lowlat2 rx: cannot set: Operation not supported"), "{error}");
        });
        if !is_run {
            eprintln!("skipped: may not make a network namespace with interfaces, or there is no ip command");
        }
        let (target, writer) = (Nics(RINGS.ethtool().unwrap()), Writer::live().unwrap());
        let names = std::fs::read_dir("/sys/class/net").into_iter().flatten();
        let specs = names.map(|name| spec(&RINGS, &format!("{} rx", name.unwrap().file_name().display())));
        let read = |spec: &TargetSpec| target.read(&writer, spec).unwrap_or(State::Absent);
        let Some(ring) = specs.into_iter().find(|spec| read(spec) != State::Absent) else {
            eprintln!("skipped: no interface of this machine reports ring sizes");
            return;
        };
        let before = read(&ring);
        let error =
            target.write(&writer, &ring, &State::Value(u32::MAX.to_string())).unwrap_err().to_string();
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: takes root to set ring sizes");
            return;
        }
        assert!(
            error.contains("the driver does not accept this value") || error.contains("Operation not"),
            "{error}"
        );
        assert_eq!(read(&ring), before);
    }

    #[test]
    fn bad_names_and_values_are_told() {
        let writer = Writer::live().unwrap();
        for name in ["", "eth0", " rx", "eth0 rx-usecs", "eth0 rx tx"] {
            let spec = TargetSpec { name: name.into(), ..spec(&CHANNELS, "") };
            let error = Nics(CHANNELS.ethtool().unwrap()).read(&writer, &spec).unwrap_err().to_string();
            assert!(error.contains("expected an interface and rx, tx, other or combined"), "{error}");
        }
        let (features, feature) = (Nics(FEATURE.ethtool().unwrap()), spec(&FEATURE, "none0 rx-lro"));
        let error = features.write(&writer, &feature, &State::Value("0".into())).unwrap_err().to_string();
        assert!(error.contains("found \"0\", expected \"on\" or \"off\""), "{error}");
        assert!(matches!(features.write(&writer, &feature, &State::Absent), Err(HostError::Unfit(_))));
        let dir = tempfile::tempdir().unwrap();
        let error = features.read(&Writer::below(dir.path()).unwrap(), &feature).unwrap_err().to_string();
        assert!(error.contains("belongs to the running host"), "{error}");
    }
}
