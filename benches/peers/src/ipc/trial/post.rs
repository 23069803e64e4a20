//! Duties of each process of a trial besides its role: reporting that it is ready, starting with the others, reporting
//! what it used.

use super::{
    Role, Scene,
    board::{Board, Count, Phase, Slot},
    usage::Usage,
};
use std::{thread, time::Duration};

const LOOK: Duration = Duration::from_millis(2);

/// A process's place in a trial.
#[derive(Debug)]
pub struct Post {
    pub role: Role,
    pub is_spinning: bool,
    pub board: Board,
    member: usize,
    before: Usage,
}

impl Post {
    /// The place number `member` of the scene's roles.
    pub fn new(scene: &Scene, member: usize) -> anyhow::Result<Self> {
        let role = scene.roles.get(member).copied();
        let role = role.ok_or_else(|| anyhow::anyhow!("no process has number {member}"))?;
        Ok(Self {
            role,
            is_spinning: scene.is_spinning(role),
            board: scene.board(),
            member,
            before: Usage::default(),
        })
    }

    /// Reports that this process has all it needs.
    pub fn say_ready(&self) {
        self.board.set_slot(self.member, Slot::Ready, 1);
    }

    /// Reports that this process is ready, and waits until all are. Returns the schedule's start.
    pub fn begin(&mut self) -> anyhow::Result<u64> {
        self.say_ready();
        while self.board.phase() == Phase::Assembling {
            thread::sleep(LOOK);
        }
        self.before = Usage::now()?;
        Ok(self.board.start_ns())
    }

    /// Returns true if the trial is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.board.phase() == Phase::Over
    }

    /// Reports how many answers this process has read.
    pub fn count_answers(&self, count: u64) {
        self.board.set_slot(self.member, Slot::Answers, count);
    }

    /// Reports how many records this process has lost.
    pub fn count_lost(&self, count: u64) {
        self.board.set_slot(self.member, Slot::Lost, count);
    }

    /// Sets a counter of this role.
    pub fn count(&self, count: Count, value: u64) {
        self.board.set_count(count, value);
    }

    /// Reports what was used since `begin`. Threads that took part must still exist.
    pub fn report(&self) -> anyhow::Result<()> {
        let used = Usage::now()?.since(&self.before);
        for (slot, value) in [
            (Slot::CpuNs, used.cpu_ns),
            (Slot::Voluntary, used.voluntary),
            (Slot::Involuntary, used.involuntary),
            (Slot::MinorFaults, used.minor_faults),
            (Slot::MajorFaults, used.major_faults),
            (Slot::Reported, 1),
        ] {
            self.board.set_slot(self.member, slot, value);
        }
        Ok(())
    }
}
