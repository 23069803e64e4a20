//! The sequence of a feed: what is missing, late or doubled.
//!
//! Every number that the feed announces is counted exactly once: as delivered, or as missing. A missing message that
//! arrives later is not delivered, because newer ones already are; it stays missing and is counted as late as well.

use crate::{Content, Head};

/// Ranges of missing messages that are remembered, so that a late message is not taken for a doubled one.
const RANGES_MAX: usize = 64;

/// Most numbers from one datagram to the next: more than a day of any feed has. Beyond them a number is damaged.
pub const JUMP_MAX: u64 = 1 << 32;

/// A range of sequence numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    pub first: u64,
    pub last: u64,
}

impl Range {
    /// Number of messages in the range.
    pub fn count(&self) -> u64 {
        self.last.wrapping_sub(self.first).wrapping_add(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Datagrams of the format, including those without messages.
    pub datagrams: u64,
    /// Datagrams of another format, and those whose sequence number is damaged.
    pub malformed: u64,
    /// Messages that were delivered, each once.
    pub delivered: u64,
    pub gaps: u64,
    /// Messages missing in the gaps.
    pub missing: u64,
    /// Of those, messages in gaps during which the kernel dropped datagrams because the socket's buffer was full.
    pub missing_in_socket: u64,
    /// The first gap; zeros without one.
    pub first_gap: Range,
    /// The latest gap; zeros without one.
    pub last_gap: Range,
    /// Missing messages that arrived after newer ones.
    pub late: u64,
    /// Messages that had arrived before.
    pub doubled: u64,
    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub socket_drops: u64,
    /// Number of sessions seen so far.
    pub sessions: u64,
    /// Number of the current session.
    pub session: u64,
    /// Sequence number of the next message.
    pub next: u64,
    /// 1 after the end of the session was announced.
    pub ended: u64,
}

impl Counts {
    /// Number of words that hold the counts.
    pub const WORDS: usize = 17;

    /// All counts as words, for memory that processes share.
    pub fn words(mut self) -> [u64; Self::WORDS] {
        self.places().map(|place| *place)
    }

    /// The counts of these words.
    pub fn of(words: [u64; Self::WORDS]) -> Self {
        let mut counts = Self::default();
        counts.places().into_iter().zip(words).for_each(|(place, word)| *place = word);
        counts
    }

    /// The place of each word.
    fn places(&mut self) -> [&mut u64; Self::WORDS] {
        [
            &mut self.datagrams,
            &mut self.malformed,
            &mut self.delivered,
            &mut self.gaps,
            &mut self.missing,
            &mut self.missing_in_socket,
            &mut self.first_gap.first,
            &mut self.first_gap.last,
            &mut self.last_gap.first,
            &mut self.last_gap.last,
            &mut self.late,
            &mut self.doubled,
            &mut self.socket_drops,
            &mut self.sessions,
            &mut self.session,
            &mut self.next,
            &mut self.ended,
        ]
    }
}

/// Follows the sequence of a feed. Allocates nothing.
#[derive(Debug, Clone)]
pub struct Tracker {
    counts: Counts,
    /// The kernel's counter of dropped datagrams, as of the last datagram.
    drops: u32,
    /// Missing ranges, the latest ones.
    ranges: [Option<Range>; RANGES_MAX],
    next_range: usize,
}

impl Default for Tracker {
    fn default() -> Self {
        Self::resumed(Counts::default())
    }
}

impl Tracker {
    /// A tracker that continues the counts of a previous process; without any, the feed's first datagram sets the
    /// sequence.
    pub fn resumed(counts: Counts) -> Self {
        Self { counts, drops: 0, ranges: [None; RANGES_MAX], next_range: 0 }
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts a datagram of another format.
    pub fn malformed(&mut self, drops: u32) {
        self.counts.malformed += 1;
        self.dropped(drops);
    }

    /// Enters a datagram, with the kernel's counter of dropped datagrams. Returns how many of its messages, from the
    /// first, are not to be delivered.
    pub fn enter(&mut self, head: &Head, drops: u32) -> u16 {
        let has_dropped = self.dropped(drops);
        let (counts, count) = (&mut self.counts, u64::from(head.count()));
        let is_same = counts.sessions > 0 && counts.session == head.session;
        // A session that starts while this process runs starts with 1.
        let start = if counts.sessions == 0 { head.sequence } else { 1 };
        let next = if is_same { counts.next } else { start };
        if head.sequence.saturating_sub(next) > JUMP_MAX {
            counts.malformed += 1;
            return head.count();
        }
        counts.datagrams += 1;
        if !is_same {
            counts.next = next;
            counts.session = head.session;
            counts.sessions += 1;
            counts.ended = 0;
            self.ranges = [None; RANGES_MAX];
        }
        if head.sequence > counts.next {
            let gap = Range { first: counts.next, last: head.sequence - 1 };
            self.gap(gap, has_dropped);
        }
        let counts = &mut self.counts;
        counts.ended |= u64::from(head.content == Content::End);
        let old = counts.next.saturating_sub(head.sequence).min(count);
        counts.delivered += count - old;
        counts.next = counts.next.max(head.sequence.saturating_add(count));
        if old > 0 {
            let late = self.forget(Range { first: head.sequence, last: head.sequence + (old - 1) });
            self.counts.late += late;
            self.counts.doubled += old - late;
        }
        u16::try_from(old).unwrap_or(u16::MAX)
    }

    /// Counts the datagrams that the kernel has dropped since the last one. Returns false if there are none.
    fn dropped(&mut self, drops: u32) -> bool {
        let new = drops.wrapping_sub(self.drops);
        self.drops = drops;
        self.counts.socket_drops += u64::from(new);
        new > 0
    }

    #[cold]
    fn gap(&mut self, gap: Range, has_dropped: bool) {
        let counts = &mut self.counts;
        counts.gaps += 1;
        counts.missing = counts.missing.saturating_add(gap.count());
        if has_dropped {
            counts.missing_in_socket = counts.missing_in_socket.saturating_add(gap.count());
        }
        if counts.gaps == 1 {
            counts.first_gap = gap;
        }
        counts.last_gap = gap;
        counts.next = gap.last + 1;
        self.remember(gap);
    }

    /// In place of the oldest one, if all places are taken.
    fn remember(&mut self, gap: Range) {
        let free = self.ranges.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.next_range = (self.next_range + 1) % RANGES_MAX;
            self.next_range
        });
        if let Some(place) = self.ranges.get_mut(at) {
            *place = Some(gap);
        }
    }

    /// Takes these messages out of the missing ranges, and returns how many were missing.
    #[cold]
    fn forget(&mut self, arrived: Range) -> u64 {
        let mut late = 0;
        for at in 0..RANGES_MAX {
            let Some(Some(missing)) = self.ranges.get(at).copied() else { continue };
            let common =
                Range { first: missing.first.max(arrived.first), last: missing.last.min(arrived.last) };
            if common.first > common.last {
                continue;
            }
            late += common.count();
            let before = (missing.first < common.first)
                .then(|| Range { first: missing.first, last: common.first - 1 });
            let after =
                (common.last < missing.last).then(|| Range { first: common.last + 1, last: missing.last });
            if let Some(place) = self.ranges.get_mut(at) {
                *place = before.or(after);
            }
            if let (Some(_), Some(after)) = (before, after) {
                self.remember(after);
            }
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn head(sequence: u64, count: u16) -> Head {
        Head { session: 1, sequence, content: Content::Messages(count) }
    }

    #[test]
    fn gaps_late_and_doubled_messages_are_told_apart() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.enter(&head(1, 3), 0), 0);
        assert_eq!(tracker.enter(&head(6, 2), 0), 0, "4 and 5 are missing");
        assert_eq!(tracker.enter(&head(4, 1), 0), 1, "late");
        assert_eq!(tracker.enter(&head(4, 1), 0), 1, "doubled");
        assert_eq!(tracker.enter(&head(7, 3), 0), 1, "7 was delivered");
        assert_eq!(tracker.enter(&head(20, 1), 3), 0, "the kernel dropped datagrams");
        let counts = *tracker.counts();
        assert_eq!((counts.delivered, counts.gaps, counts.missing), (8, 2, 12));
        assert_eq!((counts.missing_in_socket, counts.socket_drops), (10, 3));
        assert_eq!((counts.late, counts.doubled, counts.next), (1, 2, 21));
        assert_eq!(counts.first_gap, Range { first: 4, last: 5 });
        assert_eq!(counts.last_gap, Range { first: 10, last: 19 });
        assert_eq!(Counts::of(counts.words()), counts);
    }

    #[test]
    fn heartbeats_and_ends_reveal_missing_messages() {
        let mut tracker = Tracker::default();
        let other = |content, sequence| Head { session: 1, sequence, content };
        tracker.enter(&other(Content::Heartbeat, 1), 0);
        tracker.enter(&head(3, 1), 0);
        assert_eq!(tracker.counts().missing, 2, "lost before the first datagram with messages");
        tracker.enter(&other(Content::End, 6), 0);
        let counts = tracker.counts();
        assert_eq!((counts.missing, counts.ended, counts.delivered), (4, 1, 1));
        // A second session starts with 1.
        tracker.enter(&Head { session: 2, ..head(2, 1) }, 0);
        let counts = tracker.counts();
        assert_eq!((counts.sessions, counts.missing, counts.ended, counts.next), (2, 5, 0, 3));
    }

    /// A damaged number is no gap; the numbers after it are not old.
    #[test]
    fn a_number_that_jumps_beyond_reason_is_ignored() {
        for jump in [JUMP_MAX + 5, 1 << 40, 1 << 63, u64::MAX] {
            let mut tracker = Tracker::default();
            tracker.enter(&head(1, 3), 0);
            assert_eq!(tracker.enter(&head(jump, 2), 0), 2, "none is delivered");
            assert_eq!(tracker.enter(&Head { session: 2, ..head(jump, 2) }, 0), 2, "nor as a new session");
            assert_eq!(tracker.enter(&head(4, 2), 0), 0);
            let counts = *tracker.counts();
            assert_eq!(
                (counts.missing, counts.malformed, counts.delivered, counts.next),
                (0, 2, 5, 6),
                "{jump}"
            );
        }
    }

    #[test]
    fn a_successor_continues() {
        let mut tracker = Tracker::default();
        tracker.enter(&head(1, 5), 0);
        let mut successor = Tracker::resumed(*tracker.counts());
        successor.enter(&head(9, 1), 0);
        assert_eq!((successor.counts().missing, successor.counts().delivered), (3, 6));
    }

    proptest! {
        /// Whatever arrives, each announced number is delivered at most once, in ascending order, or missing.
        #[test]
        fn every_number_is_delivered_once_or_missing(
            datagrams in proptest::collection::vec((1_u64..60, 1_u16..6), 1..60),
        ) {
            let mut tracker = Tracker::default();
            let (mut delivered, mut seen) = (Vec::new(), BTreeSet::new());
            let start = datagrams[0].0;
            let (mut late, mut doubled) = (0, 0);
            for (first, count) in datagrams {
                let next = tracker.counts().next.max(start);
                for number in first..first + u64::from(count) {
                    let is_new = seen.insert(number);
                    if number < next && number >= start && is_new { late += 1 } else if number < next { doubled += 1 }
                }
                let skipped = tracker.enter(&head(first, count), 0);
                delivered.extend(first + u64::from(skipped)..first + u64::from(count));
            }
            prop_assert!(delivered.is_sorted_by(|a, b| a < b));
            let counts = tracker.counts();
            prop_assert_eq!(counts.delivered, delivered.len() as u64);
            prop_assert_eq!(counts.delivered + counts.missing, counts.next - start);
            prop_assert_eq!((counts.late, counts.doubled), (late, doubled));
        }

        #[test]
        fn hostile_heads_do_no_harm(
            heads in proptest::collection::vec((0_u64..3, any::<u64>(), any::<u16>(), any::<u32>()), 0..100),
        ) {
            let mut tracker = Tracker::default();
            for (session, sequence, count, drops) in heads {
                let head = Head { session, sequence, content: Content::of(count) };
                prop_assert!(tracker.enter(&head, drops) <= head.count());
            }
        }
    }
}
