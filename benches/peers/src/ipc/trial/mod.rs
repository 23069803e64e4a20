//! One run of md, td and strategies as processes, whatever the means they talk by.

pub mod arguments;
pub mod board;
pub mod clock;
mod crew;
pub mod load;
pub mod memory;
pub mod message;
mod others;
pub mod post;
mod record;
mod role;
mod run;
pub mod samples;
mod usage;

pub use role::{Role, Subject};
pub use run::run;

use board::Board;
use load::Load;
use lowlat_ipc::region::Memfd;
use lowlat_pipeline::{Mode, PipelineParameters};
use memory::{Cutter, Part};
use std::{ops::Range, sync::Arc};

use super::{floor, kungfu, star};

#[derive(Debug)]
pub struct Layout {
    board: Range<u64>,
    samples: Range<u64>,
    /// Part for the subject's own use.
    pub subject: SubjectLayout,
    bytes: u64,
}

/// Memory that a subject needs.
#[derive(Debug)]
pub enum SubjectLayout {
    KungfuModel(kungfu::Layout),
    /// Segments, rings, inboxes and tables.
    IpcStar(star::Layout),
    /// A ring of each process.
    Floor(floor::Layout),
}

/// Everything that a process of a trial knows.
#[derive(Debug)]
pub struct Scene {
    pub parameters: PipelineParameters,
    pub load: Load,
    /// Roles of all processes, by process.
    pub roles: Vec<Role>,
    pub layout: Layout,
    memory: Arc<Memfd>,
}

impl Scene {
    /// The scene of a trial whose memory another process made; `None` makes it.
    pub fn new(
        subject: Subject,
        parameters: PipelineParameters,
        memory: Option<Memfd>,
    ) -> anyhow::Result<Self> {
        let load = Load::of(&parameters)?;
        let roles = subject.roles(&parameters)?;
        let mut cutter = Cutter::default();
        let board = cutter.cut(Board::bytes(roles.len()));
        let samples = cutter.cut(samples::bytes(load.ticks));
        let subject = match subject {
            Subject::KungfuModel => SubjectLayout::KungfuModel(kungfu::Layout::cut(&mut cutter, &load)),
            Subject::IpcStar => SubjectLayout::IpcStar(star::Layout::cut(&mut cutter, &load)),
            Subject::Floor => SubjectLayout::Floor(floor::Layout::cut(&mut cutter, &load)),
        };
        let layout = Layout { board, samples, subject, bytes: cutter.bytes() };
        let memory = match memory {
            Some(memory) => memory,
            None => Memfd::create("lowlat-peers", layout.bytes)?,
        };
        anyhow::ensure!(
            memory.bytes() >= layout.bytes,
            "{} bytes of memory, {} needed: another version of this program made it",
            memory.bytes(),
            layout.bytes
        );
        Ok(Self { parameters, load, roles, layout, memory: Arc::new(memory) })
    }

    /// A part of the memory.
    pub fn part(&self, bytes: &Range<u64>) -> Part {
        Part::new(&self.memory, bytes)
    }

    pub fn board(&self) -> Board {
        Board::new(self.part(&self.layout.board))
    }

    pub fn samples(&self) -> samples::Samples {
        samples::Samples::new(self.part(&self.layout.samples))
    }

    /// Returns true if a role spins in this trial.
    pub fn is_spinning(&self, role: Role) -> bool {
        let is_platform = !matches!(role, Role::Strategy(_) | Role::Host);
        match self.parameters.mode {
            Mode::Fast => true,
            // A host always spins.
            Mode::PlatformFast => is_platform || role == Role::Host,
            Mode::Mixed => matches!(role, Role::Md | Role::Host),
            Mode::Parked | Mode::Adaptive => role == Role::Host,
        }
    }
}
