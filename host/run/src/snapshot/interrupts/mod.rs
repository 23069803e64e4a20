//! Reads interrupts: counts from /proc/interrupts and /proc/softirqs, affinities from /proc/irq, and from
//! debugfs whether the kernel manages the affinity.

use crate::{
    Root,
    counter_table::{self, Row, TOTALS, Table},
};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Counter, InterruptFacts, Irq},
};
use std::collections::BTreeMap;

/// Reads every interrupt of the host.
pub fn read(root: &Root) -> InterruptFacts {
    let (mut irqs, vectors) = counts(root);
    for name in root.or_unread("/proc/irq", root.list("/proc/irq")) {
        if let Ok(number) = name.parse() {
            irqs.entry(number).or_insert_with(|| Irq { number, ..Irq::default() });
        }
    }
    let irqs = irqs.into_values().map(|irq| with_affinity(root, irq)).collect();
    InterruptFacts {
        irqs,
        default_affinity: root.read_cpu_mask("/proc/irq/default_smp_affinity"),
        vectors,
        softirqs: rows(root, "/proc/softirqs").into_iter().map(counter).collect(),
    }
}

fn rows(root: &Root, path: &str) -> Vec<Row> {
    root.or_unread(path, Table::read(root, path, None)).rows
}

fn counts(root: &Root) -> (BTreeMap<u32, Irq>, Vec<Counter>) {
    let (mut irqs, mut vectors) = (BTreeMap::new(), Vec::new());
    for row in rows(root, "/proc/interrupts") {
        if let Ok(number) = row.name.parse() {
            let (chip, actions) = counter_table::chip_and_actions(&row.text);
            irqs.insert(
                number,
                Irq { number, chip, actions, count_by_cpu: row.count_by_cpu, ..Irq::default() },
            );
        } else if !TOTALS.contains(&row.name.as_str()) {
            vectors.push(counter(row));
        }
    }
    (irqs, vectors)
}

fn counter(row: Row) -> Counter {
    Counter { name: row.name, description: row.text, count_by_cpu: row.count_by_cpu }
}

fn with_affinity(root: &Root, irq: Irq) -> Irq {
    let directory = format!("/proc/irq/{}", irq.number);
    Irq {
        affinity: cpus(root, &directory, "smp_affinity"),
        effective_affinity: cpus(root, &directory, "effective_affinity"),
        is_managed: is_managed(root, irq.number),
        node: root.read_as(&format!("{directory}/node"), "the number of a NUMA node, or -1"),
        ..irq
    }
}

/// The list format, or the mask format of kernels and captures without it.
fn cpus(root: &Root, directory: &str, name: &str) -> Reading<CpuSet> {
    root.read_cpu_list(&format!("{directory}/{name}_list"))
        .or(|| root.read_cpu_mask(&format!("{directory}/{name}")))
}

/// debugfs prints the state word of an interrupt as one flag per line after `dstate:` (kernel/irq/debugfs.c).
/// Kernels without CONFIG_GENERIC_IRQ_DEBUGFS do not expose it.
fn is_managed(root: &Root, number: u32) -> Reading<bool> {
    let path = format!("/sys/kernel/debug/irq/irqs/{number}");
    root.read(&path).parse(&path, "the state of an interrupt with its dstate flags", |text| {
        let (_, flags) = text.split_once("dstate:")?;
        Some(flags.split_whitespace().any(|flag| flag == "IRQD_AFFINITY_MANAGED"))
    })
}

#[cfg(test)]
mod tests;
