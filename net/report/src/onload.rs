//! Onload as terminal text: what is installed, and procedures before they run.

use crate::nics::{NicView, Solarflare};
use lowlat_host::Reading;
use lowlat_net::onload::{Procedure, Step};
use lowlat_text::text::{BOLD, DIM, add_field, add_heading, add_painted, add_wrapped, paint};
use lowlat_text::units::clean;
use serde::Serialize;

/// Width of the label column.
const LABEL_WIDTH: usize = 22;

/// State of Onload on a host.
#[derive(Debug, Serialize)]
pub struct OnloadStatus<'a> {
    /// Solarflare interfaces, each with its firmware variant, if the driver or `sfboot` reports it.
    pub cards: Vec<(NicView<'a>, Option<&'static str>)>,
    /// Path of the library or program; `None` if it is not installed.
    pub found: Option<String>,
    pub version: Option<String>,
    pub is_loaded: bool,
    /// Interfaces that Onload can drive over AF_XDP.
    pub registered: Vec<RegisteredInterface<'a>>,
    /// Programs that come with it, each with its path if it is installed.
    pub helpers: Vec<(&'static str, Option<String>)>,
}

/// Interface without a driver of Onload's own.
#[derive(Debug, Serialize)]
pub struct RegisteredInterface<'a> {
    pub interface: &'a str,
    /// Queues that Onload drives; absent if its module is not loaded, or debugfs does not list them.
    pub queues: &'a Reading<u32>,
}

/// Returns what is known about Onload on a host.
pub fn onload_status_text(status: &OnloadStatus<'_>, width: usize) -> String {
    let mut out = String::new();
    let field =
        |out: &mut String, label: &str, text: &str| add_field(out, label, &clean(text), LABEL_WIDTH, width);
    add_heading(&mut out, "Onload");
    let version = status.version.as_deref().unwrap_or("version unknown");
    match &status.found {
        Some(path) => field(&mut out, "Installed", &format!("{version}, {path}")),
        None => field(&mut out, "Installed", "no"),
    }
    field(&mut out, "Kernel module", if status.is_loaded { "loaded" } else { "not loaded" });
    let present: Vec<&str> =
        status.helpers.iter().filter_map(|(name, path)| path.as_ref().map(|_| *name)).collect();
    field(&mut out, "Programs", &if present.is_empty() { "none".to_owned() } else { present.join(", ") });
    let told = |registered: &RegisteredInterface<'_>| match registered.queues {
        Reading::Known(0) | Reading::Absent => None,
        Reading::Known(1) => Some(format!("{} (1 queue)", registered.interface)),
        Reading::Known(queues) => Some(format!("{} ({queues} queues)", registered.interface)),
        missing => Some(format!("{} not known: {}", registered.interface, missing.missing_in_words()?)),
    };
    let told: Vec<String> = status.registered.iter().filter_map(told).collect();
    let is_told = status.registered.iter().any(|registered| registered.queues.known().is_some());
    if !told.is_empty() {
        field(&mut out, "Over AF_XDP", &told.join(", "));
    } else if is_told {
        field(&mut out, "Over AF_XDP", "no interface; lowlat onload register adds one");
    } else if status.is_loaded && !status.registered.is_empty() {
        field(&mut out, "Over AF_XDP", "not known: debugfs does not list the interfaces");
    }
    add_heading(&mut out, "Solarflare cards");
    if status.cards.is_empty() {
        add_wrapped(
            &mut out,
            "None: no interface has the driver sfc or xilinx_efct, or an address in 00:0f:53.",
            2,
            width,
        );
    }
    for (view, variant) in &status.cards {
        let nic = view.nic;
        let mut facts = vec![format!("{} {}", nic.driver, nic.driver_version)];
        facts.push(format!("firmware {}", nic.firmware));
        facts.push(match variant {
            Some(variant) => format!("variant {variant}"),
            None => "variant unknown: neither its driver nor sfboot reports it".to_owned(),
        });
        if view.solarflare == Solarflare::ByAddressOnly {
            facts.push("another driver: its address alone proves nothing".to_owned());
        }
        facts.extend(view.unusable.clone());
        field(&mut out, &nic.name, &facts.join(", "));
    }
    out
}

/// Returns a procedure as the user should see it before it runs.
pub fn procedure_text(procedure: &Procedure, width: usize) -> String {
    let mut out = format!("{}\n", paint(BOLD, &clean(&procedure.title)));
    for note in &procedure.notes {
        add_wrapped(&mut out, &clean(note), 2, width);
    }
    for (number, step) in (1..).zip(&procedure.steps) {
        out.push_str(&format!("\n{number:>3}. {}\n", clean(&step.what)));
        add_wrapped(&mut out, &clean(&command_line(step)), 5, width);
        if !step.undo.is_empty() {
            add_painted(&mut out, DIM, &format!("undo: {}", clean(&step.undo)), 5, width);
        }
    }
    if procedure.needs_reboot {
        out.push_str("\nA reboot completes it.\n");
    }
    out
}

/// Returns a step as a shell line.
pub fn command_line(step: &Step) -> String {
    let mut words = Vec::new();
    if !step.folder.is_empty() {
        words.push(format!("cd {} &&", step.folder));
    }
    words.extend(
        step.environment
            .iter()
            .filter(|(name, _)| name != "PATH")
            .map(|(name, value)| format!("{name}={value}")),
    );
    words.extend(step.command.iter().cloned());
    words.join(" ")
}
