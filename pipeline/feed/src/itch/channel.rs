//! The channels of a capture, and the datagrams of one of them in the order of the sequence.

use super::{
    FileError,
    capture::{Capture, Line, MoldDatagram, has_messages},
    mold,
};

/// Most numbers between two datagrams of a line that follow each other, if the numbers then go back.
const NEAR: u64 = 1 << 16;

/// A session on one line, or on several that send the same messages.
/// Most channels that an error lists.
const LISTED_MAX: usize = 20;

type Channel<'c, 'a> = Vec<(&'c Line, &'c Vec<MoldDatagram<'a>>)>;

fn described(channel: &Channel<'_, '_>) -> String {
    let session = channel.first().map(|(line, _)| session_of(line)).unwrap_or_default();
    let to: Vec<_> = channel.iter().map(|((_, to), _)| to.to_string()).collect();
    let counts =
        channel.iter().flat_map(|(_, datagrams)| datagrams.iter()).map(|datagram| datagram.head.count());
    let counts = counts.filter(|count| *count > 0).map(u64::from);
    let (packets, messages) = counts.fold((0_u64, 0), |(packets, sum), count| (packets + 1, sum + count));
    format!("{session}@{}: {packets} packets, {messages} messages", to.join(" and "))
}

fn session_of((session, _): &Line) -> String {
    String::from_utf8_lossy(session).trim().to_owned()
}

/// Returns true if the user's choice names this line.
fn is_meant(line: &Line, wanted: &str) -> bool {
    let (session, to) = (session_of(line), line.1);
    let (whole, port) = (format!("{session}@{to}"), format!(":{}", to.port()));
    let names = [whole, session, to.ip().to_string(), to.to_string(), port];
    names.iter().any(|name| name == wanted.trim())
}

impl<'a> MoldDatagram<'a> {
    fn message(&self, number: u64) -> Option<&'a [u8]> {
        mold::decode(self.payload).ok()?.1.nth(usize::try_from(number).ok()?)
    }
}

impl<'a> Capture<'a> {
    /// The datagrams of a channel, in the order of the sequence. Counts those that it leaves out.
    pub fn channel(&mut self, wanted: Option<&str>) -> Result<Vec<MoldDatagram<'a>>, FileError> {
        for datagrams in self.lines.values_mut() {
            self.read.implausible += leave_out_strays(datagrams);
            put_in_order(datagrams);
        }
        let mut channels: Vec<Channel<'_, '_>> = Vec::new();
        for line in self.lines.iter().filter(|(_, datagrams)| has_messages(datagrams)) {
            let is_its = |channel: &&mut Channel<'_, '_>| {
                channel.first().is_some_and(|first| first.0.0 == line.0.0 && are_alike(first.1, line.1))
            };
            match channels.iter_mut().find(is_its) {
                Some(channel) => channel.push(line),
                None => channels.push(vec![line]),
            }
        }
        let of = |channel: &Channel<'_, 'a>| -> Vec<MoldDatagram<'a>> {
            let lines = channel.iter().filter(|line| wanted.is_none_or(|wanted| is_meant(line.0, wanted)));
            lines.flat_map(|(_, datagrams)| datagrams.iter().copied()).collect()
        };
        let mut meant = channels.iter().map(of).filter(|datagrams| !datagrams.is_empty());
        let (Some(mut datagrams), None) = (meant.next(), meant.next()) else {
            let all: Vec<_> = channels.iter().take(LISTED_MAX).map(described).collect();
            return Err(FileError(format!(
                "it has {} channels:\n  {}\nhint: choose one with --channel: SESSION, GROUP, GROUP:PORT, :PORT or SESSION@GROUP:PORT",
                channels.len(),
                all.join("\n  ")
            )));
        };
        put_in_order(&mut datagrams);
        Ok(datagrams)
    }
}

fn put_in_order(datagrams: &mut [MoldDatagram<'_>]) {
    datagrams.sort_unstable_by_key(|datagram| datagram.head.sequence);
}

/// Leaves out strays, whose sequence numbers are far above or far below those of both neighbours. Returns how many.
fn leave_out_strays(datagrams: &mut Vec<MoldDatagram<'_>>) -> u64 {
    let numbers: Vec<u64> = datagrams.iter().map(|datagram| datagram.head.sequence).collect();
    let (mut next, mut before) = (numbers.iter().copied().skip(1), None);
    datagrams.retain(|datagram| {
        let (number, after) = (datagram.head.sequence, next.next());
        // The first and the last one have one neighbour.
        let last = before.unwrap_or(number.min(after.unwrap_or(number)));
        let after = after.unwrap_or(last);
        let is_near = number.abs_diff(last).min(number.abs_diff(after)) <= NEAR;
        let is_kept = is_near || (number > last) != (number > after);
        before = if is_kept { Some(number) } else { before };
        is_kept
    });
    u64::try_from(numbers.len() - datagrams.len()).unwrap_or(u64::MAX)
}

/// Returns true if nearly all messages whose numbers both lines have are the same.
fn are_alike(one: &[MoldDatagram<'_>], other: &[MoldDatagram<'_>]) -> bool {
    let (mut same, mut different) = (0_u64, 0_u64);
    for datagram in other.iter().filter(|datagram| datagram.head.count() > 0) {
        let behind = one.partition_point(|first| first.head.sequence <= datagram.head.sequence);
        let Some(first) = behind.checked_sub(1).and_then(|at| one.get(at)) else { continue };
        let at = datagram.head.sequence - first.head.sequence;
        if at < u64::from(first.head.count()) {
            *(if first.message(at) == datagram.message(0) { &mut same } else { &mut different }) += 1;
        }
    }
    same > 9 * different
}
