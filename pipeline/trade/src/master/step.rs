//! Steps of a run whose time is stepped: one node works at a time, and the time moves on when all wait. So what happens
//! follows from what the nodes do, and not from how fast they are.
//!
//! ```text
//! a node has its turn: wait for its end
//! else a node has something to read, or the time is later than one that it has passed: its turn, by name
//! else: the time becomes the first that a node waits for, and it is that node's turn
//! ```

use super::{Master, member::Member};
use lowlat_ipc::inbox::Inbox;
use lowlat_node::{Awaited, Counters, MD_STREAM, NodeTurn, TD_STREAM, clock::RunClock};
use std::time::{Duration, Instant};

/// How long the master steps before it looks for messages of nodes.
const SLICE: Duration = Duration::from_millis(2);

/// What the master does next.
enum MasterStep {
    /// Waits for the end of this node's turn.
    Await(NodeTurn),
    /// Gives this node a turn, at this time if it is later.
    Give(NodeTurn, Option<u64>),
    /// Every node waits for something that no other node brings.
    Rest,
}

impl Member {
    /// Its turns in a stepped run, while it takes part in them.
    pub(super) fn turn(&self) -> Option<NodeTurn> {
        let takes_turns = NodeTurn::is_for(self.stream.is_some(), &self.reads);
        self.counters.as_ref().filter(|_| takes_turns && self.is_running()).map(Counters::turn)
    }

    fn has_records(&self) -> bool {
        let inbox = self.inbox.as_ref().and_then(|memory| Inbox::new(&**memory));
        inbox.is_some_and(|inbox| inbox.is_ready())
    }
}

impl Master {
    pub(super) fn is_stepped(&self) -> bool {
        self.clock.as_ref().is_some_and(RunClock::is_stepped)
    }

    /// Steps for a while. Returns how long it may wait for messages of nodes then.
    pub(super) fn step(&mut self, longest: Duration) -> Duration {
        let Some(clock) = self.clock.clone().filter(RunClock::is_stepped) else { return longest };
        let nodes = self.members.iter().filter_map(|member| Some((member, member.turn()?)));
        let mut nodes: Vec<(&Member, NodeTurn)> = nodes.collect();
        nodes.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        let until = Instant::now() + SLICE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Duration::ZERO;
            }
            match self.next_step(&nodes, clock.now_ns()) {
                MasterStep::Await(turn) => turn.await_end(left),
                MasterStep::Give(turn, time_ns) => {
                    if let Some(time_ns) = time_ns {
                        clock.step(time_ns);
                    }
                    turn.give();
                }
                MasterStep::Rest => return longest,
            }
        }
    }

    fn next_step(&self, nodes: &[(&Member, NodeTurn)], now_ns: u64) -> MasterStep {
        let (mut ready, mut next, mut yielded) = (None, None, None);
        for (member, turn) in nodes {
            let Some(awaited) = turn.awaited() else { return MasterStep::Await(turn.clone()) };
            if ready.is_some() || member.has_records() {
                ready.get_or_insert(turn);
                continue;
            }
            match awaited {
                Awaited::Later(than_ns) if now_ns > than_ns => _ = ready.get_or_insert(turn),
                Awaited::Later(_) => _ = yielded.get_or_insert(turn),
                Awaited::Time(at_ns)
                    if self.may_move(member) && next.is_none_or(|(first, _)| at_ns < first) =>
                {
                    next = Some((at_ns, turn));
                }
                Awaited::Time(_) | Awaited::Records => {}
            }
        }
        match (ready, next, yielded) {
            (Some(turn), ..) | (None, None, Some(turn)) => MasterStep::Give(turn.clone(), None),
            (None, Some((at_ns, turn)), _) => MasterStep::Give(turn.clone(), Some(at_ns)),
            (None, None, None) => MasterStep::Rest,
        }
    }

    /// True if the time may move on to one that this node waits for: while md is there, and then for orders that are on
    /// their way to the simulated exchange.
    fn may_move(&self, member: &Member) -> bool {
        let has_md = self.named(MD_STREAM).is_some_and(Member::is_there);
        self.has_begun && (has_md || member.name == TD_STREAM)
    }
}
