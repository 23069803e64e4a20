//! Trees that represent hosts: unpacked captures, and trees made file by file.

use super::fakes;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Profile, Reading, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::{HostMark, Plan};
use lowlat_settings::{
    Context, Risk, Verdict,
    change::{Change, Moment, Target},
};
use lowlat_undo::{Faults, PrivateDirectory, UndoError, UndoLog, Writer};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// A tree and a log beside it.
pub(super) struct Host {
    _dir: tempfile::TempDir,
    pub(super) root: PathBuf,
    log: PathBuf,
}

impl Host {
    /// A tree with these files; `|` in a text represents a line end.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (root, log) = (dir.path().join("host"), dir.path().join("undo"));
        for name in ["proc", "sys"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let host = Self { _dir: dir, root, log };
        for (path, text) in files {
            host.put(path, text);
        }
        host
    }

    /// An unpacked capture of a host; none if files cannot be given to root, which owns the files that lowlat writes.
    pub(super) fn captured(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: whole plans on captured hosts need to make files of root's");
            return None;
        }
        let host = Self::of(&[]);
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(format!("{name}.tar.gz"));
        let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(&host.root).unwrap();
        Some(host)
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace('|', "\n")).unwrap();
    }

    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The log, with targets that read and write this tree.
    pub(super) fn log(&self) -> UndoLog {
        self.log_with(Faults::none()).unwrap()
    }

    pub(super) fn log_with(&self, faults: Faults) -> Result<UndoLog, UndoError> {
        let writer = Writer::below(&self.root).unwrap().with_faults(faults);
        let log = UndoLog::open(PrivateDirectory::create(&self.log, &[])?, writer, |_| true)?;
        let fakes = fakes::all(&self.log.with_file_name("originals"));
        Ok(fakes.into_iter().fold(log, UndoLog::with_target))
    }

    /// True if the capture contains systemd's answers about units.
    pub(super) fn has_units(&self) -> bool {
        self.path(fakes::UNITS).exists()
    }

    /// A snapshot of the tree. Interrupts are on their requested CPUs, as on a host where each has fired since.
    pub(super) fn snapshot(&self) -> HostSnapshot {
        let mut host = snapshot::read(&Root::open(&self.root).unwrap(), CATALOGUE);
        for irq in &mut host.interrupts.irqs {
            let is_outside = match (irq.effective_affinity.known(), irq.affinity.known()) {
                (Some(effective), Some(asked)) => !effective.is_subset(asked),
                _ => false,
            };
            if is_outside {
                irq.effective_affinity = irq.affinity.clone();
            }
        }
        host
    }

    /// Everything in the tree: kinds, modes, owners, bytes.
    pub(super) fn tree(&self) -> String {
        let mut text = String::new();
        describe(&self.root, Path::new(""), &mut text);
        text
    }
}

fn describe(root: &Path, at: &Path, text: &mut String) {
    let mut names: Vec<_> =
        fs::read_dir(root.join(at)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        let path = at.join(&name);
        let full = root.join(&path);
        let meta = full.symlink_metadata().unwrap();
        write!(text, "{} {:o} {}:{} ", path.display(), meta.permissions().mode(), meta.uid(), meta.gid())
            .unwrap();
        if meta.is_symlink() {
            write!(text, "-> {}", fs::read_link(&full).unwrap().display()).unwrap();
        } else if meta.is_file() {
            write!(text, "{:?}", fs::read(&full).unwrap().escape_ascii().to_string()).unwrap();
        }
        text.push('\n');
        if meta.is_dir() {
            describe(root, &path, text);
        }
    }
}

/// A host with a role and the CPUs chosen for it.
pub(super) struct HostWithRole {
    pub(super) host: HostSnapshot,
    role: Role,
    allocation: Allocation,
}

impl HostWithRole {
    /// Accepts every risk.
    pub(super) fn of(host: HostSnapshot, profile: Profile) -> Self {
        let accepted_risks = CATALOGUE.settings().map(|setting| setting.id.to_owned()).collect();
        let role = Role { profile, accepted_risks, ..Role::default() };
        let allocation = Allocation::choose(&host, &role);
        Self { host, role, allocation }
    }

    fn context(&self) -> Context<'_> {
        let Self { host, role, allocation } = self;
        Context { host, role, allocation, profile: role.profile, catalogue: CATALOGUE }
    }

    pub(super) fn plan(&self) -> Plan {
        Plan::of(&self.context(), "0.0.0")
    }

    /// Each setting's verdict, and the observed value.
    pub(super) fn verdicts(&self) -> BTreeMap<&'static str, (Verdict, String)> {
        let judge = |setting: &'static lowlat_settings::Setting| {
            let finding = lowlat_settings::judge_one(&self.context(), setting);
            (setting.id, (finding.verdict, format!("{} | {}", finding.observed, finding.because)))
        };
        CATALOGUE.settings().map(judge).collect()
    }
}

/// A plan of these changes.
pub(super) fn plan_of(changes: Vec<(Target, &str)>) -> Plan {
    Plan {
        document: Plan::DOCUMENT.to_owned(),
        schema_version: Plan::SCHEMA_VERSION,
        lowlat_version: "0.0.0".to_owned(),
        profile: Profile::Trading,
        host: HostMark::default(),
        boot_id: Reading::Absent,
        housekeeping: CpuSet::of(0),
        isolated: CpuSet::of(1),
        changes: changes.into_iter().map(|(target, after)| change(target, after)).collect(),
        role: None,
        left_out: Vec::new(),
        warnings: Vec::new(),
        unsupported: None,
        hindrances: Vec::new(),
    }
}

fn change(target: Target, after: &str) -> Change {
    Change {
        settings: vec!["test".to_owned()],
        layer: "test".to_owned(),
        target,
        before: Reading::Absent,
        after: after.replace('|', "\n"),
        moment: Moment::NowAndAtBoot,
        reason: "a test".to_owned(),
        cost: String::new(),
        risk: Risk::None,
        sources: Vec::new(),
    }
}
