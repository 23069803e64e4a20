//! Recorded messages: captures of MoldUDP64 packets, and plain files as Nasdaq publishes them, where each message is
//! behind its length.

use super::{
    capture::{Capture, is_capture},
    mold,
};
use crate::{
    array,
    sequence::{Counts, Tracker},
};
use thiserror::Error;

/// Reason why a file is not read, and a hint for the user.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FileError(pub(super) String);

/// Returns true if a file is a capture or a plain file of ITCH, by its first bytes.
pub fn recorded(bytes: &[u8]) -> bool {
    // Messages of a plain file are shorter than 256 bytes, and no text starts with a zero.
    is_capture(bytes) || bytes.first() == Some(&0)
}

/// Messages of a recorded file.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    /// Contents of the whole file.
    pub bytes: &'a [u8],
    /// The channel of a capture, as the error about several channels names it; `None`: the only one.
    pub channel: Option<&'a str>,
}

/// Findings about a file, other than its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedMessages {
    /// The sequence of a capture.
    pub counts: Counts,
    /// UDP datagrams of a capture that are not of the format.
    pub foreign: u64,
    /// Packets of a capture whose end was not captured.
    pub cut: u64,
    /// Packets of a capture whose sequence number is damaged.
    pub implausible: u64,
    /// The last link type whose packets are not read.
    pub unread_link: Option<i32>,
    /// Packets, or messages of a plain file, before the place at which the file is cut off or damaged; `None` if it
    /// is whole.
    pub whole_before: Option<u64>,
}

impl RecordedMessages {
    /// Describes the messages missing in the sequence; `None` if there are none.
    pub fn gaps(&self) -> Option<String> {
        let Counts { missing, gaps, first_gap, .. } = self.counts;
        (missing > 0).then(|| {
            let (first, last) = (first_gap.first, first_gap.last);
            format!("{missing} messages are missing in {gaps} gaps (first {first} to {last}), so quotes may be wrong")
        })
    }

    /// Returns other warnings for the user, one sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let counted = [
            (self.cut, "packets are cut short and left out"),
            (self.implausible, "packets have a sequence number far from those around it, and are left out"),
            (self.counts.doubled, "messages arrived more than once; each is used once"),
            (self.foreign, "datagrams are not MoldUDP64"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let counted = counted.map(|(count, said)| format!("{count} {said}"));
        let end = self.whole_before.map(|whole| {
            format!(
                "the file is cut off or damaged behind {whole} packets or messages; what follows is left out"
            )
        });
        let link = self.unread_link.map(|link| format!("packets of link type {link} are left out"));
        counted.chain(link).chain(end).collect()
    }
}

impl Messages<'_> {
    /// Gives each message in the order of the sequence, until one is refused with false.
    pub fn each(self, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<RecordedMessages, FileError> {
        if is_capture(self.bytes) {
            return self.captured(take);
        }
        let (mut rest, mut read) = (self.bytes, RecordedMessages::default());
        for count in 0.. {
            let length = usize::from(u16::from_be_bytes(array(rest, 0)));
            let Some((message, behind)) = rest.get(2..).and_then(|rest| rest.split_at_checked(length)) else {
                read.whole_before = (!rest.is_empty()).then_some(count);
                break;
            };
            rest = behind;
            // A length of 0 marks the end of a session.
            if !message.is_empty() && !take(message) {
                break;
            }
        }
        Ok(read)
    }

    fn captured(self, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<RecordedMessages, FileError> {
        let mut capture = Capture::read(self.bytes)?;
        let mut tracker = Tracker::default();
        for datagram in capture.channel(self.channel)? {
            let skipped = usize::from(tracker.enter(&datagram.head, 0));
            let Ok((_, messages)) = mold::decode(datagram.payload) else { continue };
            if !messages.skip(skipped).all(&mut *take) {
                break;
            }
        }
        let counts = *tracker.counts();
        // Numbers that jump beyond reason are the last ones.
        let implausible = capture.read.implausible + counts.malformed;
        Ok(RecordedMessages { counts, implausible, ..capture.read })
    }
}

#[cfg(test)]
mod tests;
