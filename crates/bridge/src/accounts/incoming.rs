//! The receiver's account of one stream.

use crate::frame::Head;
use std::fmt;

/// What a receiver knows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incoming {
    /// Run and epoch of the newest sender that was heard; none before the first.
    newest: Option<(u64, u64)>,
    /// What is new about that sender, until it is told with a number.
    news: Option<Why>,
    /// The number that comes next.
    expected: u64,
    /// Void numbers that the newest sender had told so far.
    void_told: u64,
    lost: u64,
    void: u64,
}

/// What is to be done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It counts. Readers are told first, if there is something to tell.
    Accept(Option<Told>),
    /// Its number was there already.
    Duplicate,
    /// Of a sender that has a successor: refused, whatever it says.
    Fenced,
}

/// Why there is something to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The first that this receiver hears of the stream. What was before did not come through it.
    Start,
    /// The origin has a new run, and numbers begin anew.
    NewRun,
    /// The origin has a new sender, and numbers go on.
    NewSender,
    /// Records are lost on the way.
    Gap,
    /// Nothing is lost: the stream's writer started anew, which took a number.
    NewWriter,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "the first that is heard",
            Self::NewRun => "a new run",
            Self::NewSender => "a new sender",
            Self::Gap => "a gap",
            Self::NewWriter => "a new writer",
        })
    }
}

/// What readers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Why.
    pub why: Why,
    /// Records of the origin that readers here never get.
    pub lost: u64,
    /// Numbers that no record has.
    pub void: u64,
}

impl Incoming {
    /// A record is there.
    #[inline]
    pub fn take(&mut self, head: &Head) -> Verdict {
        // The usual: nothing to tell, and one number further.
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

    /// A standing is there: numbers below its own are lost, if they have not come.
    pub fn stand(&mut self, head: &Head) -> Verdict {
        if head.sequence == 0 {
            // It knows no number. Who sends counts all the same.
            return if self.hear(head) { Verdict::Accept(None) } else { Verdict::Fenced };
        }
        match self.catch_up(head) {
            // What a sender has not sent since it began, another one has.
            Verdict::Duplicate => Verdict::Accept(None),
            verdict => {
                if matches!(verdict, Verdict::Accept(_)) {
                    self.expected = head.sequence;
                }
                verdict
            }
        }
    }

    /// The number that comes next; 0 before the first frame.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Records of the origin that readers here never got. Those before the first frame are among them.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Numbers that no record has.
    pub fn void(&self) -> u64 {
        self.void
    }

    /// A record that was accepted cannot be published here.
    pub fn lose_one(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// Who sends; false for a sender that has a successor.
    fn hear(&mut self, head: &Head) -> bool {
        let sender = (head.run, head.epoch);
        let news = match self.newest {
            Some(newest) if sender <= newest => return sender == newest,
            None => Why::Start,
            Some((run, _)) if head.run > run => Why::NewRun,
            // Of a run that nothing was told of yet, that is the news.
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
    fn catch_up(&mut self, head: &Head) -> Verdict {
        if !self.hear(head) {
            return Verdict::Fenced;
        }
        let Some(jump) = head.sequence.checked_sub(self.expected) else {
            // Its void numbers so far are below the expected one, and accounted for.
            self.void_told = self.void_told.max(head.void);
            return Verdict::Duplicate;
        };
        // A sender that counts backwards is not believed: all of the jump is lost.
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
        Verdict::Accept(why.map(|why| Told { why, lost, void }))
    }
}
