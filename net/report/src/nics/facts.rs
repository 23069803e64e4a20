//! The facts of an interface as label and text.

use super::{Interrupt, NicView, Solarflare};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Coalescing, Eee, Fec, Napi, Nic, Pause, PcieTransfers},
};
use lowlat_host_report::terminal::devices::{coalescing_text, missing_or, nic_facts};
use lowlat_text::units::{count, duration, plural};
use std::{cmp::Reverse, collections::BTreeMap};

/// Interrupts listed with their CPUs.
const INTERRUPTS_MAX: usize = 16;
/// Counters of lost packets listed, those with most first.
const LOSSES_MAX: usize = 12;

/// Features that change when packets reach the application: the kernel's name, and what people call it.
const OFFLOADS: [(&str, &str); 6] = [
    ("rx-gro", "GRO"),
    ("rx-gro-hw", "hardware GRO"),
    ("rx-lro", "LRO"),
    ("tx-generic-segmentation", "GSO"),
    ("tx-tcp-segmentation", "TSO"),
    ("rx-ntuple-filter", "flow steering"),
];

/// All facts that are known, in the order in which a reader needs them.
pub(super) fn of(view: &NicView<'_>) -> Vec<(&'static str, String)> {
    let nic = view.nic;
    let mut facts: Vec<(&'static str, String)> =
        nic_facts(nic).into_iter().filter(|(label, _)| *label != "Interrupts").collect();
    let place = facts.iter().position(|(label, _)| *label == "Driver").unwrap_or(facts.len());
    facts.insert(place, ("IP addresses", missing_or(&nic.addresses, |all| all.join(", "))));
    facts.insert(place + 1, ("Solarflare", solarflare(view.solarflare)));
    let coalescing = |each: &Vec<Coalescing>| by_queue(nic, each);
    let contexts = |all: &BTreeMap<u32, Vec<u32>>| match nic.rss_indirection {
        Reading::Absent if all.is_empty() => String::new(),
        _ => rss_contexts(all),
    };
    facts.extend([
        ("Stands on", nic.lower.join(", ")),
        ("Transceiver", missing_or(&nic.transceiver, Clone::clone)),
        ("Transfers", missing_or(&nic.transfers, transfers)),
        ("IOMMU group", missing_or(&nic.iommu_group, Clone::clone)),
        ("Interrupts", interrupts(&view.interrupts)),
        ("By queue", missing_or(&nic.queue_coalescing, coalescing)),
        ("Private flags", missing_or(&nic.private_flags, flags)),
        ("Pause frames", missing_or(&nic.pause, pause)),
        ("PFC", missing_or(&nic.pfc_priorities, |on| pfc(on))),
        ("FEC", missing_or(&nic.fec, fec)),
        ("EEE", missing_or(&nic.eee, eee)),
        ("Offloads", missing_or(&nic.offloads, offloads)),
        ("RSS table", missing_or(&nic.rss_indirection, |table| rss(table))),
        ("RSS contexts", missing_or(&nic.rss_contexts, contexts)),
        ("Flow rules", missing_or(&nic.flow_rules, flow_rules)),
        ("NAPI", missing_or(&nic.napis, |napis| napi(napis))),
        ("Busy polling", missing_or(&nic.napis, |napis| busy_polling(napis))),
        ("AF_XDP", missing_or(&nic.xdp_features, |features| af_xdp(features))),
        ("Lost packets", losses(&nic.drops)),
        ("By the driver", missing_or(&nic.driver_drops, losses)),
    ]);
    together(facts)
}

/// Puts facts that are unknown for the same reason on one line.
fn together(facts: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let (unknown, mut known): (Vec<_>, Vec<_>) =
        facts.into_iter().partition(|(_, text)| text.starts_with("unparsable: "));
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (label, reason) in unknown {
        by_reason.entry(reason).or_default().push(label);
    }
    known.extend(
        by_reason.iter().map(|(reason, labels)| ("Unknown", format!("{}: {reason}", labels.join(", ")))),
    );
    known
}

fn solarflare(by: Solarflare) -> String {
    let variant = "firmware variant not known: `sfboot --adapter=IF` shows it";
    match by {
        Solarflare::ByDriverAndAddress => format!("yes, by driver and address range; {variant}"),
        Solarflare::ByDriver => format!("yes, by driver; {variant}"),
        Solarflare::ByAddressOnly => "no: only the address is in its range, the driver is another".to_owned(),
        Solarflare::No => String::new(),
    }
}

/// "121 eth0-rx-0 on CPU 3, 122 eth0-rx-1 on CPU 4 (managed)".
fn interrupts(all: &[Interrupt]) -> String {
    let one = |interrupt: &Interrupt| {
        let cpus = match &interrupt.cpus {
            Reading::Known(cpus) => format!("{cpus:#}"),
            other => other.missing_in_words().unwrap_or_default(),
        };
        let managed = if interrupt.is_managed.known() == Some(&true) { " (managed)" } else { "" };
        format!("{} {} on {cpus}{managed}", interrupt.number, interrupt.actions.join("+"))
    };
    let mut texts: Vec<String> = all.iter().take(INTERRUPTS_MAX).map(one).collect();
    if all.len() > INTERRUPTS_MAX {
        texts.push(format!("and {} more", all.len() - INTERRUPTS_MAX));
    }
    texts.join(", ")
}

fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn pause(pause: &Pause) -> String {
    let negotiated = if pause.autoneg { ", negotiated" } else { "" };
    format!("rx {}, tx {}{negotiated}", on_off(pause.rx), on_off(pause.tx))
}

fn transfers(transfers: &PcieTransfers) -> String {
    format!(
        "MPS {}, MRRS {}, relaxed ordering {}",
        transfers.payload_bytes_max,
        transfers.read_request_bytes_max,
        on_off(transfers.is_relaxed)
    )
}

/// The coalescing of the queues that differ from the interface's.
fn by_queue(nic: &Nic, each: &[Coalescing]) -> String {
    let mut by_values: BTreeMap<String, CpuSet> = BTreeMap::new();
    for (queue, values) in
        each.iter().enumerate().filter(|(_, values)| nic.coalescing.known() != Some(values))
    {
        by_values
            .entry(coalescing_text(values))
            .or_default()
            .insert(u32::try_from(queue).unwrap_or(u32::MAX));
    }
    let texts: Vec<String> = by_values
        .iter()
        .map(|(values, queues)| {
            format!("{} {queues}: {values}", if queues.len() == 1 { "queue" } else { "queues" })
        })
        .collect();
    if texts.is_empty() { "coalescing of the interface on every queue".to_owned() } else { texts.join("; ") }
}

fn flags(flags: &BTreeMap<String, bool>) -> String {
    flags.iter().map(|(name, is_on)| format!("{name} {}", on_off(*is_on))).collect::<Vec<_>>().join(", ")
}

fn pfc(priorities: &[u32]) -> String {
    let all: Vec<String> = priorities.iter().map(u32::to_string).collect();
    if all.is_empty() { "off".to_owned() } else { format!("priorities {}", all.join(", ")) }
}

fn rss_contexts(contexts: &BTreeMap<u32, Vec<u32>>) -> String {
    let one = |(context, queues): (&u32, &Vec<u32>)| {
        format!("{context} over queues {}", queues.iter().copied().collect::<CpuSet>())
    };
    let all: Vec<String> = contexts.iter().map(one).collect();
    if all.is_empty() { "none beside the interface's own".to_owned() } else { all.join(", ") }
}

fn flow_rules(rules: &BTreeMap<u32, String>) -> String {
    let one = |(location, target): (&u32, &String)| match target.as_str() {
        "dropped" => format!("{location} dropped"),
        place => format!("{location} to {place}"),
    };
    let all: Vec<String> = rules.iter().map(one).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn fec(fec: &Fec) -> String {
    let active = fec.active.as_deref().unwrap_or("none");
    format!("{active} in use, {} configured", fec.configured.join(" "))
}

fn eee(eee: &Eee) -> String {
    let active = if eee.is_active { ", in use on this link" } else { "" };
    format!("{}{active}", on_off(eee.eee))
}

fn offloads(features: &BTreeMap<String, bool>) -> String {
    let one = |(feature, name): &(&str, &str)| {
        features.get(*feature).map(|is_on| format!("{name} {}", on_off(*is_on)))
    };
    OFFLOADS.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// "128 entries over queues 0-3, 32 each"; the counts of the entries differ at most in their last one.
fn rss(table: &[u32]) -> String {
    let mut by_queue: BTreeMap<u32, usize> = BTreeMap::new();
    for queue in table {
        *by_queue.entry(*queue).or_default() += 1;
    }
    let entries = plural(table.len(), "entry").replace("entrys", "entries");
    match by_queue.len() {
        0 => String::new(),
        1 => format!("{entries}, all for queue {}", table.first().copied().unwrap_or(0)),
        queues => format!("{entries} over {queues} queues"),
    }
}

/// Values that instances have in common, each with the instances.
fn napi(napis: &[Napi]) -> String {
    let mut by_values: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for napi in napis {
        by_values.entry(values(napi)).or_default().push(&napi.name);
    }
    let is_one = by_values.len() == 1;
    let each = by_values.iter().map(|(values, names)| {
        let whose = if is_one { plural(names.len(), "instance") } else { names.join(" ") };
        format!("{whose}: {values}")
    });
    let text = each.collect::<Vec<_>>().join("; ");
    if napis.is_empty() { "none while the interface is down, or without GRO".to_owned() } else { text }
}

fn values(napi: &Napi) -> String {
    let time = |ns: u64| if ns == 0 { "0".to_owned() } else { duration(ns) };
    let parts = [
        napi.defer_hard_irqs.map(|polls| format!("defer-hard-irqs {polls}")),
        napi.gro_flush_timeout_ns.map(|ns| format!("gro-flush-timeout {}", time(ns))),
        napi.irq_suspend_timeout_ns.map(|ns| format!("irq-suspend-timeout {}", time(ns))),
        napi.threaded.as_ref().map(|threaded| format!("threaded {threaded}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn busy_polling(napis: &[Napi]) -> String {
    if napis.is_empty() {
        return "not possible: sockets have no NAPI instance to poll".to_owned();
    }
    let suspends = napis.iter().any(|napi| napi.irq_suspend_timeout_ns.is_some());
    let suspended = if suspends { ", and with suspended interrupts" } else { "" };
    format!("possible by sockets and epoll{suspended}")
}

fn af_xdp(features: &[String]) -> String {
    let has = |name: &str| features.iter().any(|feature| feature == name);
    match (has("basic"), has("xsk-zerocopy")) {
        (_, true) => "in the driver, with zero copy".to_owned(),
        (true, false) => "in the driver, with copies".to_owned(),
        (false, false) => "in the kernel's generic path only, with copies".to_owned(),
    }
}

fn losses(counters: &BTreeMap<String, u64>) -> String {
    if counters.is_empty() {
        return String::new();
    }
    let mut some: Vec<_> = counters.iter().filter(|(_, packets)| **packets > 0).collect();
    some.sort_by_key(|(_, packets)| Reverse(**packets));
    let more = some.len().saturating_sub(LOSSES_MAX);
    let texts = some.iter().take(LOSSES_MAX).map(|(name, packets)| format!("{name} {}", count(**packets)));
    let texts: Vec<String> = texts.chain((more > 0).then(|| format!("and {more} more"))).collect();
    if texts.is_empty() {
        format!("none in {} since the driver was loaded", plural(counters.len(), "counter"))
    } else {
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn napi_values_are_grouped() {
        let plain = |name: &str| Napi {
            name: name.into(),
            defer_hard_irqs: Some(0),
            gro_flush_timeout_ns: Some(0),
            ..Napi::default()
        };
        let both = [plain("rx-0"), plain("rx-1")];
        assert_eq!(napi(&both), "2 instances: defer-hard-irqs 0, gro-flush-timeout 0");
        let busy = Napi { defer_hard_irqs: Some(100), gro_flush_timeout_ns: Some(20_000), ..plain("rx-2") };
        let text = napi(&[both[0].clone(), both[1].clone(), busy]);
        assert!(text.contains("rx-0 rx-1: defer-hard-irqs 0"), "{text}");
        assert!(text.contains("rx-2: defer-hard-irqs 100, gro-flush-timeout 20.0 us"), "{text}");
        assert!(busy_polling(&[]).starts_with("not possible"));
    }

    #[test]
    fn what_is_unknown_for_one_reason_is_one_line() {
        let facts = [("FEC", "unparsable: a"), ("EEE", "off"), ("NAPI", "unparsable: a")];
        let facts = together(facts.map(|(label, text)| (label, text.to_owned())).to_vec());
        let expected = [("EEE", "off"), ("Unknown", "FEC, NAPI: unparsable: a")];
        assert_eq!(facts, expected.map(|(label, text)| (label, text.to_owned())));
    }

    #[test]
    fn rss_and_xdp_in_words() {
        assert_eq!(rss(&[0, 0]), "2 entries, all for queue 0");
        assert_eq!(rss(&[0, 1, 2, 0]), "4 entries over 3 queues");
        let words = |names: &[&str]| af_xdp(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert!(words(&[]).contains("generic") && words(&["basic"]).contains("copies"));
        assert_eq!(words(&["basic", "xsk-zerocopy"]), "in the driver, with zero copy");
    }
}
