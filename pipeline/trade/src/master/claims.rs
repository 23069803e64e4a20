//! Strategy numbers: each belongs to one node as long as the master runs.
//!
//! A number is not reassigned when its node ends, because answers to its orders may still arrive. Another node
//! can get it only if its owner releases it.

use super::{
    Area, Master,
    memory::{Maker, WrittenBy},
};
use lowlat_ipc::region::{Access, RegionError};
use lowlat_node::{
    Memory, STRATEGIES_MAX, Strategies, TD_STREAM,
    strategy::{OWNERS_AREA, OWNERS_BYTES, Owners, TURNS_MAX},
};
use std::collections::{BTreeMap, BTreeSet};

/// Owner of a strategy number. Nodes are given by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Claim {
    owner: Option<u32>,
    /// The node that released it.
    before: Option<u32>,
    /// Number of processes that got it.
    turns: u32,
}

/// All numbers ever claimed, and their owners.
#[derive(Debug)]
pub(super) struct Claims {
    claims: BTreeMap<u32, Claim>,
    /// The same owners, in the memory that td reads.
    area: Memory,
}

/// Reason why a node does not get a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// It is out of range.
    TooLarge(u32),
    /// It belongs to this node.
    Taken(u32, u32),
    /// It is reserved for programs that the master starts.
    Reserved(u32),
    /// Too many processes had it.
    NoTurn(u32),
    NoneFree,
}

impl Claims {
    pub(super) fn new(maker: &mut Maker) -> Result<Self, RegionError> {
        Ok(Self { claims: BTreeMap::new(), area: maker.make(WrittenBy::Own, OWNERS_AREA, OWNERS_BYTES)? })
    }

    /// The area that td gets.
    pub(super) fn area(&self) -> (Area, Memory) {
        let (name, streams) = (OWNERS_AREA.to_owned(), TD_STREAM.to_owned());
        (
            Area { name, bytes: OWNERS_BYTES, streams, access: Access::Read, readers: String::new() },
            self.area.clone(),
        )
    }

    /// The numbers that a node gets for its request, in ascending order. `known` is its number if it has joined
    /// before; `first` the first number that it may have.
    fn grant(&self, known: Option<u32>, asked: &Strategies, first: u32) -> Result<Vec<u32>, Denied> {
        let own = |claim: &Claim| known.is_some() && claim.owner == known;
        match asked {
            Strategies::None => Ok(Vec::new()),
            Strategies::Free => {
                let had = self
                    .claims
                    .iter()
                    .find(|(_, claim)| own(claim) && claim.turns < TURNS_MAX)
                    .map(|(number, _)| *number);
                let mut free = (first..STRATEGIES_MAX).filter(|number| !self.claims.contains_key(number));
                let given_back = || {
                    let is_free = |claim: &Claim| (claim.owner, claim.before) == (None, None);
                    let mut all = self.claims.range(first..);
                    all.find(|(_, claim)| is_free(claim) && claim.turns < TURNS_MAX)
                        .map(|(number, _)| *number)
                };
                let number = had.or_else(|| free.next()).or_else(given_back);
                Ok(vec![number.ok_or(Denied::NoneFree)?])
            }
            Strategies::Only(numbers) => {
                let mut granted = BTreeSet::new();
                for number in numbers.iter().copied() {
                    match self.claims.get(&number) {
                        _ if number >= STRATEGIES_MAX => return Err(Denied::TooLarge(number)),
                        _ if number < first => return Err(Denied::Reserved(number)),
                        Some(claim) if claim.turns >= TURNS_MAX => return Err(Denied::NoTurn(number)),
                        Some(claim) if own(claim) => _ = granted.insert(number),
                        // The node released it, then restarted with its original arguments.
                        Some(claim) if known.is_some() && claim.before == known => {}
                        Some(Claim { owner: Some(owner), .. }) => return Err(Denied::Taken(number, *owner)),
                        Some(Claim { owner: None, .. }) | None => _ = granted.insert(number),
                    }
                }
                Ok(granted.into_iter().collect())
            }
        }
    }

    fn set(&mut self, number: u32, claim: Claim) {
        self.claims.insert(number, claim);
        if let Some(owners) = Owners::new(&*self.area) {
            owners.set(number, claim.owner, claim.before);
        }
    }

    /// Assigns numbers to a node's new process. Returns each with its turn: the number of processes that had it before.
    pub(super) fn give(&mut self, numbers: &[u32], node: u32) -> Vec<(u32, u32)> {
        let mut give = |number: u32| {
            let Claim { before, turns, .. } = self.claims.get(&number).copied().unwrap_or_default();
            self.set(number, Claim { owner: Some(node), before, turns: turns + 1 });
            (number, turns)
        };
        numbers.iter().map(|number| give(*number)).collect()
    }

    fn release(&mut self, number: u32, node: u32) {
        if let Some(claim) = self.claims.get(&number).copied().filter(|claim| claim.owner == Some(node)) {
            self.set(number, Claim { owner: None, before: Some(node), ..claim });
        }
    }

    /// Frees the numbers of a node that has left, whose number gets another name. Order numbers of the next owner
    /// continue.
    pub(super) fn give_back(&mut self, node: u32) {
        let all: Vec<_> = self.claims.iter().map(|(number, claim)| (*number, *claim)).collect();
        for (number, claim) in all {
            let other = |of: Option<u32>| of.filter(|other| *other != node);
            let left = Claim { owner: other(claim.owner), before: other(claim.before), ..claim };
            if left != claim {
                self.set(number, left);
            }
        }
    }

    /// Frees the numbers of a node that never joined, and so sent nothing.
    pub(super) fn forget(&mut self, node: u32) {
        let of_it = self.claims.iter().filter(|(_, claim)| claim.owner == Some(node));
        for (number, claim) in of_it.map(|(number, claim)| (*number, *claim)).collect::<Vec<_>>() {
            self.set(number, Claim { owner: None, ..claim });
            if claim.before.is_none() {
                self.claims.remove(&number);
            }
        }
    }
}

impl Master {
    /// The strategies that a node gets. The error is a sentence.
    pub(super) fn grant(
        &self,
        name: &str,
        known: Option<u32>,
        asked: &Strategies,
    ) -> Result<Vec<u32>, String> {
        let reserved = self.options.strategies_reserved;
        let first = if self.has_program(name) { 0 } else { reserved };
        self.claims.grant(known, asked, first).map_err(|denied| match denied {
            Denied::TooLarge(number) => {
                format!("strategy {number}: expected a number below {STRATEGIES_MAX}\n{LEAVE_OUT}")
            }
            Denied::Taken(number, owner) => {
                let owner = self.member(owner).map_or("another", |member| member.name.as_str());
                format!("strategy {number} belongs to node {owner}\n{LEAVE_OUT}")
            }
            Denied::Reserved(number) => {
                format!("strategy {number} belongs to the run, which has the numbers below {reserved}\n{LEAVE_OUT}")
            }
            Denied::NoTurn(number) => {
                format!("strategy {number} has been used by {TURNS_MAX} processes\nhint: restart the master")
            }
            Denied::NoneFree => format!(
                "all strategy numbers from {reserved} to {} are taken\nhint: restart nodes under their previous names",
                STRATEGIES_MAX - 1
            ),
        })
    }

    /// A node sends no more orders of a strategy.
    pub(super) fn release(&mut self, node: u32, strategy: u32) {
        self.claims.release(strategy, node);
        if let Some(member) = self.member_mut(node) {
            member.strategies.retain(|number| *number != strategy);
        }
    }
}

const LEAVE_OUT: &str = "hint: leave the number out, and the node gets a free one";

/// Adds a message's claims to the node's previous ones.
pub(super) fn add(claimed: &mut Strategies, more: Strategies) -> Result<(), String> {
    match (&mut *claimed, more) {
        (_, Strategies::None) => {}
        (Strategies::Only(numbers), Strategies::Only(more)) => {
            if numbers.len() + more.len() > MOST {
                return Err(format!("more than {STRATEGIES_MAX} strategies, the maximum of a pipeline"));
            }
            numbers.extend(more);
        }
        (_, more) => *claimed = more,
    }
    Ok(())
}

const MOST: usize = STRATEGIES_MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims::new(&mut Maker::new(false, None)).unwrap()
    }

    fn only(numbers: &[u32]) -> Strategies {
        Strategies::Only(numbers.to_vec())
    }

    #[test]
    fn a_number_stays_with_its_node() {
        let mut claims = claims();
        claims.give(&claims.grant(None, &only(&[7]), 0).unwrap(), 0);
        assert_eq!(claims.grant(None, &only(&[7]), 0), Err(Denied::Taken(7, 0)));
        assert_eq!(claims.grant(Some(1), &only(&[6, 7]), 0), Err(Denied::Taken(7, 0)));
        assert_eq!(claims.grant(Some(0), &only(&[7]), 0), Ok(vec![7]), "it restarted");
        assert_eq!(claims.grant(None, &only(&[STRATEGIES_MAX]), 0), Err(Denied::TooLarge(STRATEGIES_MAX)));
        assert_eq!(claims.grant(None, &only(&[79]), 80), Err(Denied::Reserved(79)));
        assert_eq!(claims.grant(None, &Strategies::None, 80), Ok(vec![]));
    }

    #[test]
    fn free_numbers_are_above_the_reserved_ones_and_stay() {
        let mut claims = claims();
        for node in 0..3 {
            let granted = claims.grant(None, &Strategies::Free, 80).unwrap();
            assert_eq!(granted, [80 + node]);
            claims.give(&granted, node);
        }
        assert_eq!(claims.grant(Some(1), &Strategies::Free, 80), Ok(vec![81]), "it restarted");
        claims.give(&claims.grant(None, &only(&[83]), 80).unwrap(), 3);
        assert_eq!(claims.grant(Some(4), &Strategies::Free, 80), Ok(vec![84]));
        claims.give(&(84..STRATEGIES_MAX).collect::<Vec<_>>(), 4);
        assert_eq!(claims.grant(None, &Strategies::Free, 80), Err(Denied::NoneFree));
        assert_eq!(claims.grant(None, &Strategies::Free, STRATEGIES_MAX), Err(Denied::NoneFree));
    }

    #[test]
    fn a_released_number_goes_to_the_next_node_and_not_back() {
        let mut claims = claims();
        claims.give(&[0, 1, 2], 0);
        claims.release(1, 5);
        assert_eq!(claims.grant(None, &only(&[1]), 0), Err(Denied::Taken(1, 0)), "not its own");
        claims.release(1, 0);
        assert_eq!(claims.grant(Some(0), &only(&[0, 1, 2]), 0), Ok(vec![0, 2]));
        claims.give(&claims.grant(None, &only(&[1]), 0).unwrap(), 9);
        assert_eq!(claims.grant(Some(0), &only(&[0, 1, 2]), 0), Ok(vec![0, 2]));
        let owners = Owners::new(&*claims.area).unwrap();
        assert!(owners.has(0, 1) && owners.has(9, 1) && !owners.has(9, 0), "pending orders are answered");
    }

    #[test]
    fn each_process_gets_another_turn_in_any_node() {
        let mut claims = claims();
        assert_eq!(claims.give(&[4, 5], 0), [(4, 0), (5, 0)]);
        assert_eq!(claims.give(&[4, 5], 0), [(4, 1), (5, 1)], "it restarted");
        claims.release(4, 0);
        assert_eq!(claims.give(&[4], 1), [(4, 2)], "it moved");
        claims.claims.get_mut(&5).unwrap().turns = TURNS_MAX;
        assert_eq!(claims.grant(Some(0), &only(&[5]), 0), Err(Denied::NoTurn(5)));
    }

    #[test]
    fn a_node_that_never_joined_keeps_nothing() {
        let mut claims = claims();
        claims.give(&[3], 0);
        claims.forget(0);
        assert_eq!(claims.grant(None, &only(&[3]), 0), Ok(vec![3]));
        assert!(!Owners::new(&*claims.area).unwrap().has(0, 3));
    }

    #[test]
    fn claims_add_up() {
        let mut claimed = Strategies::None;
        add(&mut claimed, only(&[1])).unwrap();
        add(&mut claimed, only(&[2])).unwrap();
        assert_eq!(claimed, only(&[1, 2]));
        assert!(add(&mut claimed, only(&vec![0; MOST - 1])).is_err());
        add(&mut claimed, Strategies::Free).unwrap();
        assert_eq!(claimed, Strategies::Free);
    }
}
