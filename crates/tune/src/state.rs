//! Which plan is in force: lowlat's own small files beside the undo log.
//!
//! ```text
//! /var/lib/lowlat
//!   huge-pages/       the undo log of pages reserved for a run of the pipeline
//!   undo/             the undo log: what was changed, and the way back
//!   plans/ID.json     each plan that was ever applied, as it was
//!   in-force.json     which of them is in force, since when, and whether it still waits for its confirmation
//!   untold.json       unit files that a rollback takes back, until systemd has been told
//!   resting.json      the boot in which the dead-man switch rests, since the plan was confirmed before its reboot
//!   taken-back.json   the boot whose kernel still has parameters that were taken back
//!   lost.json         changes that no rollback can undo any more, since their records are lost
//! ```
//!
//! in-force.json also records where the undo log ended and which lasting changes it held ([`LogSeal`]). So a log that is
//! shortened, exchanged or deleted is noticed, and what it no longer knows can still be named.

use lowlat_plan::Plan;
use lowlat_sys::undo::{Faults, HostError, LogMark, LoggedState, PrivateDirectory, TargetSpec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

const IN_FORCE: &str = "in-force.json";
const UNTOLD: &str = "untold.json";
const LOST: &str = "lost.json";
const TAKEN_BACK: &str = "taken-back.json";
const RESTING: &str = "resting.json";

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// [`Plan::id`].
    pub plan_id: String,
    /// When it was applied, milliseconds since 1970.
    pub applied_unix_ms: u64,
    /// The boot in which it was applied, /proc/sys/kernel/random/boot_id.
    pub applied_boot_id: String,
    /// Whether every step of it was applied. Without, a crash came between: apply it again, or roll it back.
    pub is_complete: bool,
    /// Within how many seconds of each boot it must be confirmed before it is rolled back; none when it needs no
    /// confirmation, or has it.
    pub confirm_within_s: Option<u64>,
    /// The plan that was in force before, and is again when this one is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<InForce>>,
}

/// What the undo log held when in-force.json was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSeal {
    /// Where the log ended.
    #[serde(flatten)]
    pub mark: LogMark,
    /// The lasting changes in force: files, services, the boot line. What a reboot takes away is not among them.
    pub wrote: Vec<Wrote>,
}

/// A lasting change of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrote {
    /// What was changed.
    pub target: TargetSpec,
    /// What lowlat made of it.
    pub state: LoggedState,
}

/// in-force.json. Before it had a seal, lowlat wrote the plan in force alone.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    in_force: InForce,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo_log: Option<LogSeal>,
}

/// Why lowlat's own files cannot be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The system refused.
    #[error("cannot {doing} {path}: {source}{}", hint(.source))]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file or directory is not one that lowlat made.
    #[error(transparent)]
    Host(HostError),
    /// A file is not what lowlat wrote.
    #[error(
        "cannot parse {path}: {source}; found {raw:?}, expected what lowlat wrote\nhint: restore it from a backup, or run `lowlat tune rollback --dry-run`, which needs the undo log only"
    )]
    Format {
        /// The file.
        path: String,
        /// What the parser said.
        source: serde_json::Error,
        /// The first letters.
        raw: String,
    },
    /// The plan that is in force is not kept.
    #[error(
        "cannot read {path}: the file of the plan in force is missing\nhint: run `lowlat tune rollback`, which needs the undo log only"
    )]
    NoPlan {
        /// Where it should be.
        path: String,
    },
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "\nhint: run it with sudo",
        _ => "",
    }
}

impl From<HostError> for StateError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Io { doing, path, source } => Self::Io { doing, path, source },
            other => Self::Host(other),
        }
    }
}

/// lowlat's directory on a host. Below the base no link is followed: a tree may come from anybody.
#[derive(Debug, Clone)]
pub struct StateDir {
    base: PathBuf,
    names: Vec<&'static str>,
}

/// Bytes of lowlat's own files at most; a plan of a host with a thousand CPUs has some megabytes.
const BYTES_MAX: u64 = 256 << 20;

impl StateDir {
    /// Where it is below the root of a host.
    pub const PATH: &str = "/var/lib/lowlat";

    /// The directory of the host whose root is `root`: "/" for the running one.
    pub fn below(root: &Path) -> Self {
        let mut names: Vec<&'static str> = Self::PATH.split('/').filter(|name| !name.is_empty()).collect();
        let mut base = root.to_owned();
        if root == Path::new("/") {
            // Administrators do link /var elsewhere, and nobody else can.
            base.extend(names.drain(..names.len() - 1));
        }
        Self { base, names }
    }

    /// The directory itself, for one that is elsewhere.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { base: dir.into(), names: Vec::new() }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.base.join(self.names.join("/"))
    }

    /// Where the undo log is.
    pub fn undo_log(&self) -> PathBuf {
        self.path().join(UNDO)
    }

    /// The undo log's directory; none when it is missing.
    pub fn open_undo_log(&self) -> Result<Option<PrivateDirectory>, HostError> {
        self.open()?.map_or(Ok(None), |dir| dir.sub(UNDO))
    }

    /// The undo log's directory, made if missing.
    pub fn make_undo_log(&self) -> Result<PrivateDirectory, HostError> {
        PrivateDirectory::create(&self.base, &self.names)?.make_sub(UNDO)
    }

    fn open(&self) -> Result<Option<PrivateDirectory>, HostError> {
        PrivateDirectory::open(&self.base, &self.names)
    }

    /// The plan in force; none when nothing is.
    pub fn in_force(&self) -> Result<Option<(InForce, Plan)>, StateError> {
        let Some(Note { in_force, .. }) = self.read(&[], IN_FORCE)? else { return Ok(None) };
        match self.plan(&in_force.plan_id)? {
            Some(plan) => Ok(Some((in_force, plan))),
            None => Err(StateError::NoPlan { path: self.plan_path(&in_force.plan_id).display().to_string() }),
        }
    }

    /// The note of what is in force, without its plan, and of where the undo log ended then; none when nothing is, and no
    /// seal where an earlier version wrote the note.
    pub fn note(&self) -> Result<Option<(InForce, Option<LogSeal>)>, StateError> {
        Ok(self.read::<Note>(&[], IN_FORCE)?.map(|note| (note.in_force, note.undo_log)))
    }

    /// Notes, durably, where the undo log ends by now. Without a plan in force there is nothing to note it with.
    pub fn seal(&self, seal: &LogSeal) -> Result<(), StateError> {
        match self.read::<Note>(&[], IN_FORCE)? {
            Some(note) if note.undo_log.as_ref() != Some(seal) => {
                self.write(&[], IN_FORCE, &Note { undo_log: Some(seal.clone()), ..note })
            }
            _ => Ok(()),
        }
    }

    /// A plan that was applied at some time; none when it is not kept.
    pub fn plan(&self, id: &str) -> Result<Option<Plan>, StateError> {
        // The id may come from a user: it names a file here and leads nowhere else.
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        self.read(&[PLANS], &plan_file(id))
    }

    /// Where a plan is kept.
    pub fn plan_path(&self, id: &str) -> PathBuf {
        self.path().join(PLANS).join(plan_file(id))
    }

    /// Notes which plan is in force, durably; the plan itself is kept first. What is noted of the undo log stays, until
    /// [`StateDir::seal`] renews it.
    pub fn put_in_force(&self, in_force: &InForce, plan: &Plan) -> Result<(), StateError> {
        self.write(&[PLANS], &plan_file(&in_force.plan_id), plan)?;
        let undo_log = self.note().ok().flatten().and_then(|(_, seal)| seal);
        self.write(&[], IN_FORCE, &Note { in_force: in_force.clone(), undo_log })
    }

    /// Notes that no plan is in force. Plans stay kept.
    pub fn take_out_of_force(&self) -> Result<(), StateError> {
        self.remove(IN_FORCE)
    }

    /// Unit files that a rollback was about to take back when it ended, without telling systemd.
    pub fn untold(&self) -> Result<BTreeSet<String>, StateError> {
        self.read(&[], UNTOLD).map(Option::unwrap_or_default)
    }

    /// Notes, durably, of which unit files systemd is still to be told.
    pub fn put_untold(&self, paths: &BTreeSet<String>) -> Result<(), StateError> {
        if paths.is_empty() { self.remove(UNTOLD) } else { self.write(&[], UNTOLD, paths) }
    }

    /// The boot, by its id, in which parameters of the kernel were last taken back that were in effect: they are until
    /// it ends. None when that never was.
    pub fn taken_back_in(&self) -> Result<Option<String>, StateError> {
        self.read(&[], TAKEN_BACK)
    }

    /// Notes that boot, durably.
    pub fn put_taken_back_in(&self, boot_id: &str) -> Result<(), StateError> {
        self.write(&[], TAKEN_BACK, &boot_id)
    }

    /// The boot, by its id, in which the dead-man switch was last put to rest until the reboot.
    pub fn resting_in(&self) -> Result<Option<String>, StateError> {
        self.read(&[], RESTING)
    }

    /// Notes that boot, durably; none when the switch is armed.
    pub fn put_resting_in(&self, boot_id: Option<&str>) -> Result<(), StateError> {
        match boot_id {
            Some(boot_id) => self.write(&[], RESTING, &boot_id),
            None => self.remove(RESTING),
        }
    }

    /// Lasting changes whose records are lost, so that no rollback can undo them.
    pub fn lost(&self) -> Result<Vec<Wrote>, StateError> {
        self.read(&[], LOST).map(Option::unwrap_or_default)
    }

    /// Notes them, durably.
    pub fn put_lost(&self, lost: &[Wrote]) -> Result<(), StateError> {
        if lost.is_empty() { self.remove(LOST) } else { self.write(&[], LOST, &lost) }
    }

    fn remove(&self, name: &str) -> Result<(), StateError> {
        match self.open()? {
            Some(dir) => Ok(dir.remove(&Faults::none(), name)?),
            None => Ok(()),
        }
    }

    fn read<T: DeserializeOwned>(&self, below: &[&str], name: &str) -> Result<Option<T>, StateError> {
        let mut dir = self.open()?;
        for name in below {
            dir = dir.map_or(Ok(None), |dir| dir.sub(name))?;
        }
        let Some(dir) = dir else { return Ok(None) };
        let Some(bytes) = dir.read(name, BYTES_MAX)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| StateError::Format {
            path: dir.path().join(name).display().to_string(),
            source,
            raw: String::from_utf8_lossy(&bytes).chars().take(80).collect(),
        })
    }

    /// Writes a document as a whole.
    fn write(&self, below: &[&str], name: &str, value: &impl Serialize) -> Result<(), StateError> {
        let mut dir = PrivateDirectory::create(&self.base, &self.names)?;
        for name in below {
            dir = dir.make_sub(name)?;
        }
        let mut text = serde_json::to_string_pretty(value).map_err(|source| StateError::Format {
            path: dir.path().join(name).display().to_string(),
            source,
            raw: String::new(),
        })?;
        text.push('\n');
        Ok(dir.write(&Faults::none(), name, text.as_bytes())?)
    }
}

/// Folder of the plans.
const PLANS: &str = "plans";
/// Folder of the undo log.
const UNDO: &str = "undo";

fn plan_file(id: &str) -> String {
    format!("{id}.json")
}
