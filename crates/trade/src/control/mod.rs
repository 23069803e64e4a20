//! Messages between nodes and their master: JSON of at most 4 KiB per message over a SOCK_SEQPACKET unix
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

mod wire;

pub(crate) use wire::timespec;
pub use wire::{Incoming, Lent, Socket, parse};

use crate::node::{Keys, Overrun, Strategies, Wait, Writes};
use lowlat_pipeline::NodeRow;
use serde::{Deserialize, Serialize};

/// Version of the messages described here.
pub const VERSION: u32 = 7;
/// Strategies per [`ToNode::Strategies`].
pub const TURNS_MAX: usize = KEYS_MAX / 2;
/// The inbox bit that announces messages on the socket.
pub const CONTROL_STREAM: u32 = lowlat_ipc::inbox::STREAMS_MAX - 1;
/// Numbers per [`ToMaster::Reads`], [`ToMaster::Claims`] or [`ToNode::Strategies`], so that a message fits
/// whatever their size.
pub const KEYS_MAX: usize = 300;
/// Longest text of a command, in bytes, so that it fits a message whatever its characters.
pub const COMMAND_BYTES_MAX: usize = 600;

/// What a node does without its master.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutMaster {
    /// It stops.
    Stop,
    /// It continues: publishing and reading do not need a master.
    #[default]
    GoOn,
}

/// What the user of a run asks of its master from outside, instead of joining.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Request {
    /// The nodes.
    List,
    /// That it drops a node.
    Drop {
        /// The node's name.
        name: String,
    },
    /// That it ends the run.
    Stop,
}

/// Messages from a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToMaster {
    /// Asks instead of joining: the only message then.
    Ask {
        /// [`VERSION`] of the asking process.
        version: u32,
        /// What it asks.
        request: Request,
    },
    /// Identifies the node. Must be the first message.
    Hello {
        /// [`VERSION`] of the node.
        version: u32,
        /// Its process id; compared with the kernel's information about the socket.
        pid: u32,
        /// Its start time in clock ticks since boot.
        start_ticks: u64,
        /// Its name, which keeps its number across restarts.
        name: String,
        /// Its role.
        role: String,
        /// The stream that it writes.
        writes: Option<Writes>,
        /// How it waits.
        wait: Wait,
    },
    /// Strategies whose orders it sends; several messages add up.
    Claims {
        /// The strategies.
        strategies: Strategies,
    },
    /// Streams that it reads; several messages for the same streams add up.
    Reads {
        /// A stream's name, or `orders.*`.
        streams: String,
        /// Which of its records.
        keys: Keys,
        /// What happens to records that it is too slow for.
        overrun: Overrun,
    },
    /// The end of its introduction.
    Ready,
    /// It has mapped the memory of [`ToNode::Welcome`]. Before that no other process gets its segment.
    Mapped,
    /// The link of [`ToNode::Out`] is connected: records go to it from now on.
    Linked {
        /// Number of the subscriber.
        subscriber: u32,
        /// Number of the link.
        generation: u64,
        /// The first position of the stream's segment that goes to it.
        position: u64,
        /// The sequence of the record there.
        sequence: u64,
    },
    /// A publisher evicted it for being too far behind, and it asks to be reconnected.
    Again {
        /// The publisher.
        writer: u32,
        /// Sequence of the last record that it got, if any.
        after: Option<u64>,
        /// Position of the first record that it did not get.
        first: u64,
    },
    /// It sends no more orders of this strategy, which another node will claim.
    Release {
        /// The strategy's number.
        strategy: u32,
    },
    /// A message for the master's user.
    Say {
        /// The text.
        text: String,
    },
    /// It leaves.
    Leave,
}

/// Messages to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToNode {
    /// One node of the run, for [`Request::List`].
    Listed(NodeRow),
    /// What was asked is done; for a list, all nodes are sent.
    Done,
    /// The node is accepted. With inbox, counters and master's page; if it writes, also its segment and
    /// interest table.
    Welcome {
        /// [`VERSION`] of the master.
        version: u32,
        /// Number of the node.
        number: u32,
        /// Number of processes under its name, including this one.
        epoch: u64,
        /// What to do without the master.
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
        /// Its name.
        name: String,
        /// Whether the node may write it.
        is_writable: bool,
    },
    /// A stream to read, after earlier ones in the same place. With segment and ring.
    In {
        /// Its bit in the inbox.
        place: u32,
        /// Its name.
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
        /// Number of records.
        count: u64,
    },
    /// A subscriber to serve. With the ring and its inbox.
    Out {
        /// Its number.
        subscriber: u32,
        /// Bit of this stream in its inbox.
        place: u32,
        /// Entries of the ring, or keys of the table.
        entries: u64,
        /// Number to return in [`ToMaster::Linked`].
        generation: u64,
        /// Kind of the ring.
        overrun: Overrun,
    },
    /// A subscriber has ended.
    Gone {
        /// Its number.
        subscriber: u32,
    },
    /// The node has everything that it needs.
    Joined,
    /// All nodes have joined: publishing may start.
    Begin,
    /// The node should stop.
    Stop,
    /// A command for the role.
    Command {
        /// Its text.
        text: String,
    },
    /// The node is refused.
    Refused {
        /// The reason, with a hint.
        reason: String,
    },
}
