//! NUMA nodes.

use super::{Node, RawTopology};
use crate::{CpuSet, Reading};

/// The nodes by number. A kernel without NUMA has none: its CPUs and memory form one node.
pub(super) fn nodes(raw: &RawTopology, online: &CpuSet, oddities: &mut Vec<String>) -> Vec<Node> {
    if raw.nodes.is_empty() {
        return one_node(raw, online, oddities);
    }
    let mut left = online.clone();
    let mut claimed_twice = CpuSet::new();
    let mut nodes = Vec::new();
    for (&id, facts) in &raw.nodes {
        let named = facts.cpus.known().map(|cpus| cpus.intersection(online)).unwrap_or_default();
        claimed_twice = claimed_twice.union(&named.difference(&left));
        nodes.push(Node {
            id,
            cpus: named.intersection(&left),
            memory_bytes: facts.memory_bytes.clone(),
            distances: distances(raw, id, &facts.distances),
            memory_tier: memory_tier(raw, id),
            side_cache_bytes: facts.side_cache_bytes.clone(),
        });
        left = left.difference(&named);
    }
    if !claimed_twice.is_empty() {
        oddities.push(format!("{claimed_twice:#}: listed by several NUMA nodes; the lowest node is used."));
    }
    if !left.is_empty() {
        oddities.push(format!("{left:#} belong to no NUMA node in the kernel's list."));
    }
    nodes
}

fn one_node(raw: &RawTopology, online: &CpuSet, oddities: &mut Vec<String>) -> Vec<Node> {
    if online.is_empty() {
        return Vec::new();
    }
    oddities.push("The kernel exposes no NUMA nodes; all CPUs and all memory count as node 0.".into());
    let (memory_bytes, memory_tier) = (raw.memory_bytes.clone(), memory_tier(raw, 0));
    let distances = Reading::Known(vec![10]);
    vec![Node { id: 0, cpus: online.clone(), memory_bytes, distances, memory_tier, ..Node::default() }]
}

/// The kernel prints one distance per online node, in their order. Some trees lack the directory of a node.
/// If the row is longer, the distances are indexed by node number, provided that this puts the local
/// distance, 10, in its place.
fn distances(raw: &RawTopology, id: u32, row: &Reading<Vec<u32>>) -> Reading<Vec<u32>> {
    row.as_ref().and_then(|row| {
        if row.len() == raw.nodes.len() {
            return Reading::Known(row.clone());
        }
        let at = |node: u32| usize::try_from(node).ok().and_then(|node| row.get(node)).copied();
        let by_number: Option<Vec<u32>> = raw.nodes.keys().map(|node| at(*node)).collect();
        match by_number {
            Some(distances) if row.len() > raw.nodes.len() && at(id) == Some(10) => Reading::Known(distances),
            _ => {
                let text: Vec<String> = row.iter().map(ToString::to_string).collect();
                let expected = format!("{} distances, one per node", raw.nodes.len());
                Reading::unparsable(
                    format!("/sys/devices/system/node/node{id}/distance"),
                    &text.join(" "),
                    expected,
                )
            }
        }
    })
}

fn memory_tier(raw: &RawTopology, id: u32) -> Reading<u32> {
    let holds = |nodes: &Reading<CpuSet>| nodes.known().is_some_and(|nodes| nodes.contains(id));
    Reading::from_option(raw.memory_tiers.iter().find(|(_, nodes)| holds(nodes)).map(|(tier, _)| *tier))
}
