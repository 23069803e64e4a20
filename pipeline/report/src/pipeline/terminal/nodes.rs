//! The processes of a running pipeline.

use super::add_headline;
use lowlat_pipeline::NodeRow;
use lowlat_text::{
    columns::{self, Column, NONE},
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
    let cells = |of: &dyn Fn(&NodeRow) -> String| nodes.iter().map(of).collect::<Vec<_>>();
    // Its age and silence mean nothing for a process that is gone.
    let since = |node: &NodeRow, ns: u64| if node.is_there { duration(ns) } else { NONE.to_owned() };
    out.push_str(&columns::table(
        vec![
            Column::words("node", 0, cells(&|node| clean(&node.name))),
            Column::words("role", 2, cells(&|node| clean(&node.role))),
            Column::figures("pid", 1, cells(&|node| node.pid.to_string())),
            Column::figures("process", 4, cells(&|node| count(node.epoch))),
            Column::words("state", 0, cells(&|node| clean(&node.standing))),
            Column::figures("joined", 3, cells(&|node| since(node, node.joined_ns))),
            Column::figures("last sign", 0, cells(&|node| since(node, node.silent_ns))),
            Column::figures(
                "published",
                0,
                cells(&|node| node.published.map_or_else(|| NONE.to_owned(), count)),
            ),
            Column::figures("read", 0, cells(&|node| count(node.read))),
            Column::figures("lost", 0, cells(&|node| count(node.lost))),
            Column::figures("waiting", 0, cells(&|node| count(node.waiting))),
        ],
        width,
    ));
    out
}
