//! Host in two short lines.

use lowlat_host::{HostSnapshot, Reading};
use lowlat_text::units::plural;

/// Returns "HPE ProLiant DL385 Gen10 Plus" and "2 x AMD EPYC 7F32 8-Core Processor, 16 CPUs, 2 NUMA nodes".
pub fn title_and_cpus(host: &HostSnapshot) -> (String, String) {
    (title(host), cpus(host))
}

/// Returns the system's vendor and product, or a substitute.
fn title(host: &HostSnapshot) -> String {
    let (vendor, product) = (host.firmware.system_vendor.text(), host.firmware.system_product.text());
    // Some firmware repeats the vendor in the product.
    let named = if product.starts_with(vendor) { product.to_owned() } else { format!("{vendor} {product}") };
    if !named.trim().is_empty() {
        return named.trim().to_owned();
    }
    match host.virtualization.hypervisor.text() {
        "" if host.virtualization.is_virtual.known() == Some(&true) => "Virtual machine".to_owned(),
        "" => "Host without a firmware name".to_owned(),
        hypervisor => format!("{hypervisor} virtual machine"),
    }
}

/// Returns the boot firmware: "UEFI", "legacy BIOS", or on aarch64, which never had one, "a device tree".
pub fn booted_by(host: &HostSnapshot) -> Reading<String> {
    host.firmware.is_uefi.as_ref().map(|is_uefi| {
        let by = match (is_uefi, host.kernel.is_x86()) {
            (true, _) => "UEFI",
            (false, Some(false)) => "a device tree, without UEFI",
            (false, _) => "legacy BIOS",
        };
        by.to_owned()
    })
}

fn cpus(host: &HostSnapshot) -> String {
    let counts = &host.topology.counts;
    let model = match host.cpu.model_name.text() {
        "" => "processor of unknown model".to_owned(),
        model => model.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let packages = if counts.packages > 1 { format!("{} x ", counts.packages) } else { String::new() };
    let mut line = format!("{packages}{model}, {}", plural(counts.pus, "CPU"));
    if host.topology.has_smt() {
        line.push_str(&format!(" on {}", plural(counts.cores, "core")));
    }
    if counts.numa_nodes > 1 {
        line.push_str(&format!(", {} NUMA nodes", counts.numa_nodes));
    }
    line
}
