//! Services that the guide stops, and services that must run. irqbalance has its row among the interrupts.

use crate::{HAZARDS, netfilter};
use lowlat_host::{
    Reading,
    snapshot::{Service, ServiceSource},
};
use lowlat_settings::{Context, Impact, Judgement, Layer, Risk, Setting, Verdict, Want, change, judge};

const STEP_9: &str = "guide 57037 section 4.3.3.1.2 step 9";
const PLACE: &str = "systemd";

/// Common values of the rows for step 9: the guide wants the service stopped.
const STOPPED: Setting = Setting {
    layer: Layer::Service,
    impact: Impact::Low,
    effective: "`systemctl is-active` reports inactive for the service and for any socket that would start \
                it again.",
    guide: Want::State("stopped"),
    hazard: "Stopped, not masked: it starts again at the next boot, and other distributions use another \
             name.",
    sources: &[STEP_9, HAZARDS],
    judge: stopped,
    ..Setting::BLANK
};

/// A service that a trading host does not need, in either profile.
pub(super) const NEEDLESS: Setting = Setting {
    reason: "It serves desktops and is of no use on a rack server. Once stopped it wakes up no CPU.",
    cost: "The feature that it provides is gone.",
    trading: Want::State("stopped"),
    ..STOPPED
};

/// A service that the guide stops but a trading host needs. Only the guide's profile wants it stopped.
const NEEDED: Setting = Setting { risk: Risk::Availability, ..STOPPED };

/// A service that stays on the housekeeping CPUs and does not affect the isolated ones.
const HARMLESS: Setting = Setting {
    reason: "It wakes up occasionally. On a host with isolated CPUs it does so on housekeeping CPUs, where \
             it disturbs no trading thread.",
    cost: "The service's work is no longer done.",
    ..STOPPED
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "service.avahi-daemon",
        name: "avahi-daemon.service, avahi-daemon.socket",
        reason: "Announces the host by multicast DNS and answers every such query on the network. A trading \
                 network has no use for it.",
        ..NEEDLESS
    },
    Setting { id: "service.bluetooth", name: "bluetooth.service", ..NEEDLESS },
    Setting {
        id: "service.chronyd",
        name: "chronyd.service, chrony.service",
        reason: "Keeps the clock accurate. It wakes up on a housekeeping CPU and disturbs no isolated one.",
        cost: "The clock drifts, and time stamps of orders are wrong.",
        risk: Risk::Compliance,
        hazard: "A trading host without clock synchronization breaks the rules for time stamps (MiFID II RTS \
                 25, CAT). Keep one service running; see service.clock_discipline.",
        ..STOPPED
    },
    Setting {
        id: "service.crond",
        name: "crond.service, cron.service",
        risk: Risk::Availability,
        ..HARMLESS
    },
    Setting {
        id: "service.dbus",
        name: "dbus.service, dbus-broker.service, dbus.socket",
        reason: "The system's message bus. It sleeps unless a program sends a message.",
        cost: "Logins, NetworkManager, tuned-adm and parts of systemctl stop working.",
        hazard: "Breaks logind, NetworkManager and tuned-adm, and its socket starts it again.",
        ..NEEDED
    },
    Setting {
        id: "service.cpuspeed",
        name: "cpuspeed.service",
        reason: "Lowers the CPUs' frequency while they are idle (RHEL 6). The first packet after a pause is processed at a \
                 low frequency. Later systems leave that to the kernel's governor; see sysfs.cpufreq.governor.",
        cost: "More power while idle.",
        risk: Risk::Power,
        trading: Want::State("stopped"),
        guide: Want::Nothing,
        hazard: "",
        sources: &["OpenOnload on Solarflare NICs: prepare the host (2019)"],
        ..STOPPED
    },
    Setting { id: "service.dnsmasq", name: "dnsmasq.service", ..HARMLESS },
    Setting {
        id: "service.firewalld",
        name: "firewalld.service",
        reason: "Sets up the packet filter and then sleeps. The filter costs time, not the service.",
        cost: "Stopping it removes its packet filter.",
        risk: Risk::Security,
        hazard: "Removes the host's packet filter. Rules that exclude the trading interfaces cost nothing \
                 there.",
        ..STOPPED
    },
    Setting { id: "service.iprdump", name: "iprdump.service", ..HARMLESS },
    Setting { id: "service.iprinit", name: "iprinit.service", ..HARMLESS },
    Setting { id: "service.iprupdate", name: "iprupdate.service", ..HARMLESS },
    Setting {
        id: "service.kdump",
        name: "kdump.service, kdump-tools.service",
        reason: "Loads a second kernel at boot and then does nothing until the host crashes.",
        cost: "A crash leaves no dump to analyse.",
        hazard: "No crash dump, while crashkernel= still reserves the memory for one.",
        ..NEEDED
    },
    Setting {
        id: "service.ksm",
        name: "ksm.service, ksmtuned.service",
        reason: "Merges identical pages of different processes. The scan uses a CPU, and writing to a merged \
                 page causes a fault and a copy on the hot path.",
        cost: "Virtual machines on the host use more memory.",
        ..STOPPED
    },
    Setting { id: "service.libstoragemgmt", name: "libstoragemgmt.service", ..HARMLESS },
    Setting {
        id: "service.libvirt",
        name: "libvirtd.service, libvirtd.socket, virtqemud.service, virtqemud.socket",
        reason: "Manages virtual machines. A trading host runs none.",
        cost: "Virtual machines can no longer be managed.",
        ..STOPPED
    },
    Setting {
        id: "service.lvm2-monitor",
        name: "lvm2-monitor.service",
        reason: "Monitors mirrors and snapshots of logical volumes.",
        cost: "A mirror that loses a disk is not repaired, and a full snapshot is not extended.",
        risk: Risk::Ras,
        hazard: "Storage failures go unnoticed.",
        ..STOPPED
    },
    Setting {
        id: "service.mcelog",
        name: "mcelog.service, rasdaemon.service",
        reason: "Records hardware errors that the processor reports. It sleeps until one occurs.",
        cost: "Memory errors are not recorded.",
        risk: Risk::Ras,
        hazard: "No warning before a memory module fails.",
        ..STOPPED
    },
    Setting {
        id: "service.mdmonitor",
        name: "mdmonitor.service",
        reason: "Monitors software RAID and reports a failed disk. It sleeps in between.",
        cost: "A failed disk is not reported.",
        risk: Risk::Ras,
        hazard: "No warning when a RAID loses a disk.",
        ..STOPPED
    },
    Setting {
        id: "service.messagebus",
        name: "messagebus.service",
        reason: "The old name of dbus.service; see that row.",
        cost: "See service.dbus.",
        hazard: "An alias of dbus on current distributions; see service.dbus.",
        ..NEEDED
    },
    Setting {
        id: "service.modemmanager",
        name: "ModemManager.service",
        reason: "Looks for mobile modems and probes every serial port it finds.",
        ..NEEDLESS
    },
    Setting { id: "service.nfs-client.target", name: "nfs-client.target", ..HARMLESS },
    Setting { id: "service.postfix", name: "postfix.service", ..HARMLESS },
    Setting { id: "service.rhnsd", name: "rhnsd.service", ..HARMLESS },
    Setting { id: "service.rhsmcertd", name: "rhsmcertd.service", ..HARMLESS },
    Setting { id: "service.rpcbind.service", name: "rpcbind.service", ..HARMLESS },
    Setting { id: "service.rpcbind.socket", name: "rpcbind.socket", ..HARMLESS },
    Setting {
        id: "service.systemd-journald",
        name: "systemd-journald.service, systemd-journald.socket, systemd-journald-dev-log.socket, \
               systemd-journald-audit.socket",
        reason: "Writes the log. It runs on housekeeping CPUs when a program logs.",
        cost: "Nothing is logged, so there is no evidence of what the host did.",
        risk: Risk::Compliance,
        hazard: "There is no evidence of any later event. Its sockets systemd-journald-dev-log and \
                 systemd-journald-audit, which the guide leaves running, start it again.",
        ..STOPPED
    },
    Setting {
        id: "service.systemd-journald.socket",
        name: "systemd-journald.socket",
        reason: "The socket through which programs log; it starts the journal service.",
        cost: "Programs that log block or lose their messages.",
        risk: Risk::Compliance,
        hazard: "See service.systemd-journald.",
        ..STOPPED
    },
    Setting {
        id: "service.tuned",
        change: change::tuned::never_stop_tuned,
        name: "tuned.service",
        reason: "TuneD applies its profile and stays running to watch for devices. It wakes up on \
                 housekeeping CPUs.",
        cost: "With its default configuration, stopping it reverts everything that it set.",
        risk: Risk::Availability,
        impact: Impact::Medium,
        hazard: "Stopping TuneD with rollback=auto reverts the whole profile, including the boot parameters \
                 in grubenv. The next boot can come up without nohz_full= and rcu_nocbs=. See \
                 service.tuned.rollback.",
        ..STOPPED
    },
    Setting { id: "service.virtlogd.socket", name: "virtlogd.socket, virtlogd.service", ..HARMLESS },
    Setting { id: "service.wpa_supplicant", name: "wpa_supplicant.service", ..NEEDLESS },
    Setting {
        id: "service.one_time",
        change: change::service::one_time,
        name: "one-time.service",
        reason: "Runs the guide's script of ten steps after each boot.",
        effective: "`systemctl list-unit-files one-time.service` shows enabled, and the rows of its steps are good.",
        guide: Want::State("enabled"),
        hazard: "It races with TuneD, irqbalance and the network drivers, cannot be rolled back, and \
                 continues after an error.",
        sources: &["guide 57037 section 4.3.3.1.1", HAZARDS],
        judge: enabled,
        ..STOPPED
    },
    Setting {
        id: "service.netfilter",
        change: netfilter::keep_out,
        name: "iptables -F; modprobe -r nf_conntrack",
        reason: "Packet filter rules and connection tracking cost time for each packet of the kernel's \
                 network stack. Packets that bypass the stack, as with Onload, are not affected. Rules that \
                 exclude the trading interfaces (notrack, a flowtable or an early accept) avoid most of the \
                 remaining cost.",
        cost: "From the next boot on the host would have no packet filter.",
        risk: Risk::Security,
        effective: "/proc/modules lists none of the modules.",
        reads: &[netfilter::FILE],
        guide: Want::State("no connection tracking and no iptables modules loaded"),
        hazard: "Drops the firewall of the running host without a way to restore it, and with a policy of DROP \
                 locks everyone out. The plan keeps the modules from being loaded at the next boot instead, \
                 which a rollback reverts. Neither affects nftables without connection tracking.",
        sources: &["guide 57037 section 4.3.3.1.2 step 5", HAZARDS],
        judge: netfilter::judge,
        ..STOPPED
    },
    Setting {
        id: "service.clock_discipline",
        change: change::service::clock_discipline,
        name: "chronyd, ntpd, ptp4l, phc2sys, systemd-timesyncd",
        reason: "Orders and market data are stamped with the host's clock, and regulations require it to \
                 stay close to UTC. One service must synchronize it, on housekeeping CPUs.",
        cost: "It wakes up occasionally on a housekeeping CPU.",
        impact: Impact::High,
        effective: "`chronyc tracking`, `pmc` or `ntpq -p` shows a small offset.",
        trading: Want::State("one clock synchronization service is running"),
        guide: Want::Nothing,
        hazard: "",
        sources: &[HAZARDS, "MiFID II RTS 25", "FINRA CAT clock synchronisation"],
        judge: clock_discipline,
        ..STOPPED
    },
];

/// The units of a row: its name, split at commas.
fn units_of(setting: &Setting) -> impl Iterator<Item = &'static str> {
    setting.name.split(',').map(str::trim)
}

/// The judgement for a host on which all service states are unknown; none otherwise.
pub(crate) fn unknown_services(context: &Context<'_>) -> Option<Judgement> {
    let services = &context.host.services;
    let listed = context.host.listed("systemd's unit files", ());
    if !listed.is_known() {
        return Some(judge::missing(&listed, "systemd's unit files"));
    }
    (services.source == ServiceSource::None || services.units.is_empty())
        .then(|| Judgement::unknown("no service manager was found, so no service state is known"))
}

/// True for "active" and "activating".
fn is_running(state: &str) -> bool {
    matches!(state, "active" | "activating" | "reloading")
}

/// The names of the units that are running.
fn running<'a>(units: &[(&'a str, &Service)]) -> Vec<&'a str> {
    let running = units.iter().filter(|(_, unit)| unit.active.known().is_some_and(|state| is_running(state)));
    running.map(|(name, _)| *name).collect()
}

/// The unit is installed, but its state is unknown.
fn state_unknown(unit: &Service, name: &str) -> Judgement {
    match &unit.active {
        Reading::Known(_) | Reading::Absent => {
            let said = match unit.enablement.text() {
                "" => String::new(),
                enablement => format!(" and {enablement}"),
            };
            let because = format!(
                "{name} is installed{said}; whether it is running is not known because systemd did not \
                 answer"
            );
            Judgement::unknown(because).at(name)
        }
        other => judge::missing(other, name),
    }
}

/// Wants every unit of the row stopped. A listening socket restarts a stopped service.
fn stopped(context: &Context<'_>, setting: &Setting) -> Judgement {
    if let Some(judgement) = unknown_services(context) {
        return judgement;
    }
    let found: Vec<_> = units_of(setting)
        .filter_map(|name| context.host.services.units.get(name).map(|unit| (name, unit)))
        .collect();
    if found.is_empty() {
        return Judgement::not_applicable("this host has no such unit").at(PLACE);
    }
    let (running, unread) = (running(&found), found.iter().find(|(_, unit)| !unit.active.is_known()));
    let is_service_stopped = running.iter().all(|name| name.ends_with(".socket"));
    let has_service = found.iter().any(|(name, _)| !name.ends_with(".socket"));
    let judgement = match (running.is_empty(), unread) {
        (false, _) if is_service_stopped && has_service => Judgement::new(
            Verdict::Ineffective,
            format!("stopped, but {} listens", running.join(", ")),
            "the socket starts the service again when a client connects",
        ),
        (false, _) => Judgement::wrong(format!("running: {}", running.join(", ")), ""),
        (true, Some((name, unit))) => state_unknown(unit, name),
        (true, None) => {
            let is_enabled = found.iter().any(|(_, unit)| unit.enablement.text() == "enabled");
            judge::good_because(
                "stopped",
                if is_enabled { "enabled: it starts again at the next boot" } else { "" },
            )
        }
    };
    judgement.at(PLACE)
}

fn enabled(context: &Context<'_>, setting: &Setting) -> Judgement {
    if let Some(judgement) = unknown_services(context) {
        return judgement;
    }
    let judgement = match context.host.services.units.get(setting.name).map(|unit| &unit.enablement) {
        None | Some(Reading::Absent) => Judgement::wrong("this host has no such unit", ""),
        Some(Reading::Known(state)) if state == "enabled" => Judgement::good("enabled"),
        Some(Reading::Known(state)) => Judgement::wrong(state.as_str(), ""),
        Some(other) => judge::missing(other, setting.name),
    };
    judgement.at(PLACE)
}

/// Services that set the system clock from the network. Two of them conflict.
const SETTERS: &[&str] = &[
    "chrony.service",
    "chronyd.service",
    "ntp.service",
    "ntpd.service",
    "ntpsec.service",
    "openntpd.service",
    "systemd-timesyncd.service",
];

/// Services of the precision time protocol, which may run together, and as templates too.
const PTP: &[&str] = &["phc2sys", "ptp4l", "sfptpd", "timemaster"];

fn clock_discipline(context: &Context<'_>, _: &Setting) -> Judgement {
    if let Some(judgement) = unknown_services(context) {
        return judgement;
    }
    let is_ptp = |name: &str| {
        let plain = name.split(['@', '.']).next().unwrap_or(name);
        PTP.contains(&plain)
    };
    let units = context.host.services.units.iter().map(|(name, unit)| (name.as_str(), unit));
    let clocks: Vec<_> = units.filter(|(name, _)| SETTERS.contains(name) || is_ptp(name)).collect();
    let (running, unread) = (running(&clocks), clocks.iter().find(|(_, unit)| !unit.active.is_known()));
    let setters = running.iter().filter(|name| SETTERS.contains(name)).count();
    let judgement = match (setters, running.is_empty(), unread) {
        (2.., _, _) => Judgement::new(
            Verdict::Conflicting,
            running.join(", "),
            "two services set the same clock; stop all but one",
        ),
        (_, false, _) => Judgement::good(running.join(", ")),
        (_, true, Some((name, unit))) => state_unknown(unit, name),
        (_, true, None) => Judgement::wrong(
            "none is running",
            "the clock drifts freely; start chronyd, or ptp4l with phc2sys if the network has PTP",
        ),
    };
    judgement.at(PLACE)
}
