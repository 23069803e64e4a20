//! The processes of a running pipeline.

use super::add_headline;
use lowlat_node::control::NodeRow;
use lowlat_text::{
    columns::Table,
    text::usable,
    units::{clean, count, duration, plural},
};

/// Formats one row per process.
pub fn nodes_text(nodes: &[NodeRow], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let there = nodes.iter().filter(|node| node.is_there).count();
    let gone = nodes.len() - there;
    let gone = if gone > 0 { format!(", {gone} gone") } else { String::new() };
    add_headline(&mut out, &format!("{}{gone}", plural(there, "node")), width);
    // Its age and silence mean nothing for a process that is gone.
    let since = |node: &NodeRow, ns: u64| node.is_there.then(|| duration(ns));
    let table = Table::of(nodes)
        .words("node", 0, |node| clean(&node.name))
        .words("role", 2, |node| clean(&node.role))
        .figures("pid", 1, |node| (node.pid > 0).then(|| node.pid.to_string()))
        .figures("process", 4, |node| count(node.epoch))
        .words("state", 0, |node| clean(&node.standing))
        .figures("joined", 3, |node| since(node, node.joined_ns))
        .figures("last sign", 0, |node| since(node, node.silent_ns))
        .figures("published", 0, |node| node.published.map(count))
        .figures("read", 0, |node| count(node.read))
        .figures("lost", 0, |node| count(node.lost))
        .figures("waiting", 0, |node| count(node.waiting));
    out.push_str(&table.text(width));
    out
}
