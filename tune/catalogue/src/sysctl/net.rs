//! The network stack's sysctls.

use super::{GUIDE, NETWORK_LATENCY, SYSCTL, named, number};
use lowlat_host::Reading;
use lowlat_settings::{Context, Impact, Judgement, Needs, Risk, Setting, Verdict, Want, change, judge};

const NET_DOC: &str = "kernel Documentation/admin-guide/sysctl/net.rst";
const IP_DOC: &str = "kernel Documentation/networking/ip-sysctl.rst";
const RP_FILTER: &str = "/proc/sys/net/ipv4/conf/*/rp_filter";
const RP_FILTER_ALL: &str = "/proc/sys/net/ipv4/conf/all/rp_filter";

/// The value of rp_filter that drops a packet if its reply would leave through another interface.
const STRICT: u32 = 1;

pub(crate) const SETTINGS: &[Setting] = &named([
    Setting {
        id: "sysctl.net.ipv4.conf.all.rp_filter",
        acts_when: "packets arrive",
        change: change::sysctl::rp_filter,
        reason: "Reverse path filtering looks up the return path for each packet. In strict mode (1) it \
                 drops market data that arrives on an interface other than the return path to its sender, as \
                 feeds on separate networks do. Off (0) or loose (2) accepts it.",
        cost: "The host does not drop packets with forged sender addresses.",
        risk: Risk::Security,
        impact: Impact::Medium,
        effective: "The kernel uses the larger of conf/all and conf/INTERFACE; IPReversePathFilter in \
                    /proc/net/netstat does not increase.",
        reads: &[RP_FILTER, RP_FILTER_ALL],
        trading: Want::State("not strict on interfaces that carry trading traffic"),
        guide: Want::Value("0"),
        hazard: "Has no effect where an interface's own value is 1 or 2, the default of many distributions, \
                 because the larger value counts. It weakens the host's protection in any case.",
        sources: &[GUIDE, "kernel Documentation/networking/ip-sysctl.rst rp_filter"],
        judge: rp_filter,
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.core.busy_read",
        acts_when: "applications wait for packets",
        reason: "How long a blocking read of a socket polls the device queue before it sleeps, in \
                 microseconds. It avoids the interrupt and the wake-up on sockets of the kernel's stack. \
                 Sockets of Onload or another bypass do not use it.",
        cost: "Every reader on the host polls, including those on housekeeping CPUs.",
        risk: Risk::Power,
        impact: Impact::Medium,
        needs: Needs::ANY.with_config(&["NET_RX_BUSY_POLL"]),
        effective: "BusyPollRxPackets in /proc/net/netstat increases while sockets are read.",
        reads: &["/proc/sys/net/core/busy_read"],
        trading: Want::Value("50"),
        sources: &[NETWORK_LATENCY, NET_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.core.busy_poll",
        acts_when: "applications wait for packets",
        reason: "The same for poll, select and epoll: how long they poll device queues before they sleep, in \
                 microseconds. The kernel's documentation advises 50 for several sockets and 100 for several \
                 hundred.",
        cost: "Every process that waits in poll or select spins first, including those on housekeeping CPUs.",
        risk: Risk::Power,
        impact: Impact::Medium,
        needs: Needs::ANY.with_config(&["NET_RX_BUSY_POLL"]),
        effective: "BusyPollRxPackets in /proc/net/netstat increases while sockets are polled.",
        reads: &["/proc/sys/net/core/busy_poll"],
        trading: Want::OneOf(&["50", "100"]),
        sources: &[NETWORK_LATENCY, NET_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.ipv4.tcp_slow_start_after_idle",
        acts_when: "a TCP connection pauses",
        reason: "After a pause of one retransmission timeout TCP starts with a small congestion window again. A burst of \
                 orders after a quiet minute then waits for acknowledgements.",
        cost: "A burst can overrun a link whose capacity shrank during the pause.",
        impact: Impact::Medium,
        reads: &["/proc/sys/net/ipv4/tcp_slow_start_after_idle"],
        trading: Want::Value("0"),
        sources: &[IP_DOC, "RFC 2861"],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.ipv4.tcp_autocorking",
        acts_when: "small messages are sent over TCP",
        reason: "TCP holds a small write back while an earlier packet of the socket waits in the queue of the NIC, to send \
                 both in one packet. The second of two orders waits for the first.",
        cost: "More, smaller packets from programs that write little at a time.",
        reads: &["/proc/sys/net/ipv4/tcp_autocorking"],
        trading: Want::Value("0"),
        sources: &[IP_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.ipv4.igmp_max_memberships",
        acts_when: "an application joins many groups",
        reason: "The largest number of multicast groups that one socket can join. With the kernel's 20, a program that \
                 joins all groups of a feed on one socket fails at the 21st.",
        reads: &["/proc/sys/net/ipv4/igmp_max_memberships"],
        trading: Want::Value("1024"),
        sources: &[IP_DOC],
        judge: at_least,
        ..SYSCTL
    },
    Setting {
        id: "sysctl.net.core.rmem_max",
        acts_when: "packets arrive in bursts",
        reason: "The largest receive buffer that a program can ask for with SO_RCVBUF, in bytes. A burst of a feed that is \
                 larger than the buffer is dropped while the reader is busy.",
        cost: "A program that asks for it keeps more memory, and more packets wait before anyone notices that it is slow.",
        reads: &["/proc/sys/net/core/rmem_max"],
        trading: Want::Value("16777216"),
        sources: &[NET_DOC, "TuneD 2.28 profile network-throughput: tcp_rmem 16777216"],
        judge: at_least,
        ..SYSCTL
    },
]);

/// Values at and above the wanted one are good.
fn at_least(context: &Context<'_>, setting: &Setting) -> Judgement {
    let wanted = setting.want(context.profile).text(context).and_then(|text| number(&text));
    judge::sysctl_where(context, setting, |value| number(value) >= wanted)
}

/// Judged per interface, because the larger of the global and the interface's value counts.
fn rp_filter(context: &Context<'_>, setting: &Setting) -> Judgement {
    let parsed = |reading: Reading<String>, path: &str| {
        reading.parse(path, "0, 1 or 2", |text| text.parse::<u32>().ok().filter(|value| *value <= 2))
    };
    let all_reading = parsed(context.host.file(RP_FILTER_ALL), RP_FILTER_ALL);
    let Reading::Known(all) = all_reading else {
        return match all_reading {
            Reading::Absent => Judgement::not_applicable("this kernel has no such sysctl").at(RP_FILTER_ALL),
            other => judge::missing(&other, RP_FILTER_ALL),
        };
    };
    let own: Vec<(&str, u32)> = context
        .host
        .files_matching(RP_FILTER)
        .filter_map(|(path, reading)| {
            let name = path.split('/').nth_back(1)?;
            let carries = match context.role.nics.as_slice() {
                [] => !matches!(name, "all" | "default" | "lo"),
                nics => nics.iter().any(|nic| nic == name),
            };
            Some((name, parsed(reading.clone(), path).into_known()?)).filter(|_| carries)
        })
        .collect();
    let judgement = match setting.want(context.profile) {
        Want::State(_) => rp_filter_not_strict(all, &own),
        _ => rp_filter_off(context, setting, all, &own),
    };
    judgement.at(RP_FILTER_ALL)
}

fn rp_filter_not_strict(all: u32, own: &[(&str, u32)]) -> Judgement {
    let strict = names(own.iter().filter(|(_, own)| (*own).max(all) == STRICT));
    match (strict.is_empty(), own.is_empty()) {
        (false, _) => Judgement::wrong(
            format!("strict on {strict}"),
            "set 2 (loose) or 0 for all and for these interfaces: the larger value counts",
        ),
        (true, true) if all == STRICT => Judgement::wrong("all: 1", "interfaces inherit the strict mode"),
        _ => Judgement::good(format!("all: {all}, strict on no interface")),
    }
}

fn rp_filter_off(context: &Context<'_>, setting: &Setting, all: u32, own: &[(&str, u32)]) -> Judgement {
    if all != 0 {
        return judge::sysctl(context, setting);
    }
    let still_on = names(own.iter().filter(|(_, own)| *own > 0));
    if still_on.is_empty() {
        return Judgement::good("0");
    }
    let because = "the kernel uses the larger of the global and the interface's value";
    Judgement::new(Verdict::Ineffective, format!("all: 0, but on for {still_on}"), because)
}

fn names<'a>(interfaces: impl Iterator<Item = &'a (&'a str, u32)>) -> String {
    let labels: Vec<String> = interfaces.map(|(name, value)| format!("{name} ({value})")).collect();
    judge::some_of(&labels, 6)
}
