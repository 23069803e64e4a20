//! Which plan is in force: lowlat's own small files beside the undo log.
//!
//! ```text
//! /var/lib/lowlat
//!   undo/             the undo log: what was changed, and the way back
//!   plans/ID.json     each plan that was ever applied, as it was
//!   in-force.json     which of them is in force, since when, and whether it still waits for its confirmation
//!   untold.json       unit files that a rollback takes back, until systemd has been told
//!   resting.json      the boot in which the dead-man switch rests, since the plan was confirmed before its reboot
//!   taken-back.json   the boot whose kernel still has parameters that were taken back
//! ```

use lowlat_model::tune::Plan;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use thiserror::Error;

const UNTOLD: &str = "untold.json";
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

/// Why lowlat's own files cannot be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The system refused.
    #[error("{path}: cannot {doing}: {source}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what lowlat wrote.
    #[error(
        "{path}: {source}; found {raw:?}, expected what lowlat wrote: restore it from a backup, or roll back with `lowlat tune rollback`, which needs the undo log only"
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
        "{path}: the plan in force is not there; roll back with `lowlat tune rollback`, which needs the undo log only"
    )]
    NoPlan {
        /// Where it should be.
        path: String,
    },
}

/// lowlat's directory on a host.
#[derive(Debug, Clone)]
pub struct StateDir {
    dir: PathBuf,
}

impl StateDir {
    /// Where it is below the root of a host.
    pub const PATH: &str = "/var/lib/lowlat";

    /// The directory of the host whose root is `root`: "/" for the running one.
    pub fn below(root: &Path) -> Self {
        Self { dir: root.join(Self::PATH.trim_start_matches('/')) }
    }

    /// The directory itself, for one that is elsewhere.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Where the undo log is.
    pub fn undo_log(&self) -> PathBuf {
        self.dir.join("undo")
    }

    /// The plan in force; none when nothing is.
    pub fn in_force(&self) -> Result<Option<(InForce, Plan)>, StateError> {
        let Some(in_force) = self.read::<InForce>("in-force.json")? else { return Ok(None) };
        let name = plan_file(&in_force.plan_id);
        match self.read(&name)? {
            Some(plan) => Ok(Some((in_force, plan))),
            None => Err(StateError::NoPlan { path: self.dir.join(name).display().to_string() }),
        }
    }

    /// A plan that was applied at some time; none when it is not kept.
    pub fn plan(&self, id: &str) -> Result<Option<Plan>, StateError> {
        // The id may come from a user: it names a file here and leads nowhere else.
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        self.read(&plan_file(id))
    }

    /// Where a plan is kept.
    pub fn plan_path(&self, id: &str) -> PathBuf {
        self.dir.join(plan_file(id))
    }

    /// Notes which plan is in force, durably; the plan itself is kept first.
    pub fn put_in_force(&self, in_force: &InForce, plan: &Plan) -> Result<(), StateError> {
        self.write(&plan_file(&in_force.plan_id), plan)?;
        self.write("in-force.json", in_force)
    }

    /// Notes that no plan is in force. Plans stay kept.
    pub fn take_out_of_force(&self) -> Result<(), StateError> {
        self.remove("in-force.json")
    }

    /// Unit files that a rollback was about to take back when it ended, without telling systemd.
    pub fn untold(&self) -> Result<BTreeSet<String>, StateError> {
        self.read(UNTOLD).map(Option::unwrap_or_default)
    }

    /// Notes, durably, of which unit files systemd is still to be told.
    pub fn put_untold(&self, paths: &BTreeSet<String>) -> Result<(), StateError> {
        if paths.is_empty() { self.remove(UNTOLD) } else { self.write(UNTOLD, paths) }
    }

    /// The boot, by its id, in which parameters of the kernel were last taken back that were in effect: they are until
    /// it ends. None when that never was.
    pub fn taken_back_in(&self) -> Result<Option<String>, StateError> {
        self.read(TAKEN_BACK)
    }

    /// Notes that boot, durably.
    pub fn put_taken_back_in(&self, boot_id: &str) -> Result<(), StateError> {
        self.write(TAKEN_BACK, &boot_id)
    }

    /// The boot, by its id, in which the dead-man switch was last put to rest until the reboot.
    pub fn resting_in(&self) -> Result<Option<String>, StateError> {
        self.read(RESTING)
    }

    /// Notes that boot, durably; none when the switch is armed.
    pub fn put_resting_in(&self, boot_id: Option<&str>) -> Result<(), StateError> {
        match boot_id {
            Some(boot_id) => self.write(RESTING, &boot_id),
            None => self.remove(RESTING),
        }
    }

    fn remove(&self, name: &str) -> Result<(), StateError> {
        let path = self.dir.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, error)),
            _ => Ok(()),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.dir.join(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path, error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|source| StateError::Format {
            path: path.display().to_string(),
            source,
            raw: text.chars().take(80).collect(),
        })
    }

    /// Writes a document as a whole: beside its place, made durable, moved there.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), StateError> {
        let path = self.dir.join(name);
        let above = path.parent().unwrap_or(&self.dir);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)
            .map_err(|error| io_error("make", above, error))?;
        let beside = path.with_extension("new");
        let text = serde_json::to_string_pretty(value).map_err(|source| StateError::Format {
            path: path.display().to_string(),
            source,
            raw: String::new(),
        })?;
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.write_all(b"\n")?;
                file.sync_all()
            });
        if let Err(error) = written {
            let _ = fs::remove_file(&beside);
            return Err(io_error("write", &beside, error));
        }
        fs::rename(&beside, &path).map_err(|error| io_error("rename", &path, error))?;
        File::open(above).and_then(|dir| dir.sync_all()).map_err(|error| io_error("fsync", above, error))
    }
}

fn plan_file(id: &str) -> String {
    format!("plans/{id}.json")
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> StateError {
    StateError::Io { doing, path: path.display().to_string(), source }
}
