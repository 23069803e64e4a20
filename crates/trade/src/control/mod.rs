//! What nodes and their master say to each other: JSON of at most 4 KiB a message over a SOCK_SEQPACKET unix socket, with
//! memory as file descriptors beside it. A descriptor marked `r` is read-only.
//!
//! ```text
//! node                              master
//!   Hello, Claims*, Reads*, Ready ->
//!                               <-   Welcome [inbox, counters, r master's page, own segment, r own interest table]
//!   Mapped                      ->       (the segment is sealed: no other process can map it for writing)
//!                               <-   Strategies*, Area* [memory], In* [r segment, ring], Out* [ring, inbox]
//!                               <-   Joined   (publishers that ran already have connected it)
//!                               <-   Begin, In, Out, Gone, Command, Stop: each announced by bit 1023 of the inbox
//!   Linked (after an Out)       ->
//!   Again (given up)            ->   Out to the publisher, In, Missed to the node
//!   Release (a strategy)        ->
//!   Say                         ->
//!   Leave                       ->
//! ```

mod wire;

pub(crate) use wire::timespec;
pub use wire::{Incoming, Lent, Socket, WireError, parse};

use crate::node::{Keys, Overrun, Strategies, Wait, Writes};
use serde::{Deserialize, Serialize};

/// The messages described here.
pub const VERSION: u32 = 6;
/// Strategies in one [`ToNode::Strategies`].
pub const TURNS_MAX: usize = KEYS_MAX / 2;
/// The bit of an inbox that says: read the socket.
pub const CONTROL_STREAM: u32 = lowlat_ipc::inbox::STREAMS_MAX - 1;
/// Numbers in one [`ToMaster::Reads`], [`ToMaster::Claims`] or [`ToNode::Strategies`], so that a message fits whatever
/// their size.
pub const KEYS_MAX: usize = 300;
/// Bytes of a command's text, so that it fits a message whatever its characters.
pub const COMMAND_BYTES_MAX: usize = 600;

/// What a node does when its master is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutMaster {
    /// It is asked to stop.
    Stop,
    /// It goes on: publishing and reading need no master.
    #[default]
    GoOn,
}

/// From a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToMaster {
    /// Who it is. Must be the first message.
    Hello {
        /// [`VERSION`] of the node.
        version: u32,
        /// Its process id; held against what the kernel says of the socket.
        pid: u32,
        /// Its start time in clock ticks since boot.
        start_ticks: u64,
        /// Its name, which keeps its number over restarts.
        name: String,
        /// Its role.
        role: String,
        /// What it writes.
        writes: Option<Writes>,
        /// How it waits.
        wait: Wait,
    },
    /// Strategies whose orders it sends; several messages add up.
    Claims {
        /// Which.
        strategies: Strategies,
    },
    /// What it reads; several of the same streams add up.
    Reads {
        /// A stream's name, or `orders.*`.
        streams: String,
        /// Which of its records.
        keys: Keys,
        /// What happens to those that it is too slow for.
        overrun: Overrun,
    },
    /// All is said.
    Ready,
    /// It has mapped the memory of [`ToNode::Welcome`]. No other process is given its segment before.
    Mapped,
    /// The link of [`ToNode::Out`] is connected: from now on records go to it.
    Linked {
        /// Whose.
        subscriber: u32,
        /// Which one.
        generation: u64,
        /// From which position of the stream's segment on.
        position: u64,
        /// The number of the record that comes there.
        sequence: u64,
    },
    /// It was given up by a publisher for being too far behind, and asks to be connected anew.
    Again {
        /// The publisher.
        writer: u32,
        /// The number of the last record that it was given, if any.
        after: Option<u64>,
        /// Where the first record stands that it was not given.
        first: u64,
    },
    /// It sends no more orders of this strategy, which another node will claim.
    Release {
        /// The strategy's number.
        strategy: u32,
    },
    /// A word for its master's user.
    Say {
        /// The word.
        text: String,
    },
    /// It ends by its own will.
    Leave,
}

/// To a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToNode {
    /// It is taken. With inbox, counters, master's page; when it writes, its segment and interest table as well.
    Welcome {
        /// [`VERSION`] of the master.
        version: u32,
        /// Its number.
        number: u32,
        /// How many processes of its name there were, this one counted.
        epoch: u64,
        /// What to do without the master.
        without_master: WithoutMaster,
    },
    /// Strategies that are the node's, before it has joined; several messages add up.
    Strategies {
        /// The number of each, and its turn: how many processes had it before.
        turns: Vec<(u32, u32)>,
    },
    /// A named area. With its memory.
    Area {
        /// Its name.
        name: String,
        /// Whether the node may write it.
        is_writable: bool,
    },
    /// A stream to read, after those of the same place that came before. With segment and ring.
    In {
        /// Its bit in the inbox.
        place: u32,
        /// Its name.
        stream: String,
        /// The number of who writes it.
        writer: u32,
        /// What the ring is: with [`Overrun::Conflate`] a table of the latest.
        overrun: Overrun,
    },
    /// Records of a stream went by while no process of this name was there, and were not kept.
    Missed {
        /// Its bit in the inbox.
        place: u32,
        /// How many.
        count: u64,
    },
    /// A subscriber to serve. With ring and its inbox.
    Out {
        /// Its number.
        subscriber: u32,
        /// This stream's bit in its inbox.
        place: u32,
        /// Entries of the ring, or keys of the table.
        entries: u64,
        /// To be given back in [`ToMaster::Linked`].
        generation: u64,
        /// What the ring is.
        overrun: Overrun,
    },
    /// A subscriber is gone.
    Gone {
        /// Its number.
        subscriber: u32,
    },
    /// The node has all that it needs.
    Joined,
    /// All are there: publishing may begin.
    Begin,
    /// The node should end.
    Stop,
    /// A word to the role.
    Command {
        /// Its text.
        text: String,
    },
    /// The node is not taken.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}
