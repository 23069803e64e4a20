//! Builder for a text of sections and labelled facts.

use lowlat_host::{HostSnapshot, Reading};
use lowlat_text::{
    text::{add_detail, add_field, add_heading},
    units::{clean, plural},
};
use std::fmt::Display;

/// Width of the label column.
pub const LABEL_WIDTH: usize = 18;

/// Text under construction, with its width.
pub struct Page {
    pub out: String,
    pub width: usize,
}

impl Page {
    /// Adds a labelled text; an empty one adds nothing.
    pub fn field(&mut self, label: &str, text: &str) {
        add_field(&mut self.out, label, &clean(text), LABEL_WIDTH, self.width);
    }

    /// Adds a labelled fact. An absent fact adds nothing; a denied or unparsable one is shown as such.
    pub fn fact<T: Display>(&mut self, label: &str, reading: &Reading<T>) {
        self.field(label, &fact(reading));
    }

    pub fn heading(&mut self, title: &str) {
        add_heading(&mut self.out, title);
    }

    pub fn note(&mut self, text: &str) {
        add_detail(&mut self.out, text, self.width);
    }
}

/// Returns the text of a fact, empty if it is absent.
pub fn fact<T: Display>(reading: &Reading<T>) -> String {
    if reading.is_absent() { String::new() } else { reading.to_string() }
}

/// Returns the text of a known fact, "unknown" for an absent one, and the reason for others.
pub fn or_unknown<T: Display>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Known(value) => value.to_string(),
        Reading::Absent => "unknown".to_owned(),
        other => format!("unknown: {other}"),
    }
}

/// Returns the text "yes" or "no".
pub fn yes_no(reading: &Reading<bool>) -> Reading<&'static str> {
    reading.as_ref().map(|value| if *value { "yes" } else { "no" })
}

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
