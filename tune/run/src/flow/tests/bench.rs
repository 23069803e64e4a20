//! An unpacked capture of a host, with fakes of the service manager, the boot loader and programs.

use super::super::*;
use crate::boot_loader::{BootLoader, BootLoaderError, EntryLine, FileChange};
use crate::steps::{NotPrepared, Part, Preparation, Prepared};
use crate::{Outcome, Programs, StateDir};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Reading, Role, snapshot::sysctl_path};
use lowlat_host_run::Root;
use lowlat_plan::{Plan, outcome::ApplyOutcome};
use lowlat_settings::{
    Context,
    change::{BootToken, Target as PlanTarget},
};
use lowlat_undo::{
    Comparison, Faults, FileState, HostError, State, Target, TargetSpec, UndoError, UndoLog, UndoStep, Writer,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, io};

pub const GRUB_CFG: &str = "boot/grub/grub.cfg";
const DROP_IN: &str = "/etc/default/grub.d/99-lowlat.cfg";
const UNITS: &str = "/run/units";

/// True for root, which must own the files of these tests, as on a host.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: takes root, since lowlat's files belong to root");
    }
    is_root
}

#[derive(Debug, Clone, Default)]
pub struct FakeManager {
    pub calls: Arc<Mutex<Vec<String>>>,
    pub active: Arc<Mutex<BTreeMap<String, u64>>>,
    /// Kills the process that calls it.
    pub dies: Arc<AtomicBool>,
}

impl FakeManager {
    fn call(&self, what: String) {
        assert!(!self.dies.load(Ordering::Relaxed), "killed before {what}");
        self.calls.lock().unwrap().push(what);
    }
}

impl Manager for FakeManager {
    fn daemon_reload(&self) -> io::Result<()> {
        self.call("daemon-reload".into());
        Ok(())
    }
    fn start(&self, unit: &str) -> io::Result<()> {
        self.call(format!("start {unit}"));
        self.active.lock().unwrap().insert(unit.into(), 1);
        Ok(())
    }
    fn stop(&self, unit: &str) -> io::Result<()> {
        self.call(format!("stop {unit}"));
        self.active.lock().unwrap().remove(unit);
        Ok(())
    }
    fn restart(&self, unit: &str) -> io::Result<()> {
        self.call(format!("restart {unit}"));
        Ok(())
    }
    fn active_since_us(&self, unit: &str) -> io::Result<Option<u64>> {
        Ok(self.active.lock().unwrap().get(unit).copied())
    }
    fn reboot(&self) -> io::Result<()> {
        self.call("reboot".into());
        Ok(())
    }
}

/// Generates grub.cfg from the drop-in, below a tree.
#[derive(Debug, Clone)]
pub struct FakePrograms(pub PathBuf);

impl Programs for FakePrograms {
    fn run(&self, program: &str, _: &[&str]) -> io::Result<Outcome> {
        assert_eq!(program, "grub-mkconfig");
        let kernels = fs::read_to_string(self.0.join("boot/kernels")).unwrap_or_else(|_| "linux".into());
        let extra = fs::read_to_string(self.0.join(DROP_IN.trim_start_matches('/'))).unwrap_or_default();
        let text = format!("menuentry {} {}\n", kernels.trim(), extra.trim());
        Ok(Outcome { is_success: true, stdout: text.into(), stderr: String::new() })
    }
}

#[derive(Debug)]
struct FakeLoader;

impl BootLoader for FakeLoader {
    fn name(&self) -> &'static str {
        "GRUB (test)"
    }
    fn sources(&self, _: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        let words: Vec<String> = tokens
            .iter()
            .map(|token| format!("{}={}", token.name, token.value.as_deref().unwrap_or_default()))
            .collect();
        let new = State::File(FileState::of_root(words.join(" "), 0o644));
        Ok(vec![FileChange { path: DROP_IN.into(), variable: None, new }])
    }
    fn generator(&self, _: &Root) -> Option<String> {
        Some(format!("grub-mkconfig -o /{GRUB_CFG}"))
    }
    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        root.read(&format!("/{GRUB_CFG}"))
    }
    fn entry_lines(&self, root: &Root) -> Vec<EntryLine> {
        let path = "/boot/loader/entries/later.conf";
        let options = root.read(path).text().trim().to_owned();
        if options.is_empty() { Vec::new() } else { vec![EntryLine { path: path.into(), options }] }
    }
    fn generated(&self, _: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        let text = programs.run("grub-mkconfig", &[]).unwrap().stdout;
        let new = State::File(FileState::of_root(text, 0o600));
        Ok(vec![FileChange { path: format!("/{GRUB_CFG}"), variable: None, new }])
    }
}

/// Services, kept as files of the tree.
#[derive(Debug)]
struct FakeServices;

impl Target for FakeServices {
    fn kind(&self) -> &'static str {
        "service"
    }
    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        writer.read_value(&format!("{UNITS}/{}", spec.name))
    }
    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let State::Value(text) = to else { panic!("a service is {to}") };
        if writer.read_value(&format!("{UNITS}/{}.refuses", spec.name))? != State::Absent {
            let what = "Device or resource busy".to_owned();
            return Err(HostError::Refused { path: spec.name.clone(), what });
        }
        writer.write_value(&format!("{UNITS}/{}", spec.name), text)
    }
    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(&format!("{UNITS}/{}", spec.name), true)
    }
    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        self.clear(writer, spec)
    }
}

/// Prepares the kinds of changes that these tests contain.
fn prepare(plan: &Plan, _: &HostSnapshot, log: &UndoLog, part: Part) -> Result<Preparation, UndoError> {
    let mut preparation = Preparation::default();
    if matches!(part, Part::Queues | Part::Tuned) {
        return Ok(preparation);
    }
    for (change, planned) in plan.changes.iter().enumerate() {
        let value = |path: String, comparison| Some((TargetSpec::value(path, comparison), false));
        let found = match &planned.target {
            PlanTarget::Sysctl { key } => value(sysctl_path(key), Comparison::Words),
            PlanTarget::File { path } => value(path.clone(), Comparison::Choice),
            PlanTarget::IrqAffinity { irq, .. } => {
                value(format!("/proc/irq/{irq}/smp_affinity_list"), Comparison::CpuList)
            }
            PlanTarget::Service { unit } => {
                let comparison = Comparison::Exact;
                Some((TargetSpec { kind: "service".into(), name: unit.clone(), comparison }, false))
            }
            PlanTarget::OwnedFile { path } => Some((TargetSpec::file(path.clone()), true)),
            _ => None,
        };
        let Some((target, is_file)) = found.filter(|(_, is_file)| *is_file == (part == Part::Files)) else {
            continue;
        };
        let old = log.present(&target)?;
        if old == State::Absent && !is_file {
            preparation.left.push(NotPrepared { change, reason: format!("{} is not there", target.name) });
            continue;
        }
        let new = if is_file {
            State::File(FileState::of_root(planned.after.as_bytes(), 0o644))
        } else {
            State::Value(planned.after.clone())
        };
        let id = format!("{} {}", target.kind, target.name);
        preparation.steps.push(Prepared {
            change,
            also: Vec::new(),
            step: UndoStep { id, target, old, new },
        });
    }
    Ok(preparation)
}

pub struct Bench {
    dir: tempfile::TempDir,
    pub manager: FakeManager,
    pub plan: Plan,
    pub host: HostSnapshot,
}

impl Bench {
    /// The guide's untouched server, with a plan that has one or two changes of each kind.
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let capture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/epyc-7f32-stock.tar.gz");
        let file = fs::File::open(capture).unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(dir.path().join("host")).unwrap();
        let mut bench =
            Self { plan: blank_plan(), host: HostSnapshot::default(), manager: FakeManager::default(), dir };
        bench.put("usr/local/sbin/lowlat", "binary");
        bench.put(GRUB_CFG, "menuentry linux \n");
        fs::create_dir_all(bench.tree().join("etc/systemd/system")).unwrap();
        bench.put("proc/sys/kernel/random/boot_id", "11111111-0000-4000-8000-000000000000\n");
        bench.put("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro\n");
        bench.host = bench.site(Faults::none()).snapshot();
        bench.plan = bench.small_plan();
        bench.put_units();
        bench
    }

    /// Creates the services of the plan in the state that the plan found.
    pub fn put_units(&self) {
        for change in &self.plan.changes {
            if let PlanTarget::Service { unit } = &change.target {
                self.put(&format!("run/units/{unit}"), change.before.text());
            }
        }
    }

    pub fn tree(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.tree().join(path)).unwrap_or_default()
    }

    pub fn site(&self, faults: Faults) -> Site {
        site(&self.tree(), &self.state(), self.manager.clone(), faults)
    }

    /// Everything that a profile changes on the host.
    pub fn whole_plan(&self) -> Plan {
        let role = Role::default();
        let allocation = Allocation::choose(&self.host, &role);
        let context = Context {
            host: &self.host,
            role: &role,
            allocation: &allocation,
            profile: role.profile,
            catalogue: CATALOGUE,
        };
        Plan::of(&context, "0.0.0")
    }

    /// One or two changes of each kind, because tests visit each operation.
    fn small_plan(&self) -> Plan {
        let mut plan = self.whole_plan();
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        plan.changes.retain(|change| {
            let kind = serde_json::to_value(&change.target).unwrap()["kind"].to_string();
            let is_known = matches!(
                change.target,
                PlanTarget::Sysctl { .. }
                    | PlanTarget::File { .. }
                    | PlanTarget::OwnedFile { .. }
                    | PlanTarget::CommandLine { .. }
            );
            let seen = kinds.entry(kind).or_default();
            *seen += 1;
            is_known && *seen <= 2
        });
        let sysctls: Vec<String> = plan
            .changes
            .iter()
            .filter_map(|change| match &change.target {
                PlanTarget::Sysctl { key } => Some(format!("{key} = {}\n", change.after)),
                _ => None,
            })
            .collect();
        for change in &mut plan.changes {
            if matches!(&change.target, PlanTarget::OwnedFile { path } if path.contains("/sysctl.d/")) {
                change.after = sysctls.concat();
            }
        }
        // One service, whatever the captured host runs.
        let mut service = plan.changes.first().cloned().unwrap();
        service.target = PlanTarget::Service { unit: "sleepless.service".into() };
        (service.before, service.after) =
            (Reading::Known("active, enabled".into()), "inactive, disabled".into());
        service.layer = "service".into();
        plan.changes.push(service);
        assert!(plan.changes.len() >= 6, "{:#?}", plan.changes);
        plan
    }

    pub fn ready(&self, site: &Site, options: ApplyOptions) -> Result<Ready, FlowError> {
        Ready::new(site, &self.host, self.plan.clone(), PlanFrom::Host, options)
    }

    pub fn apply(&self, site: &Site, options: ApplyOptions) -> Result<ApplyOutcome, FlowError> {
        self.ready(site, options)?.carry_out(site, &self.host, &mut |_| ())
    }

    /// A bench whose plan is applied, its site, and its files from before.
    pub fn applied(options: ApplyOptions) -> (Self, Site, BTreeMap<String, String>) {
        let bench = Self::new();
        let site = bench.site(Faults::none());
        let start = bench.files();
        bench.apply(&site, options).unwrap();
        (bench, site, start)
    }

    /// Restarts the host: values of the kernel are reset, and the command line is the boot loader's.
    pub fn reboot(&self, start: &BTreeMap<String, String>) {
        let boot = self.text("proc/sys/kernel/random/boot_id");
        for (path, text) in start
            .iter()
            .filter(|(path, text)| is_of_kernel(path) && !path.ends_with('/') && !text.starts_with("-> "))
        {
            if self.text(path) != *text {
                self.put(path, text);
            }
        }
        self.set_dropins();
        let number = u32::from_str_radix(boot.get(..8).unwrap(), 16).unwrap() + 1;
        self.put("proc/sys/kernel/random/boot_id", &format!("{number:08x}-0000-4000-8000-000000000000\n"));
        let entry = self.text(GRUB_CFG);
        let words: Vec<&str> = entry.split_whitespace().skip(2).collect();
        let line = format!("BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro {}\n", words.join(" "));
        self.put("proc/cmdline", line.replace("= ", " ").trim_end());
        self.manager.active.lock().unwrap().clear();
    }

    /// Sets the values of sysctl.d, as systemd-sysctl does at boot.
    fn set_dropins(&self) {
        let files = fs::read_dir(self.tree().join("etc/sysctl.d")).into_iter().flatten().flatten();
        for file in files.filter(|file| file.path().extension().is_some_and(|end| end == "conf")) {
            let text = fs::read_to_string(file.path()).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            for (key, value) in lines.filter_map(|line| line.split_once('=')) {
                let path = format!("proc/sys/{}", key.trim().trim_start_matches('-').replace('.', "/"));
                if self.tree().join(&path).exists() {
                    self.put(&path, &format!("{}\n", value.trim()));
                }
            }
        }
    }

    /// Every file of the tree by its path: content, mode, owner; for links, the target.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        walk(&self.tree(), Path::new(""), &mut files);
        files
    }

    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.manager.calls.lock().unwrap())
    }
}

/// A site below a tree, with fakes of everything that needs a running host.
pub fn site(tree: &Path, state: &Path, manager: FakeManager, faults: Faults) -> Site {
    let mut site = Site::below(tree, CATALOGUE).unwrap();
    site.state = StateDir::at(state);
    site.manager = Some(Box::new(manager));
    site.programs = Some(Box::new(FakePrograms(tree.to_owned())));
    site.targets = || vec![Box::new(FakeServices)];
    site.prepare = prepare;
    site.detect = |_| Ok(Box::new(FakeLoader));
    site.faults = faults;
    site
}

fn blank_plan() -> Plan {
    let host = HostSnapshot::default();
    let role = Role::default();
    let allocation = Allocation::choose(&host, &role);
    Plan::of(
        &Context {
            host: &host,
            role: &role,
            allocation: &allocation,
            profile: role.profile,
            catalogue: CATALOGUE,
        },
        "0.0.0",
    )
}

fn walk(root: &Path, at: &Path, files: &mut BTreeMap<String, String>) {
    use std::os::unix::fs::MetadataExt;
    let mut entries: Vec<_> = fs::read_dir(root.join(at)).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = at.join(entry.file_name());
        let meta = entry.metadata().unwrap();
        let shown = path.display().to_string();
        if meta.is_dir() {
            files.insert(format!("{shown}/"), format!("{:o} {}:{}", meta.mode(), meta.uid(), meta.gid()));
            walk(root, &path, files);
        } else if meta.is_symlink() {
            files.insert(shown, format!("-> {}", fs::read_link(root.join(&path)).unwrap().display()));
        } else {
            let bytes = fs::read(root.join(&path)).unwrap();
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            if !is_of_kernel(&shown) && !shown.starts_with("run/") {
                write!(text, "|{:o} {}:{} {}", meta.mode(), meta.uid(), meta.gid(), meta.mtime()).unwrap();
            }
            files.insert(shown, text);
        }
    }
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("proc/") || path.starts_with("sys/")
}

/// The differences in meaning between two trees. The line end of an attribute and the alternatives beside the chosen
/// word do not count.
pub fn differences(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let meaning = |name: &str, text: &String| match text.split_once('[').filter(|_| name.starts_with("sys/"))
    {
        Some((_, rest)) => rest.split(']').next().unwrap_or_default().to_owned(),
        None => text.trim_end().to_owned(),
    };
    let same = |name: &&&String| {
        a.get(**name).map(|text| meaning(name, text)) == b.get(**name).map(|text| meaning(name, text))
    };
    names
        .iter()
        .filter(|name| !same(name))
        .map(|name| format!("{name}: {:?} / {:?}", a.get(*name), b.get(*name)))
        .collect()
}
