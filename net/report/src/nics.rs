//! Network interfaces in full, and what they mean for a measurement.

mod facts;

use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    snapshot::{Bypass, Irq, Nic},
};
use lowlat_host_report::fields::Page;
use lowlat_host_report::terminal::tree;
use lowlat_net::onload::is_card_driver;
use lowlat_text::columns::Table;
use lowlat_text::text::{YELLOW, add_painted, add_wrapped, usable};
use lowlat_text::units::{clean, plural};
use serde::Serialize;

/// One interface with what follows from the facts about it.
#[derive(Debug, Serialize)]
pub struct NicView<'a> {
    pub nic: &'a Nic,
    /// IP addresses, which the written facts do not contain.
    pub addresses: &'a Reading<Vec<String>>,
    /// Reason why no measurement over it is meaningful; `None` if it can carry one.
    pub unusable: Option<String>,
    /// Evidence, from driver and address range, that it is a Solarflare card.
    pub solarflare: Solarflare,
    /// CPUs that are isolated or chosen for isolation on its NUMA node.
    pub isolated_cpus_near: Reading<CpuSet>,
    /// Its interrupts and the CPUs that they reach.
    pub interrupts: Vec<Interrupt>,
}

/// One interrupt of an interface.
#[derive(Debug, Serialize)]
pub struct Interrupt {
    /// Number of the interrupt in /proc/irq.
    pub number: u32,
    /// Names of the handlers: "eth0-rx-0".
    pub actions: Vec<String>,
    pub cpus: Reading<CpuSet>,
    /// True if the kernel manages its affinity.
    pub is_managed: Reading<bool>,
}

/// Evidence, from driver and address range, that a card is from Solarflare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Solarflare {
    /// Its driver is sfc, a variant such as `sfc_ef100`, or `xilinx_efct`.
    ByDriver,
    /// Its driver is sfc and its address is in the range 00:0f:53.
    ByDriverAndAddress,
    /// Only its address is in the range. Bonds and VLANs copy addresses.
    ByAddressOnly,
    No,
}

impl Solarflare {
    /// Judges an interface by its driver and address.
    pub fn of(nic: &Nic) -> Self {
        let is_driver = is_card_driver(nic.driver.text());
        let is_range = nic.mac.text().to_ascii_lowercase().starts_with("00:0f:53");
        match (is_driver, is_range) {
            (true, true) => Self::ByDriverAndAddress,
            (true, false) => Self::ByDriver,
            (false, true) => Self::ByAddressOnly,
            (false, false) => Self::No,
        }
    }
}

impl<'a> NicView<'a> {
    /// Judges one interface of a host, with the CPUs that are isolated there.
    pub fn of(host: &HostSnapshot, isolated: &CpuSet, nic: &'a Nic) -> Self {
        let own = |irq: &&Irq| nic.irqs.contains(&irq.number) && !irq.actions.is_empty();
        let interrupt = |irq: &Irq| Interrupt {
            number: irq.number,
            actions: irq.actions.clone(),
            cpus: irq.goes_to(),
            is_managed: irq.is_managed.clone(),
        };
        Self {
            nic,
            addresses: &nic.addresses,
            unusable: unusable(nic),
            solarflare: Solarflare::of(nic),
            isolated_cpus_near: near(host, isolated, nic),
            interrupts: host.interrupts.irqs.iter().filter(own).map(interrupt).collect(),
        }
    }
}

impl NicView<'_> {
    /// True if it can carry a measurement; `None` if its carrier could not be read.
    pub fn is_usable(&self) -> Option<bool> {
        match &self.unusable {
            Some(_) => Some(false),
            None => self.nic.carrier.known().copied(),
        }
    }
}

/// Returns why no measurement over an interface is meaningful.
fn unusable(nic: &Nic) -> Option<String> {
    if nic.name == "lo" {
        return Some("loopback: its packets never reach a network card".to_owned());
    }
    match (&nic.carrier, nic.operstate.text()) {
        (Reading::Known(false), _) => Some("no carrier: check the cable and the other end".to_owned()),
        (Reading::Known(true), _) => None,
        (_, "down") => Some(format!("down: `ip link set {} up` shows whether it has a carrier", nic.name)),
        _ => None,
    }
}

/// CPUs on the interface's node; with one node, or none known, every CPU is equally near.
fn near(host: &HostSnapshot, isolated: &CpuSet, nic: &Nic) -> Reading<CpuSet> {
    let nodes: Vec<_> = host.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    if nodes.len() < 2 {
        return Reading::Known(isolated.clone());
    }
    let node = tree::node_number(&nic.node);
    let found = node.and_then(|node| nodes.iter().find(|known| known.id == node));
    Reading::from_option(found.map(|node| node.cpus.intersection(isolated)))
}

/// Formats interfaces: a table if there are several, a block for each, then the stacks that bypass the kernel.
pub fn nics_text(host: &HostSnapshot, isolated: &CpuSet, nics: &[NicView<'_>], width: usize) -> String {
    let mut page = Page { out: String::new(), width: usable(width) };
    if nics.len() > 1 {
        page.out.push_str(&table(nics, page.width));
    }
    for view in nics {
        block(&mut page, view, isolated);
    }
    let shown = |nic: &Nic| nics.iter().any(|view| view.nic.name == nic.name);
    let others: Vec<&str> = host.nics.iter().filter(|nic| !shown(nic)).map(|nic| nic.name.as_str()).collect();
    if !others.is_empty() {
        page.heading("Other interfaces");
        add_wrapped(&mut page.out, &clean(&others.join(" ")), 2, page.width);
    }
    page.heading("Stacks that bypass the kernel");
    for stack in &host.bypasses {
        page.field(&stack.name, &bypass(stack));
    }
    if host.bypasses.is_empty() {
        page.note("This capture was made by an earlier version, which did not look for them.");
    }
    page.out
}

fn bypass(stack: &Bypass) -> String {
    let Reading::Known(path) = &stack.found else { return "not installed".to_owned() };
    let version = stack.version.known().map_or_else(|| "version unknown".to_owned(), Clone::clone);
    let module = match stack.is_loaded.known() {
        Some(true) => ", module loaded",
        Some(false) => ", module not loaded",
        None => "",
    };
    format!("{version} ({path}){module}")
}

fn table(nics: &[NicView<'_>], width: usize) -> String {
    let known = |text: &str| (!text.is_empty()).then(|| clean(text));
    let link = |view: &NicView<'_>| match &view.unusable {
        Some(_) if view.nic.carrier.known() == Some(&false) => Some("no carrier".to_owned()),
        Some(_) => known(view.nic.operstate.text()),
        None => tree::speed(view.nic).or_else(|| known(view.nic.operstate.text())),
    };
    let queues = |view: &NicView<'_>| {
        view.nic.channels.known().map(|of| of.rx.saturating_add(of.combined).to_string())
    };
    Table::of(nics)
        .words("interface", 0, |view| clean(&view.nic.name))
        .words("link", 0, link)
        .words("driver", 1, |view| known(view.nic.driver.text()))
        .figures("node", 3, |view| tree::node_number(&view.nic.node).map(|node| node.to_string()))
        .figures("rx queues", 4, queues)
        .words("measure?", 0, |view| match view.is_usable() {
            None => "unknown".to_owned(),
            Some(is) => if is { "yes" } else { "no" }.to_owned(),
        })
        .words("address", 2, |view| known(view.nic.addresses.known().and_then(|all| all.first())?))
        .text(width)
}

fn block(page: &mut Page, view: &NicView<'_>, isolated: &CpuSet) {
    let nic = view.nic;
    page.heading(&clean(&nic.name));
    if let Some(why) = &view.unusable {
        let text = clean(&format!("Unusable for measurement: {why}"));
        add_painted(&mut page.out, YELLOW, &text, 2, page.width);
    }
    for (label, text) in facts::of(view) {
        page.field(label, &text);
    }
    page.field("Isolated near", &near_text(view, isolated));
    let is_there = |of: &&Interrupt| of.cpus.known().is_some_and(|cpus| !cpus.is_disjoint(isolated));
    let count = view.interrupts.iter().filter(is_there).count();
    if count > 0 {
        let verb = if count == 1 { "reaches" } else { "reach" };
        let text = format!("{} {verb} isolated CPUs.", plural(count, "interrupt"));
        add_painted(&mut page.out, YELLOW, &text, 2, page.width);
    }
}

fn near_text(view: &NicView<'_>, isolated: &CpuSet) -> String {
    match &view.isolated_cpus_near {
        _ if isolated.is_empty() => "none: no CPU is isolated or chosen for it".to_owned(),
        Reading::Known(cpus) if cpus.is_empty() => "none on its node".to_owned(),
        Reading::Known(cpus) => format!("{cpus:#}"),
        _ => "not known: the firmware does not report its node".to_owned(),
    }
}

#[cfg(test)]
mod tests;
