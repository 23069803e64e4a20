//! The sender's account of one stream.

/// What a sender has seen of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The number behind the last record; none before the first.
    next: Option<u64>,
    /// Records that the node told as lost since the last record.
    told_lost: u64,
    void: u64,
    lost: u64,
}

/// What is to be done with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is sent, with so many void numbers so far.
    Send {
        /// [`crate::frame::Head::void`].
        void: u64,
    },
    /// Its number was there already: written by a process that was given up.
    Old,
}

impl Outgoing {
    /// Records are lost to this sender: they went by while none ran, or it was too slow.
    pub fn lose(&mut self, count: u64) {
        self.told_lost = self.told_lost.saturating_add(count);
        self.lost = self.lost.saturating_add(count);
    }

    /// A record is there. It must be of all instruments: the numbers between two records are held against what is lost.
    #[inline]
    pub fn see(&mut self, sequence: u64) -> Seen {
        let told_lost = std::mem::take(&mut self.told_lost);
        if let Some(next) = self.next {
            let Some(jump) = sequence.checked_sub(next) else {
                self.told_lost = told_lost;
                return Seen::Old;
            };
            self.void = self.void.saturating_add(jump.saturating_sub(told_lost));
        }
        self.next = Some(sequence.saturating_add(1));
        Seen::Send { void: self.void }
    }

    /// The number that the next record has at least, and the void numbers so far; 0 while no record was seen.
    pub fn standing(&self) -> (u64, u64) {
        (self.next.map_or(0, |next| next.saturating_add(self.told_lost)), self.void)
    }

    /// Records that never came to this sender.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
