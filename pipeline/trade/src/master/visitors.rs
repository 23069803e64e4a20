//! Nodes that the master did not start, such as programs in Python or C and recorders.
//!
//! A master that ends asks them to stop before it closes their connections: that distinguishes the end of a run
//! from the death of its master.

use super::{Master, Standing, connection::ConnectionPhase};
use lowlat_node::{
    Refusal,
    clock::now_ns,
    control::{ToNode, WithoutMaster},
};
use std::time::Duration;

/// The visitors to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visitors {
    /// Those that write a stream.
    Writers,
    All,
}

impl Master {
    /// Asks visitors to stop, and waits until they have left, for `patience` at most. The others find the
    /// request in their socket later, even after this master has ended.
    pub fn stop_visitors(&mut self, which: Visitors, patience: Duration) -> Result<(), Refusal> {
        let until_ns = now_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        let mut asked = Vec::new();
        loop {
            let present = self.visitors(which);
            if present.is_empty() || now_ns() >= until_ns {
                return Ok(());
            }
            // Visitors that are still joining.
            for number in present {
                if !asked.contains(&number) {
                    asked.push(number);
                    self.tell(number, &ToNode::Stop, Vec::new());
                }
            }
            let happened = self.turn(Duration::from_millis(20))?;
            self.kept.extend(happened);
        }
    }

    /// Sends every connected process the reason why its connection closes. Nodes that stop without their master
    /// would take the close for its death.
    pub(super) fn say_goodbye(&mut self) {
        if self.options.without_master == WithoutMaster::Stop {
            self.stop();
        }
        let joining = self.numbers(|member| member.standing == Standing::Joining);
        for connection in self.connections.values_mut() {
            let is_joining = match connection.phase {
                ConnectionPhase::Greeting { .. } => true,
                ConnectionPhase::Member(number) => joining.contains(&number),
                ConnectionPhase::Refused { .. } => false,
            };
            if is_joining {
                let reason = "it is ending\nhint: join the next run".to_owned();
                // An ended process needs no reason.
                connection.socket.send(&ToNode::Refused { reason }, Vec::new()).ok();
            }
        }
    }

    /// Numbers of the present visitors.
    fn visitors(&self, which: Visitors) -> Vec<u32> {
        let started: Vec<u32> = self.processes().into_iter().map(|(_, _, pid)| pid).collect();
        self.numbers(|member| {
            let is_meant = which == Visitors::All || member.stream.is_some();
            member.is_running() && is_meant && !started.contains(&member.owner.pid)
        })
    }
}
