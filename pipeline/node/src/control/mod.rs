//! Messages between nodes and their master: postcard of at most 4 KiB per message over a SOCK_SEQPACKET unix
//! socket, with memory passed as file descriptors. A descriptor marked `r` is read-only.
//!
//! ```text
//! node                              master
//!   Hello, Claims*, Reads*, Ready ->
//!                               <-   Welcome [inbox, counters, r master's page, own segment, r own interest table]
//!   Mapped                      ->       (the segment is sealed: no other process can map it for writing)
//!                               <-   Strategies*, Area* [memory], In* [r segment, ring], Out* [ring, inbox]
//!                               <-   Joined   (running publishers have connected it)
//!                               <-   Begin, In, Out, Gone, Command, Stop: each announced by bit 1023 of the inbox
//!   Linked (after an Out)       ->
//!   Again (evicted)             ->   Out to the publisher, In, Missed to the node
//!   Release (a strategy)        ->
//!   Say                         ->
//!   Leave                       ->
//! ```

mod peer;
mod wire;

pub use peer::Peer;
pub use wire::{Lent, ReceiveOutcome, Socket, encode, parse, version_of};

use crate::{Keys, Overrun, Strategies, Wait, Writes};
use serde::{Deserialize, Serialize};

/// Version of the messages described here.
pub const VERSION: u32 = 12;
/// Maximum number of strategies in a [`ToNode::Strategies`].
pub const TURNS_MAX: usize = KEYS_MAX / 2;
/// The inbox bit that announces messages on the socket.
pub const CONTROL_STREAM: u32 = 0;
/// Numbers per [`ToMaster::Reads`], [`ToMaster::Claims`] or [`ToNode::Strategies`], so that a message fits
/// whatever their size.
pub const KEYS_MAX: usize = 300;
/// Longest text of a command, in bytes, so that it fits a message whatever its characters.
pub const COMMAND_BYTES_MAX: usize = 600;

/// Action of a node that loses its master.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum WithoutMaster {
    Stop,
    /// It continues: publishing and reading do not need a master.
    #[default]
    GoOn,
}

/// Request of a run's user to its master, sent from outside instead of joining.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Lists the nodes of the run.
    List,
    /// Drops a node; its process may be restarted.
    Drop { name: String },
    /// Ends the run.
    Stop,
    /// Halts a strategy, or all of them, or lets them send orders again.
    Halt { strategy: Option<u32>, is_halted: bool },
}

/// A node of a run, as its master sees it, or a program of the run that has not joined.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeRow {
    pub name: String,
    pub role: String,
    /// Its process; 0: none has been started.
    pub pid: u32,
    /// Number of processes that have joined under its name, including this one.
    pub epoch: u64,
    /// Its state: joining, running, silent, dead or left, and of a program of the run also starting, restarting or given
    /// up.
    pub standing: String,
    /// True if its process exists.
    pub is_there: bool,
    /// Time since it was admitted, ns.
    pub joined_ns: u64,
    /// Records in its stream; `None` without one.
    pub published: Option<u64>,
    /// Number of records that it read.
    pub read: u64,
    /// Number of records that it lost.
    pub lost: u64,
    /// Records delivered to it that it has not read.
    pub waiting: u64,
    /// Time since its last sign of life, ns.
    pub silent_ns: u64,
}

/// Messages from a node to its master. In all versions the first two are these, and their first field is the version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ToMaster {
    /// Asks instead of joining: the only message then.
    Ask {
        /// [`VERSION`] of the asking process.
        version: u32,
        request: Request,
    },
    /// Identifies the node. Must be the first message.
    Hello {
        /// Its [`VERSION`] of these messages.
        version: u32,
        /// Its name, which keeps its number across restarts.
        name: String,
        role: String,
        /// The stream that it writes.
        writes: Option<Writes>,
        wait: Wait,
    },
    /// Strategies whose orders it sends; several messages add up.
    Claims {
        strategies: Strategies,
    },
    /// Streams that it reads; several messages for the same streams add up.
    Reads {
        /// A stream's name, or `orders.*`.
        streams: String,
        /// Records of these streams that the node wants.
        keys: Keys,
        /// Policy for records that the node is too slow for.
        overrun: Overrun,
    },
    /// The end of its introduction.
    Ready,
    /// It has mapped the memory of [`ToNode::Welcome`]. Before that no other process gets its segment.
    Mapped,
    /// The link of [`ToNode::Out`] is connected: records go to it from now on.
    Linked {
        subscriber: u32,
        /// Number of the link, from [`ToNode::Out`].
        generation: u64,
        /// The first position of the stream's segment that goes to it.
        position: u64,
        /// The sequence of the record there.
        sequence: u64,
    },
    /// A publisher evicted it for being too far behind, and it asks to be reconnected.
    Again {
        writer: u32,
        /// Sequence of the last record that it got, if any.
        after: Option<u64>,
        /// Position of the first record that it did not get.
        first: u64,
    },
    /// It sends no more orders of this strategy, which another node will claim.
    Release {
        strategy: u32,
    },
    /// A message for the master's user.
    Say {
        text: String,
    },
    Leave,
}

/// Messages from a master to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToNode {
    /// One node of the run, for [`Request::List`].
    Listed(NodeRow),
    /// The request is done; for a list, all nodes were sent.
    Done,
    /// The node is accepted. With inbox, counters and master's page; if it writes, also its segment and
    /// interest table.
    Welcome {
        /// The master's [`VERSION`] of these messages.
        version: u32,
        number: u32,
        /// Number of processes under its name, including this one.
        epoch: u64,
        without_master: WithoutMaster,
        /// Abandoned markers in its stream before its segment.
        markers: u64,
    },
    /// Strategies of the node, sent before it has joined; several messages add up.
    Strategies {
        /// Number of each, and its turn: how many processes had it before.
        turns: Vec<(u32, u32)>,
    },
    /// A named area, with its memory.
    Area {
        name: String,
        /// The node may write it.
        is_writable: bool,
    },
    /// A stream to read, after earlier ones in the same place. With segment and ring.
    In {
        /// Its bit in the inbox.
        place: u32,
        stream: String,
        /// Number of the node that writes it.
        writer: u32,
        /// Kind of the ring: with [`Overrun::Conflate`] a table of latest positions.
        overrun: Overrun,
    },
    /// Records of a stream were published while no process of this name was running, and were not kept.
    Missed {
        /// Its bit in the inbox.
        place: u32,
        count: u64,
    },
    /// A subscriber to serve. With the ring and its inbox.
    Out {
        subscriber: u32,
        /// Bit of this stream in its inbox.
        place: u32,
        /// Entries of the ring, or keys of the table.
        entries: u64,
        /// Number to return in [`ToMaster::Linked`].
        generation: u64,
        overrun: Overrun,
    },
    /// A subscriber has ended.
    Gone {
        subscriber: u32,
    },
    /// The node has everything that it needs.
    Joined,
    /// All nodes have joined: publishing may start.
    Begin,
    Stop,
    /// A command for the role.
    Command {
        text: String,
    },
    Refused {
        /// The reason, with a hint.
        reason: String,
    },
}
