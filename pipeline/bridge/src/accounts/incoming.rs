//! The receiver's account of one stream.

use crate::frame::FrameHead;
use std::fmt;

/// State of a stream at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incoming {
    /// Run and epoch of the newest known sender; `None` before the first.
    newest: Option<(u64, u64)>,
    /// News about that sender, until reported with a number.
    news: Option<Why>,
    /// Number that the next record should have.
    expected: u64,
    /// Void numbers reported by the newest sender so far.
    void_told: u64,
    lost: u64,
    void: u64,
}

/// Decision about a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Accept it. If there is a notice, readers get it first.
    Accept(Option<Notice>),
    /// A duplicate: its number was already accepted.
    Duplicate,
    /// A frame of a sender with a successor: refused, whatever it contains.
    Fenced,
}

/// Reason of a notice to readers, with its number in marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The first frame of the stream. Earlier records did not come through this receiver.
    Start = 1,
    /// The origin has a new run, and numbers restart.
    NewRun = 2,
    /// The origin has a new sender, and numbers continue.
    NewSender = 3,
    /// Records were lost on the way.
    Gap = 4,
    /// Nothing is lost: the stream's writer restarted, which used a number.
    NewWriter = 5,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "first frame",
            Self::NewRun => "a new run",
            Self::NewSender => "a new sender",
            Self::Gap => "a gap",
            Self::NewWriter => "a new writer",
        })
    }
}

/// A notice that readers get before the next record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    pub why: Why,
    /// Records of the origin that readers here never get.
    pub lost: u64,
    /// Numbers without a record, used by restarted writers.
    pub void: u64,
}

impl Incoming {
    /// Accounts for a record, and decides whether to accept it.
    #[inline]
    pub fn take(&mut self, head: &FrameHead) -> Verdict {
        // The usual case: no notice, and the next number.
        if self.newest == Some((head.run, head.epoch))
            && head.sequence == self.expected
            && head.void == self.void_told
            && self.news.is_none()
        {
            self.expected += 1;
            return Verdict::Accept(None);
        }
        let verdict = self.catch_up(head);
        if matches!(verdict, Verdict::Accept(_)) {
            self.expected = head.sequence.saturating_add(1);
        }
        verdict
    }

    /// Handles a standing: numbers below its own are lost, unless they arrived.
    pub fn stand(&mut self, head: &FrameHead) -> Verdict {
        if head.sequence == 0 {
            // It knows no number. The sender is still relevant.
            return if self.hear(head) { Verdict::Accept(None) } else { Verdict::Fenced };
        }
        match self.catch_up(head) {
            // A lower number is normal: a predecessor of this sender sent the records in between.
            Verdict::Duplicate => Verdict::Accept(None),
            verdict => {
                if matches!(verdict, Verdict::Accept(_)) {
                    self.expected = head.sequence;
                }
                verdict
            }
        }
    }

    /// The next expected number; 0 before the first frame.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Records of the origin that readers here never got, including those before the first frame.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Numbers without a record so far.
    pub fn void(&self) -> u64 {
        self.void
    }

    /// An accepted record could not be published here.
    pub fn lose_one(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// Updates the sender; returns false for a sender with a successor.
    fn hear(&mut self, head: &FrameHead) -> bool {
        let sender = (head.run, head.epoch);
        let news = match self.newest {
            Some(newest) if sender <= newest => return sender == newest,
            None => Why::Start,
            Some((run, _)) if head.run > run => Why::NewRun,
            // If nothing was reported of the run yet, that is the news.
            Some(_) => self.news.unwrap_or(Why::NewSender),
        };
        if self.newest.is_none_or(|(run, _)| head.run > run) {
            self.expected = 1;
        }
        self.newest = Some(sender);
        self.news = Some(news);
        self.void_told = 0;
        true
    }

    /// Accounts for the numbers between the expected one and this.
    fn catch_up(&mut self, head: &FrameHead) -> Verdict {
        if !self.hear(head) {
            return Verdict::Fenced;
        }
        let Some(jump) = head.sequence.checked_sub(self.expected) else {
            // Its void numbers so far are below the expected one, and already counted.
            self.void_told = self.void_told.max(head.void);
            return Verdict::Duplicate;
        };
        // A sender that counts backwards is not trusted: the whole jump counts as lost.
        let void = head.void.saturating_sub(self.void_told).min(jump);
        let lost = jump - void;
        self.void_told = head.void;
        self.lost = self.lost.saturating_add(lost);
        self.void = self.void.saturating_add(void);
        let why = self.news.take().or(match (lost, void) {
            (0, 0) => None,
            (0, _) => Some(Why::NewWriter),
            _ => Some(Why::Gap),
        });
        Verdict::Accept(why.map(|why| Notice { why, lost, void }))
    }
}
