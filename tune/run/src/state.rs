//! lowlat's state files beside the undo log, which record the plan in force.
//!
//! ```text
//! /var/lib/lowlat
//!   huge-pages/       the undo log of pages reserved for a run of the pipeline
//!   undo/             the undo log: all changes, with what restores them
//!   plans/ID.json     each plan that was ever applied
//!   in-force.json     which of them is in force, since when, and whether it waits for confirmation
//!   untold.json       unit files that a rollback removes, until systemd has reloaded its units
//!   resting.json      the boot in which the dead-man switch is disarmed, because the plan was confirmed
//! before its reboot
//!   taken-back.json   the boot whose kernel still has parameters that were rolled back
//!   refused.json      run-time changes that were refused when they were last made, and in which boot
//!   proof.json        the proof over reboots that is under way
//!   lost.json         changes that no rollback can undo, because their records are lost
//!   made-directories  the directories above this one that lowlat created, in a tree without /var/lib
//! ```
//!
//! in-force.json also records where the undo log ended and which lasting changes it contained ([`LogSeal`]).
//! So a truncated, exchanged or deleted log is detected, and the changes missing from it can be named.

use lowlat_plain::printable;
use lowlat_plan::{Plan, proof::BootProof, verify::Refusal};
use lowlat_undo::{Faults, HostError, LogMark, LoggedState, PrivateDirectory, TargetSpec};
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
const REFUSED: &str = "refused.json";
const PROOF: &str = "proof.json";

/// Record of the plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    pub plan_id: String,
    /// When it was applied, milliseconds since 1970.
    pub applied_unix_ms: u64,
    /// The boot in which it was applied, /proc/sys/kernel/random/boot_id.
    pub applied_boot_id: String,
    /// Every step was applied. If not, the apply was interrupted: run it again, or roll it back.
    pub is_complete: bool,
    /// Seconds after each boot within which it must be confirmed or is rolled back; none if it needs no
    /// confirmation or is confirmed.
    pub confirm_within_s: Option<u64>,
    /// The plan that was in force before, and is again after this one is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<InForce>>,
    /// Lasting changes of it that were refused, wholly or in part: files, the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
}

impl InForce {
    /// This plan, then the earlier ones.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |plan| plan.earlier.as_deref())
    }
}

/// Content of the undo log when in-force.json was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSeal {
    #[serde(flatten)]
    pub mark: LogMark,
    /// The lasting changes in force: files, services, the command line. Changes that a reboot resets are
    /// excluded.
    pub wrote: Vec<Wrote>,
}

/// A lasting change of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrote {
    pub target: TargetSpec,
    /// The state that lowlat wrote.
    pub state: LoggedState,
}

/// in-force.json, without the seal until the log is first sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    in_force: InForce,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo_log: Option<LogSeal>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Refused {
    boot_id: String,
    refusals: Vec<Refusal>,
}

/// Reason why lowlat's state files cannot be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The system reported an error.
    /// - `doing`: the attempted operation, as a verb: "read".
    #[error("cannot {doing} {path}: {source}{}", hint(.source))]
    Io { doing: &'static str, path: String, source: io::Error },
    /// A file has unexpected content.
    /// - `raw`: the first characters of the file.
    #[error(
        "cannot parse {path}: {source}; found {raw:?}, expected a document of lowlat\nhint: restore it from a \
         backup, or run `lowlat tune rollback --dry-run`, which only needs the undo log"
    )]
    Format { path: String, source: serde_json::Error, raw: String },
    /// A file is missing, or lowlat did not create it.
    #[error("{0}")]
    Other(String),
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
            other => Self::Other(other.to_string()),
        }
    }
}

/// lowlat's directory on a host. Below the base no link is followed, because a tree may come from any source.
#[derive(Debug, Clone)]
pub struct StateDir {
    base: PathBuf,
    names: Vec<&'static str>,
    pub faults: Faults,
}

/// The administrator's role file, by which hosts are judged without a plan in force.
pub const ROLE_FILE: &str = "/etc/lowlat/role.toml";

/// Maximum size of lowlat's state files; a plan of a host with a thousand CPUs has some megabytes.
const BYTES_MAX: u64 = 256 << 20;

impl StateDir {
    /// Its path below the root of a host.
    pub const PATH: &str = "/var/lib/lowlat";

    /// The directory of the host whose root is `root`: "/" for the running one.
    pub fn below(root: &Path) -> Self {
        let mut names: Vec<&'static str> = Self::PATH.split('/').filter(|name| !name.is_empty()).collect();
        let mut base = root.to_owned();
        if root == Path::new("/") {
            // Administrators do link /var elsewhere, and other users cannot.
            base.extend(names.drain(..names.len() - 1));
        }
        Self { base, names, faults: Faults::default() }
    }

    /// A directory at another path.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { base: dir.into(), names: Vec::new(), faults: Faults::default() }
    }

    pub fn path(&self) -> PathBuf {
        self.base.join(self.names.join("/"))
    }

    /// Path of the undo log.
    pub fn undo_log(&self) -> PathBuf {
        self.path().join(UNDO)
    }

    /// Opens the undo log's directory; none if it is missing.
    pub fn open_undo_log(&self) -> Result<Option<PrivateDirectory>, HostError> {
        self.open()?.map_or(Ok(None), |dir| dir.sub(UNDO))
    }

    /// Opens the undo log's directory, and creates it if missing.
    pub fn make_undo_log(&self) -> Result<PrivateDirectory, HostError> {
        self.make()?.make_sub(UNDO)
    }

    fn make(&self) -> Result<PrivateDirectory, HostError> {
        PrivateDirectory::create_with_parents(&self.base, &self.names, &self.faults)
    }

    /// Removes these files if lowlat had to create directories above its own, /var or /var/lib, and those too.
    /// Nothing may be in force any more. Returns the directory that it kept, because it contains other files.
    pub fn discard(&self) -> Result<Option<String>, StateError> {
        Ok(PrivateDirectory::discard(&self.base, &self.names, &self.faults)?)
    }

    fn open(&self) -> Result<Option<PrivateDirectory>, HostError> {
        PrivateDirectory::open(&self.base, &self.names)
    }

    /// Reads the plan in force, if any.
    pub fn in_force(&self) -> Result<Option<(InForce, Plan)>, StateError> {
        let Some(Note { in_force, .. }) = self.read(&[], IN_FORCE)? else { return Ok(None) };
        match self.plan(&in_force.plan_id)? {
            Some(plan) => Ok(Some((in_force, plan))),
            None => Err(StateError::Other(format!(
                "cannot read {}: the file of the plan in force is missing\nhint: run `lowlat tune rollback`, which only \
                 needs the undo log",
                self.plan_path(&in_force.plan_id).display()
            ))),
        }
    }

    /// Reads the record of the plan in force without the plan, and the end of the undo log then. None if no
    /// plan is in force; no seal if the log was not sealed yet.
    pub fn note(&self) -> Result<Option<(InForce, Option<LogSeal>)>, StateError> {
        Ok(self.read::<Note>(&[], IN_FORCE)?.map(|note| (note.in_force, note.undo_log)))
    }

    /// Records durably where the undo log ends. Does nothing without a plan in force.
    pub fn seal(&self, seal: &LogSeal) -> Result<(), StateError> {
        match self.read::<Note>(&[], IN_FORCE)? {
            Some(note) if note.undo_log.as_ref() != Some(seal) => {
                self.write(&[], IN_FORCE, &Note { undo_log: Some(seal.clone()), ..note })
            }
            _ => Ok(()),
        }
    }

    /// Reads a plan that was applied at some time; none if it is missing.
    pub fn plan(&self, id: &str) -> Result<Option<Plan>, StateError> {
        // The ID may come from a user, so it must not leave this directory.
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        self.read(&[PLANS], &plan_file(id))
    }

    /// Path of a plan's file.
    pub fn plan_path(&self, id: &str) -> PathBuf {
        self.path().join(PLANS).join(plan_file(id))
    }

    /// Writes the plan, then records durably that it is in force. The seal of the undo log stays until
    /// [`StateDir::seal`] renews it.
    pub fn put_in_force(&self, in_force: &InForce, plan: &Plan) -> Result<(), StateError> {
        self.write(&[PLANS], &plan_file(&in_force.plan_id), plan)?;
        let undo_log = self.note().ok().flatten().and_then(|(_, seal)| seal);
        self.write(&[], IN_FORCE, &Note { in_force: in_force.clone(), undo_log })
    }

    /// Records that no plan is in force. The files of plans stay.
    pub fn take_out_of_force(&self) -> Result<(), StateError> {
        self.remove(IN_FORCE)?;
        self.remove(PROOF)?;
        self.remove(REFUSED)
    }

    /// The proof over reboots that is under way, if any.
    pub fn boot_proof(&self) -> Result<Option<BootProof>, StateError> {
        self.read(&[], PROOF)
    }

    /// Records durably how far the proof over reboots is; none if it is over.
    pub fn put_boot_proof(&self, proof: Option<&BootProof>) -> Result<(), StateError> {
        match proof {
            Some(proof) => self.write(&[], PROOF, proof),
            None => self.remove(PROOF),
        }
    }

    /// Unit files that an interrupted rollback removed without notifying systemd.
    pub fn untold(&self) -> Result<BTreeSet<String>, StateError> {
        self.read(&[], UNTOLD).map(Option::unwrap_or_default)
    }

    /// Records durably of which unit files systemd must still be notified.
    pub fn put_untold(&self, paths: &BTreeSet<String>) -> Result<(), StateError> {
        if paths.is_empty() { self.remove(UNTOLD) } else { self.write(&[], UNTOLD, paths) }
    }

    /// ID of the boot in which active kernel parameters were last rolled back; they stay active until it
    /// ends.
    pub fn taken_back_in(&self) -> Result<Option<String>, StateError> {
        self.read(&[], TAKEN_BACK)
    }

    /// Records durably that kernel parameters were rolled back in that boot.
    pub fn put_taken_back_in(&self, boot_id: &str) -> Result<(), StateError> {
        self.write(&[], TAKEN_BACK, &boot_id)
    }

    /// ID of the boot in which the dead-man switch was last disarmed until the reboot.
    pub fn resting_in(&self) -> Result<Option<String>, StateError> {
        self.read(&[], RESTING)
    }

    /// Records durably that the switch is disarmed in that boot; none if it is armed.
    pub fn put_resting_in(&self, boot_id: Option<&str>) -> Result<(), StateError> {
        match boot_id {
            Some(boot_id) => self.write(&[], RESTING, &boot_id),
            None => self.remove(RESTING),
        }
    }

    /// Run-time changes that were refused when they were last made in this boot.
    pub fn refused(&self, boot_id: &str) -> Result<Vec<Refusal>, StateError> {
        let refused = self.read::<Refused>(&[], REFUSED)?.filter(|refused| refused.boot_id == boot_id);
        Ok(refused.map_or_else(Vec::new, |refused| refused.refusals))
    }

    /// Records durably the run-time changes that were refused in that boot; an empty list removes the record.
    pub fn put_refused(&self, boot_id: &str, refusals: Vec<Refusal>) -> Result<(), StateError> {
        if refusals.is_empty() {
            return self.remove(REFUSED);
        }
        self.write(&[], REFUSED, &Refused { boot_id: boot_id.to_owned(), refusals })
    }

    /// Lasting changes whose records are lost, so no rollback can undo them.
    pub fn lost(&self) -> Result<Vec<Wrote>, StateError> {
        self.read(&[], LOST).map(Option::unwrap_or_default)
    }

    /// Records durably the lasting changes whose undo records are lost; an empty list removes the record.
    pub fn put_lost(&self, lost: &[Wrote]) -> Result<(), StateError> {
        if lost.is_empty() { self.remove(LOST) } else { self.write(&[], LOST, &lost) }
    }

    fn remove(&self, name: &str) -> Result<(), StateError> {
        match self.open()? {
            Some(dir) => Ok(dir.remove(&self.faults, name)?),
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

    fn write(&self, below: &[&str], name: &str, value: &impl Serialize) -> Result<(), StateError> {
        let mut dir = self.make()?;
        for name in below {
            dir = dir.make_sub(name)?;
        }
        let text = serde_json::to_string(value).map_err(|source| StateError::Format {
            path: dir.path().join(name).display().to_string(),
            source,
            raw: String::new(),
        })?;
        Ok(dir.write(&self.faults, name, format!("{}\n", printable::indented(&text)).as_bytes())?)
    }
}

const PLANS: &str = "plans";
const UNDO: &str = "undo";

fn plan_file(id: &str) -> String {
    format!("{id}.json")
}
