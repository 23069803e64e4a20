//! Isolated cpuset partitions of control groups, version 2. The name is a systemd slice, whose group forms the
//! partition. systemd creates the group with the slice's `AllowedCPUs=`, so the slice's unit file must exist.

use super::{
    failed, is_live_or, refused,
    service::{is_unit_name, of_systemd},
};
use lowlat_host_run::systemd::{ServiceManager, Systemd};
use lowlat_undo::{Comparison, HostError, State, Target, TargetSpec, Writer};

const CGROUPS: &str = "/sys/fs/cgroup";
const ISOLATED: &str = "isolated";
const FORM: &str = "form the partition";

/// Partitions by slice; the value is the CPU list of a valid isolated partition, or the state of an invalid one.
#[derive(Debug)]
pub struct Partitions<M = Systemd> {
    manager: M,
}

impl Partitions {
    pub const KIND: &str = "cpuset-partition";

    pub fn live() -> Self {
        Self { manager: Systemd::live() }
    }

    /// The partition of a slice as a target, with its comparison.
    pub fn spec(slice: &str) -> TargetSpec {
        TargetSpec { kind: Self::KIND.into(), name: slice.into(), comparison: Comparison::CpuList }
    }
}

impl<M: ServiceManager> Partitions<M> {
    fn check(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        is_live_or(self.manager.is_live(), writer, spec)?;
        // A dash would put the slice below another one, which is not a partition root.
        let is_top = spec.name.strip_suffix(".slice").is_some_and(|name| !name.contains('-'));
        if is_top && is_unit_name(&spec.name) {
            return Ok(());
        }
        let why = "expected a slice below the root, such as lowlat.slice; this plan is wrong, make a new one";
        Err(failed("use as a slice", &spec.name, why))
    }

    /// Starts the slice, and makes systemd read its file again if the group has no cpuset.
    fn start(&self, writer: &Writer, slice: &str) -> Result<(), HostError> {
        if text(writer, slice, "cpuset.cpus.partition")?.is_some() {
            return Ok(());
        }
        self.manager.daemon_reload().map_err(|error| of_systemd("reload systemd's units", slice, &error))?;
        self.manager.start(slice).map_err(|error| of_systemd("start", slice, &error))?;
        match text(writer, slice, "cpuset.cpus.partition")? {
            Some(_) => Ok(()),
            None => Err(refused(
                FORM,
                slice,
                "its group has no cpuset; AllowedCPUs= of its unit file enables it, which needs an apply without \
                 --only-run-time and control groups of version 2",
            )),
        }
    }

    /// Stops the slice unless processes run in it, which the stop would end.
    fn stop(&self, writer: &Writer, slice: &str) -> Result<(), HostError> {
        let events = text(writer, slice, "cgroup.events")?.unwrap_or_default();
        if events.lines().any(|line| line == "populated 0") {
            self.manager.stop(slice).map_err(|error| of_systemd("stop", slice, &error))?;
        }
        Ok(())
    }
}

impl<M: ServiceManager> Target for Partitions<M> {
    fn kind(&self) -> &'static str {
        Partitions::KIND
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        self.check(writer, spec)?;
        let of = |file| text(writer, &spec.name, file);
        Ok(match of("cpuset.cpus.partition")? {
            Some(state) if state == ISOLATED => {
                State::Value(of("cpuset.cpus.effective")?.unwrap_or_default())
            }
            Some(state) if state.starts_with(ISOLATED) => State::Value(state),
            _ => State::Absent,
        })
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        self.check(writer, spec)?;
        let slice = &spec.name;
        let set = |file: &str, value: &str| writer.write_value(&path(slice, file), value);
        match to {
            State::Value(cpus) => {
                self.start(writer, slice)?;
                set("cpuset.cpus", cpus)?;
                set("cpuset.cpus.partition", ISOLATED)
            }
            State::Absent if text(writer, slice, "cpuset.cpus.partition")?.is_none() => Ok(()),
            State::Absent => {
                set("cpuset.cpus.partition", "member")?;
                self.stop(writer, slice)
            }
            _ => Err(HostError::wrong_state(Partitions::KIND, slice, to)),
        }
    }
}

fn path(slice: &str, file: &str) -> String {
    format!("{CGROUPS}/{slice}/{file}")
}

fn text(writer: &Writer, slice: &str, file: &str) -> Result<Option<String>, HostError> {
    Ok(writer.read_value(&path(slice, file))?.into_value().map(|text| text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host_run::systemd::{SystemdError, Unit};
    use std::{cell::RefCell, fs, path::PathBuf};

    /// A service manager that creates the slice's group in a folder, as systemd and the kernel do.
    #[derive(Debug)]
    struct Manager {
        group: PathBuf,
        has_cpuset: bool,
        log: RefCell<Vec<&'static str>>,
    }

    impl ServiceManager for Manager {
        fn unit(&self, _: &str) -> Result<Option<Unit>, SystemdError> {
            Ok(None)
        }
        fn start(&self, _: &str) -> Result<(), SystemdError> {
            self.log.borrow_mut().push("start");
            fs::create_dir_all(&self.group).unwrap();
            fs::write(self.group.join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
            for (file, text) in [
                ("cpuset.cpus", "1-3\n"),
                ("cpuset.cpus.effective", "1-3\n"),
                ("cpuset.cpus.partition", "member\n"),
            ] {
                if self.has_cpuset {
                    fs::write(self.group.join(file), text).unwrap();
                }
            }
            Ok(())
        }
        fn stop(&self, _: &str) -> Result<(), SystemdError> {
            self.log.borrow_mut().push("stop");
            fs::remove_dir_all(&self.group).unwrap();
            Ok(())
        }
        fn enable(&self, _: &str) -> Result<(), SystemdError> {
            Ok(())
        }
        fn daemon_reload(&self) -> Result<(), SystemdError> {
            self.log.borrow_mut().push("reload");
            Ok(())
        }
        fn is_live(&self) -> bool {
            false
        }
    }

    struct Case {
        tree: tempfile::TempDir,
        writer: Writer,
        partitions: Partitions<Manager>,
        spec: TargetSpec,
    }

    fn case(has_cpuset: bool) -> Case {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("sys/fs/cgroup")).unwrap();
        let group = tree.path().join("sys/fs/cgroup/lowlat.slice");
        let manager = Manager { group, has_cpuset, log: RefCell::default() };
        let writer = Writer::below(tree.path()).unwrap();
        Case { tree, writer, partitions: Partitions { manager }, spec: Partitions::spec("lowlat.slice") }
    }

    impl Case {
        fn read(&self) -> State {
            self.partitions.read(&self.writer, &self.spec).unwrap()
        }

        fn write(&self, to: &State) -> Result<(), HostError> {
            self.partitions.write(&self.writer, &self.spec, to)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.tree.path().join("sys/fs/cgroup/lowlat.slice").join(name)
        }
    }

    #[test]
    fn a_partition_is_formed_and_removed_with_its_slice() {
        let case = case(true);
        assert_eq!(case.read(), State::Absent);
        case.write(&State::Value("1-3".into())).unwrap();
        assert_eq!(case.read(), State::Value("1-3".into()));
        // Repeating it is harmless.
        case.write(&State::Value("1-3".into())).unwrap();
        case.write(&State::Absent).unwrap();
        assert_eq!(case.read(), State::Absent);
        case.write(&State::Absent).unwrap();
        assert_eq!(*case.partitions.manager.log.borrow(), ["reload", "start", "stop"]);
    }

    #[test]
    fn a_slice_with_processes_keeps_running() {
        let case = case(true);
        case.write(&State::Value("1-3".into())).unwrap();
        fs::write(case.file("cgroup.events"), "populated 1\n").unwrap();
        case.write(&State::Absent).unwrap();
        assert_eq!(fs::read_to_string(case.file("cpuset.cpus.partition")).unwrap().trim(), "member");
        assert!(!case.partitions.manager.log.borrow().contains(&"stop"));
    }

    #[test]
    fn what_the_kernel_rejects_differs_from_what_was_asked() {
        let case = case(true);
        case.write(&State::Value("1-3".into())).unwrap();
        let invalid = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
        fs::write(case.file("cpuset.cpus.partition"), format!("{invalid}\n")).unwrap();
        assert_eq!(case.read(), State::Value(invalid.into()));
        assert!(!case.spec.comparison.same(&case.read(), &State::Value("1-3".into())));
    }

    #[test]
    fn without_a_cpuset_it_is_refused_with_the_reason() {
        let error = case(false).write(&State::Value("1-3".into())).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("AllowedCPUs="), "{error}");
    }
}
