//! LLTune's configuration, version 1.

use super::{
    Wishes, number_of,
    yaml::{cpus, entries, members, scalar},
};
use lowlat_host::{CpuSet, HostSnapshot};
use lowlat_settings::change::Target;
use serde_json::Value;

/// Value that `lltune gen-config` writes where a person must decide.
const PLACEHOLDER: &str = "TODO";

/// Members of `memory`, as sysctls or files.
const MEMORY: [(&str, &str); 8] = [
    ("thp_runtime", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("ksm", "/sys/kernel/mm/ksm/run"),
    ("numa_balancing", "kernel.numa_balancing"),
    ("dirty_ratio", "vm.dirty_ratio"),
    ("dirty_background_ratio", "vm.dirty_background_ratio"),
    ("stat_interval", "vm.stat_interval"),
    ("swappiness", "vm.swappiness"),
    ("max_map_count", "vm.max_map_count"),
];

/// Prefixes of `network.sysctl`, whose members lack them.
const NETWORK: [(&str, &str); 3] = [("tcp_", "net.ipv4."), ("file_max", ""), ("", "net.core.")];

/// Parts that describe the host or the file and request nothing.
const NOT_WISHES: [&str; 3] = ["version", "metadata", "hardware"];

pub fn read(value: &Value, host: &HostSnapshot) -> Wishes {
    let mut wishes = Wishes::default();
    for (part, members) in entries(value) {
        match part {
            "kernel" => read_kernel(members, &mut wishes),
            "cpu" => read_cpu(members, host, &mut wishes),
            "memory" => read_memory(members, &mut wishes),
            "network" => read_network(members, &mut wishes),
            "irq" => read_interrupts(members, host, &mut wishes),
            part if NOT_WISHES.contains(&part) => {}
            part => wishes.leave(part, "lowlat has no counterpart"),
        }
    }
    wishes
}

/// The text of a scalar; none if it is still the placeholder.
fn decided(place: &str, value: &Value, wishes: &mut Wishes) -> Option<String> {
    match scalar(value) {
        Some(text) if text.contains(PLACEHOLDER) => {
            wishes.leave(place, "nothing is decided: the value is a placeholder");
            None
        }
        None if !value.is_null() => {
            wishes.leave(place, "lowlat has no counterpart");
            None
        }
        text => text,
    }
}

fn read_kernel(kernel: &Value, wishes: &mut Wishes) {
    for (name, value) in kernel.get("cmdline").map(entries).into_iter().flatten() {
        let place = format!("kernel.cmdline.{name}");
        let Some(value) = decided(&place, value, wishes) else { continue };
        match value.as_str() {
            "false" => wishes.boot(place, name, None),
            "true" => wishes.boot(place, name, Some("")),
            value => wishes.boot(place, name, Some(value)),
        }
    }
}

fn read_cpu(cpu: &Value, host: &HostSnapshot, wishes: &mut Wishes) {
    for (name, value) in entries(cpu) {
        let place = format!("cpu.{name}");
        match name {
            "governor" => {
                if let Some(governor) = value.get("target").and_then(scalar) {
                    wishes.governor("cpu.governor.target", &governor, &host.topology.online);
                }
            }
            // The command line repeats it in the kernel's syntax.
            "isolate_cores" => {}
            _ => wishes.leave(place, "lowlat has no counterpart"),
        }
    }
}

fn read_memory(memory: &Value, wishes: &mut Wishes) {
    for (name, value) in entries(memory) {
        let place = format!("memory.{name}");
        let Some((_, target)) = MEMORY.iter().find(|(member, _)| *member == name) else {
            match name {
                "hugepages" => read_huge_pages(value, wishes),
                _ => wishes.leave(place, "lowlat has no counterpart"),
            }
            continue;
        };
        match decided(&place, value, wishes) {
            // The kernel's words for transparent huge pages are no numbers.
            Some(value) if name == "thp_runtime" => wishes.file(place, target, value),
            Some(value) if target.starts_with('/') => wishes.file(place, target, number_of(&value)),
            Some(value) => wishes.sysctl(place, target, number_of(&value)),
            None => {}
        }
    }
}

fn read_huge_pages(pool: &Value, wishes: &mut Wishes) {
    let place = "memory.hugepages.total";
    let Some(total) = pool.get("total").and_then(|total| decided(place, total, wishes)) else { return };
    match pool.get("size_kb").and_then(scalar).and_then(|size| size.parse::<u64>().ok()) {
        Some(size_kib) => {
            wishes.ask(place, Target::HugePages { node: None, size_bytes: size_kib << 10 }, total);
        }
        None => wishes.leave(place, "has no size_kb"),
    }
}

fn read_network(network: &Value, wishes: &mut Wishes) {
    for (name, value) in network.get("sysctl").map(entries).into_iter().flatten() {
        let place = format!("network.sysctl.{name}");
        let Some(value) = decided(&place, value, wishes) else { continue };
        let prefix =
            NETWORK.iter().find(|(start, _)| name.starts_with(start)).map_or("", |(_, prefix)| prefix);
        let key = if name == "file_max" { "fs.file-max".to_owned() } else { format!("{prefix}{name}") };
        wishes.sysctl(place, &key, number_of(&value));
    }
    for (name, _) in entries(network).filter(|(name, _)| *name != "sysctl") {
        wishes.leave(
            format!("network.{name}"),
            "applies to interfaces; `lowlat net prepare IF` plans what lowlat wants for one",
        );
    }
}

fn read_interrupts(irq: &Value, host: &HostSnapshot, wishes: &mut Wishes) {
    for (at, rule) in irq.get("manual_affinity").map(members).unwrap_or_default() {
        let place = format!("irq.manual_affinity{at}");
        match (rule.get("match").and_then(scalar), rule.get("cpus").and_then(cpus)) {
            (Some(pattern), Some(list)) => {
                wishes.interrupts(&place, &list, host, |irq| {
                    irq.actions.iter().any(|name| name.contains(&pattern))
                });
            }
            _ => wishes.leave(place, "has no match or no cpus"),
        }
    }
    if let Some(avoided) =
        irq.get("avoid_cores_for_irqs").and_then(|value| decided("irq.avoid_cores_for_irqs", value, wishes))
    {
        match CpuSet::parse_list(&avoided) {
            Ok(avoided) => {
                let kept: CpuSet =
                    host.topology.online.iter().filter(|cpu| !avoided.contains(*cpu)).collect();
                wishes.ask("irq.avoid_cores_for_irqs", Target::DefaultIrqAffinity, kept.to_string());
            }
            Err(error) => wishes.refuse("irq.avoid_cores_for_irqs", error.to_string()),
        }
    }
}
