//! A host as text: its inventory, with its tree, then section by section; its differences to another; the choice of
//! its CPUs.

pub mod devices;
pub mod kernel;
pub mod tree;

use crate::fields::{Page, yes_no};
use crate::fields::{booted_by, title_and_cpus};
use crate::hardware;
use lowlat_host::{
    Allocation, HostSnapshot, Reading,
    diff::Difference,
    snapshot::{MemoryFacts, MemoryModule, OriginKind},
};
use lowlat_text::text::{BOLD, DIM, GREEN, RED, add_wrapped, paint, usable, wrap};
use lowlat_text::units::{clean, plural, size};

/// Columns before a step's text.
const STEP_INDENT: usize = 4;

/// Formats the whole host for a terminal of this width.
pub fn host_text(snapshot: &HostSnapshot, allocation: Option<&Allocation>, width: usize) -> String {
    let mut page = Page { out: String::new(), width: usable(width) };
    if let Some(warning) = snapshot.kernel.unsupported() {
        add_wrapped(&mut page.out, &clean(&warning), 0, page.width);
    }
    let (title, cpus) = title_and_cpus(snapshot);
    add_wrapped(&mut page.out, &clean(&title), 0, page.width);
    add_wrapped(&mut page.out, &clean(&cpus), 0, page.width);
    add_origin(&mut page, snapshot);
    tree::add(&mut page, snapshot, allocation);
    add_system(&mut page, snapshot);
    kernel::add_kernel(&mut page, snapshot);
    kernel::add_cpu(&mut page, snapshot);
    kernel::add_power(&mut page, snapshot);
    add_memory(&mut page, snapshot);
    devices::add_interrupts(&mut page, snapshot, allocation);
    kernel::add_threads(&mut page, snapshot, allocation);
    kernel::add_services(&mut page, snapshot);
    devices::add_nics(&mut page, snapshot);
    devices::add_disks(&mut page, snapshot);
    add_virtualization(&mut page, snapshot);
    page.out
}

fn add_origin(page: &mut Page, snapshot: &HostSnapshot) {
    let origin = &snapshot.origin;
    match origin.kind {
        OriginKind::Live if !origin.is_privileged => {
            page.note("Read without root. Facts marked denied need root.");
        }
        OriginKind::Live => {}
        OriginKind::Directory => page.note(&format!("Read from the tree {}", origin.label)),
        OriginKind::Capture => {
            let redacted = if origin.is_redacted { ", names and serial numbers taken out" } else { "" };
            page.note(&format!("Read from the capture {}{redacted}", origin.label));
        }
    }
}

fn add_system(page: &mut Page, snapshot: &HostSnapshot) {
    let firmware = &snapshot.firmware;
    page.heading("System");
    let joined =
        |parts: &[&str]| parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
    page.field("System", &joined(&[firmware.system_vendor.text(), firmware.system_product.text()]));
    page.fact("Board", &firmware.board);
    page.field("BIOS", &hardware::bios_text(firmware));
    page.fact("Controller", &firmware.controller_revision.as_ref().map(|text| format!("firmware {text}")));
    page.fact("SMBIOS", &firmware.smbios_version);
    page.fact("Booted by", &booted_by(snapshot));
    page.fact("Secure Boot", &yes_no(&firmware.secure_boot));
    page.fact("IOMMUs in use", &firmware.iommu_count);
}

fn add_memory(page: &mut Page, snapshot: &HostSnapshot) {
    let memory = &snapshot.memory;
    page.heading("Memory");
    page.fact("Total", &memory.total_bytes.as_ref().map(|bytes| size(*bytes)));
    page.fact("Available", &memory.available_bytes.as_ref().map(|bytes| size(*bytes)));
    for pool in &memory.huge_pages {
        let place = pool.node.map_or_else(String::new, |node| format!(" on node {node}"));
        if pool.total.known().is_none_or(|total| *total > 0) {
            let text = format!("{} of {}{place}, {} free", pool.total, size(pool.size_bytes), pool.free);
            page.field("Huge pages", &text);
        }
    }
    if memory.huge_pages.iter().all(|pool| pool.total.known() == Some(&0)) {
        let is_read = !memory.huge_pages.is_empty() || snapshot.listed("/sys/kernel/mm", ()).is_known();
        page.field("Huge pages", if is_read { "none reserved" } else { "unknown" });
    }
    page.fact(
        "Transparent",
        &memory.thp_enabled.as_ref().map(|word| format!("{word}, defrag {}", memory.thp_defrag)),
    );
    page.fact("Samepage merging", &memory.ksm_run.as_ref().map(|run| ksm_word(*run)));
    let swaps = memory.swaps.as_ref().map(|swaps| match swaps.as_slice() {
        [] => "none".to_owned(),
        swaps => swaps
            .iter()
            .map(|swap| format!("{} {} ({} used)", swap.path, size(swap.size_bytes), size(swap.used_bytes)))
            .collect::<Vec<_>>()
            .join(", "),
    });
    page.fact("Swap", &swaps);
    add_modules(page, memory);
}

fn ksm_word(run: u32) -> &'static str {
    match run {
        0 => "stopped",
        1 => "running",
        2 => "stopped, unmerging",
        _ => "in an unknown state",
    }
}

/// Adds memory modules, with those of the same make on one line.
fn add_modules(page: &mut Page, memory: &MemoryFacts) {
    let Reading::Known(modules) = &memory.modules else {
        return page.fact("Modules", &memory.modules.as_ref().map(Vec::len));
    };
    let slots = memory
        .module_slots
        .known()
        .map_or_else(String::new, |slots| format!(" in {}", plural(*slots as usize, "slot")));
    page.field("Modules", &format!("{}{slots}", modules.len()));
    page.fact("Most supported", &memory.capacity_bytes_max.as_ref().map(|bytes| size(*bytes)));
    let mut alike = |label: &str, text: fn(&MemoryModule) -> String| {
        let texts: std::collections::BTreeSet<String> =
            modules.iter().map(text).filter(|text| !text.is_empty()).collect();
        page.field(label, &texts.into_iter().collect::<Vec<_>>().join("; "));
    };
    alike("Width", hardware::width_text);
    alike("Voltage", hardware::voltage_text);
    let mut rows =
        vec![["count", "size", "type", "speed", "runs at", "ranks", "part"].map(str::to_owned).to_vec()];
    let mut makes: Vec<(usize, &MemoryModule)> = Vec::new();
    for module in modules {
        match makes.iter_mut().find(|(_, seen)| same_make(seen, module)) {
            Some((count, _)) => *count += 1,
            None => makes.push((1, module)),
        }
    }
    for (count, module) in &makes {
        let or_dash = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let part = format!("{} {}", module.manufacturer, module.part_number);
        rows.push(vec![
            count.to_string(),
            size(module.size_bytes),
            clean(&module.kind),
            or_dash(module.speed_mts),
            or_dash(module.configured_mts),
            or_dash(module.ranks),
            clean(part.trim()),
        ]);
    }
    if !makes.is_empty() {
        page.out.push_str(&lowlat_text::text::columns(&rows, &[0, 3, 4, 5], 4));
        page.note("  Speeds in megatransfers per second.");
    }
}

fn same_make(a: &MemoryModule, b: &MemoryModule) -> bool {
    let make = |m: &MemoryModule| (m.size_bytes, m.speed_mts, m.configured_mts, m.ranks);
    make(a) == make(b)
        && a.kind == b.kind
        && a.part_number == b.part_number
        && a.manufacturer == b.manufacturer
}

fn add_virtualization(page: &mut Page, snapshot: &HostSnapshot) {
    let virtualization = &snapshot.virtualization;
    page.heading("Virtualisation");
    match virtualization.is_virtual.known() {
        Some(false) => page.field("Virtual machine", "no"),
        _ => page.fact("Virtual machine", &yes_no(&virtualization.is_virtual)),
    }
    page.fact("Hypervisor", &virtualization.hypervisor);
    let stolen = virtualization.steal_ticks.values().filter(|ticks| **ticks > 0).count();
    let total = virtualization.steal_ticks.values().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    if total > 0 {
        let cpus = plural(stolen, "CPU");
        page.field(
            "Time stolen",
            &format!("{} clock ticks since boot from {cpus}", lowlat_text::units::count(total)),
        );
    }
}

/// Formats each difference in three lines: the path, the first host's value, the second host's value.
pub fn host_diff_text(differences: &[Difference], width: usize) -> String {
    let width = usable(width);
    if differences.is_empty() {
        return "The hosts have no lasting differences.\n".to_owned();
    }
    let mut out = String::new();
    for difference in differences {
        out.push_str(&paint(BOLD, &clean(&difference.path)));
        out.push('\n');
        for (sign, style, value) in [('-', RED, &difference.a), ('+', GREEN, &difference.b)] {
            let text = value.as_deref().map_or_else(|| paint(DIM, "(nothing)"), clean);
            for (at, line) in wrap(&text, width - 4).iter().enumerate() {
                let sign = if at == 0 { sign } else { ' ' };
                out.push_str(&format!("  {} {line}\n", paint(style, &sign.to_string())));
            }
        }
    }
    out.push_str(&format!("\n{}\n", plural(differences.len(), "difference")));
    out
}

/// Formats the numbered steps of the choice of CPUs, then its warnings.
pub fn choice_text(allocation: &Allocation, width: usize) -> String {
    let steps = allocation.steps.iter().enumerate().map(|(at, step)| (format!("{:>2}.", at + 1), step));
    let warnings = allocation.warnings.iter().map(|warning| ("  !".to_owned(), warning));
    let mut out = String::new();
    for (label, text) in steps.chain(warnings) {
        for (at, line) in wrap(&clean(text), usable(width).saturating_sub(STEP_INDENT)).iter().enumerate() {
            let label = if at == 0 { label.as_str() } else { "" };
            out.push_str(&format!("{label:STEP_INDENT$}{line}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_warnings_are_wrapped_below_their_label() {
        let allocation = Allocation {
            steps: vec!["Online: CPUs 0-7, 8 in all, and a sentence that is longer than a line.".into()],
            warnings: vec!["Isolated CPUs share a cache.".into()],
            ..Allocation::default()
        };
        assert_eq!(
            choice_text(&allocation, 40),
            " 1. Online: CPUs 0-7, 8 in all, and a\n    sentence that is longer than a line.\n  ! Isolated CPUs share a cache.\n"
        );
    }
}
