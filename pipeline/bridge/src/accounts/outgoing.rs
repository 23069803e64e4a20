//! The sender's account of one stream.

/// State of a stream at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The number after the last record; `None` before the first.
    next: Option<u64>,
    /// Records that the node reported lost since the last record.
    told_lost: u64,
    void: u64,
    lost: u64,
}

/// Decision about a record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// Send it, with this many void numbers so far.
    Send {
        /// Value of [`crate::frame::FrameHead::void`] for the frame.
        void: u64,
    },
    /// A repeated number: written by a process that was dropped.
    Old,
}

impl Outgoing {
    /// This sender lost records: they were published while none ran, or it was too slow.
    pub fn lose(&mut self, count: u64) {
        self.told_lost = self.told_lost.saturating_add(count);
        self.lost = self.lost.saturating_add(count);
    }

    /// Handles a record. The sender must read all instruments: numbers between two records are compared with
    /// the losses.
    #[inline]
    pub fn see(&mut self, sequence: u64) -> SendDecision {
        let told_lost = std::mem::take(&mut self.told_lost);
        if let Some(next) = self.next {
            let Some(jump) = sequence.checked_sub(next) else {
                self.told_lost = told_lost;
                return SendDecision::Old;
            };
            self.void = self.void.saturating_add(jump.saturating_sub(told_lost));
        }
        self.next = Some(sequence.saturating_add(1));
        SendDecision::Send { void: self.void }
    }

    /// The minimum number of the next record, and the void numbers so far; 0 before the first record.
    pub fn standing(&self) -> (u64, u64) {
        (self.next.map_or(0, |next| next.saturating_add(self.told_lost)), self.void)
    }

    /// Records that this sender never got.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
