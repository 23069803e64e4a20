//! Times at which the kernel polls NICs: deferred interrupts, suspended interrupts, polling threads.

use super::{NIC, each_nic, judged_nics};
use lowlat_host::{
    Reading,
    snapshot::{Napi, NapiField, Nic},
};
use lowlat_settings::{
    Context, Impact, Judgement, Needs, Setting, Want,
    change::{Proposal, Target, nic},
    judge::each::One,
};

const NAPI: &str = "kernel Documentation/networking/napi.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.gro_flush_timeout",
        change: deferral_zero,
        name: "gro_flush_timeout",
        reason: "Holds merged packets back for this many nanoseconds, so that more can join. 0 passes them \
                 up at the end of each poll. Only sockets that prefer busy polling (SO_PREFER_BUSY_POLL) \
                 need more.",
        effective: "cat /sys/class/net/IF/gro_flush_timeout.",
        reads: &["/sys/class/net/*/napi_defer_hard_irqs", "/sys/class/net/*/gro_flush_timeout"],
        trading: Want::Value("0"),
        judge: gro_flush_timeout,
        sources: &[NAPI],
        ..NIC
    },
    Setting {
        id: "nic.napi_defer_hard_irqs",
        change: deferral_zero,
        name: "napi_defer_hard_irqs",
        reason: "After an empty poll the NIC's interrupt stays off, and a timer of gro_flush_timeout polls \
                 instead. A packet that arrives in between waits for the timer, unless a socket busy-polls.",
        effective: "cat /sys/class/net/IF/napi_defer_hard_irqs.",
        needs: Needs::since(5, 8),
        reads: &["/sys/class/net/*/gro_flush_timeout", "/sys/class/net/*/napi_defer_hard_irqs"],
        trading: Want::Value("0"),
        judge: napi_defer_hard_irqs,
        sources: &[NAPI, "kernel commit 6f8b12d661d0 (5.8): hard irqs deferral"],
        ..NIC
    },
    Setting {
        id: "nic.irq_suspend_timeout",
        change: set_suspension,
        name: "irq-suspend-timeout",
        reason: "While an application busy-polls with epoll and finds packets, the NIC's interrupt stays off for up to \
                 this many nanoseconds. When the application pauses, defer-hard-irqs and gro-flush-timeout decide when \
                 packets are polled, so the kernel ignores it unless they are set as well.",
        impact: Impact::Low,
        effective: "lowlat net nics IF shows the values of each NAPI instance.",
        trading: Want::State("0, or set with defer-hard-irqs and gro-flush-timeout"),
        judge: irq_suspend_timeout,
        sources: &[
            NAPI,
            "kernel commit 5dc51ec86df6 (6.13): irq_suspend_timeout",
            "kernel tools/testing/selftests/net/busy_poll_test.sh: the values",
        ],
        ..NIC
    },
    Setting {
        id: "nic.threaded",
        change: file_zero,
        name: "threaded",
        reason: "A kernel thread for each NAPI instance polls the NIC instead of the softirq. A packet then waits until \
                 the scheduler runs that thread.",
        impact: Impact::Low,
        effective: "cat /sys/class/net/IF/threaded; no thread named napi/IF-N runs.",
        needs: Needs::since(5, 12),
        reads: &["/sys/class/net/*/threaded"],
        trading: Want::Value("0"),
        judge: threaded,
        sources: &[NAPI],
        ..NIC
    },
];

fn nic_file(context: &Context<'_>, nic: &Nic, name: &str) -> Reading<u64> {
    let path = format!("/sys/class/net/{}/{name}", nic.name);
    context.host.file(&path).parse(&path, "a number", |text| text.parse().ok())
}

/// Sets the interface's file with the row's name to 0.
fn file_zero(context: &Context<'_>, setting: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for nic in judged_nics(context) {
        let path = format!("/sys/class/net/{}/{}", nic.name, setting.name);
        if nic_file(context, nic, setting.name).known().is_some_and(|now| *now != 0) {
            let before = context.host.file(&path);
            proposal = proposal.step(Target::File { path }, before, "0");
        }
    }
    proposal
}

/// The fields that delay packets unless an application busy-polls, with the names of their files.
const DEFERRAL: [(&str, NapiField, &str); 2] = [
    ("gro_flush_timeout", NapiField::GroFlushTimeout, "gro-flush-timeout"),
    ("napi_defer_hard_irqs", NapiField::DeferHardIrqs, "defer-hard-irqs"),
];

/// The instances on which a field is set while no application suspends their interrupts.
fn deferring(nic: &Nic, field: NapiField) -> Vec<&Napi> {
    let is_deferring = |napi: &&Napi| is_on(napi, field) && napi.irq_suspend_timeout_ns.unwrap_or(0) == 0;
    nic.napis.known().into_iter().flatten().filter(is_deferring).collect()
}

fn names(napis: &[&Napi]) -> String {
    napis.iter().map(|napi| napi.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Sets a field of an instance.
fn with_value(
    proposal: Proposal,
    nic: &Nic,
    instance: &Napi,
    (field, name): (NapiField, &str),
    wanted: &str,
) -> Proposal {
    let target = nic::NAPI.of(&nic.name, format!("{}/{name}", instance.name));
    proposal.step(target, Reading::from_option(instance.value(field)), wanted)
}

/// Sets the interface's file to 0, or, if it already is, those instances that still defer.
fn deferral_zero(context: &Context<'_>, setting: &Setting) -> Proposal {
    let Some((_, field, name)) = DEFERRAL.iter().find(|(file, ..)| *file == setting.name) else {
        return Proposal::default();
    };
    let mut proposal = file_zero(context, setting);
    for nic in judged_nics(context) {
        // The file sets every instance, and rollback could not tell them apart.
        if nic_file(context, nic, setting.name).known().is_some_and(|now| *now != 0) {
            continue;
        }
        for instance in deferring(nic, *field) {
            proposal = with_value(proposal, nic, instance, (*field, name), "0");
        }
    }
    proposal
}

/// Judges the instances of an interface whose own value is zero.
fn none_deferring(nic: &Nic, field: NapiField, why: &str) -> One {
    match deferring(nic, field).as_slice() {
        [] => One::Good("0".into()),
        some => One::Wrong(format!("set on {}", names(some)), why.into()),
    }
}

fn gro_flush_timeout(context: &Context<'_>, _: &Setting) -> Judgement {
    const WAIT: &str = "packets wait for it unless a socket busy-polls";
    each_nic(context, |nic| {
        let now = nic_file(context, nic, "gro_flush_timeout");
        One::of(&now, "this kernel has no gro_flush_timeout", |ns| match ns {
            0 => none_deferring(nic, NapiField::GroFlushTimeout, WAIT),
            ns => One::Wrong(format!("{ns} ns"), WAIT.into()),
        })
    })
    .at("/sys/class/net/*/gro_flush_timeout")
}

fn napi_defer_hard_irqs(context: &Context<'_>, _: &Setting) -> Judgement {
    const WAIT: &str = "packets wait for the timer unless a socket busy-polls";
    each_nic(context, |nic| {
        let defers = nic_file(context, nic, "napi_defer_hard_irqs");
        let timeout = nic_file(context, nic, "gro_flush_timeout");
        One::of(&defers, "this kernel has no napi_defer_hard_irqs", |polls| match (polls, timeout) {
            (0, _) => none_deferring(nic, NapiField::DeferHardIrqs, WAIT),
            (polls, Reading::Known(0)) => {
                One::Wrong(polls.to_string(), "no effect while gro_flush_timeout is 0".into())
            }
            (polls, _) => One::Wrong(polls.to_string(), WAIT.into()),
        })
    })
    .at("/sys/class/net/*/napi_defer_hard_irqs")
}

/// Values for each instance if applications busy-poll, from the kernel's own test.
const SUSPENDED: [(NapiField, &str, &str); 3] = [
    (NapiField::DeferHardIrqs, "defer-hard-irqs", "100"),
    (NapiField::GroFlushTimeout, "gro-flush-timeout", "50000"),
    (NapiField::IrqSuspendTimeout, "irq-suspend-timeout", "20000000"),
];

fn is_on(napi: &Napi, field: NapiField) -> bool {
    napi.value(field).is_some_and(|value| value != "0")
}

/// The instances with only some of the three values, or, if applications busy-poll, without all of them.
fn half_suspended<'a>(context: &Context<'_>, nic: &'a Nic) -> Vec<&'a Napi> {
    let is_fault = |napi: &&Napi| {
        let is_suspended = is_on(napi, NapiField::IrqSuspendTimeout);
        let is_whole = SUSPENDED.iter().all(|(field, ..)| is_on(napi, *field));
        napi.irq_suspend_timeout_ns.is_some() && !is_whole && (is_suspended || context.role.is_busy_polling)
    };
    nic.napis.known().into_iter().flatten().filter(is_fault).collect()
}

fn irq_suspend_timeout(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match &nic.napis {
        Reading::Known(napis) if napis.iter().all(|napi| napi.irq_suspend_timeout_ns.is_none()) => One::Skip(
            "no NAPI instance has it: the interface is down, or the kernel is older than 6.13".into(),
        ),
        Reading::Known(napis) => {
            let is_set = napis.iter().any(|napi| is_on(napi, NapiField::IrqSuspendTimeout));
            match half_suspended(context, nic).as_slice() {
                [] if is_set => One::Good("set, with its timer".into()),
                [] => One::Good("0".into()),
                some if is_set => One::Wrong(
                    format!("without its timer on {}", names(some)),
                    "no effect while defer-hard-irqs or gro-flush-timeout is 0".into(),
                ),
                some => One::Wrong(
                    format!("0 on {}", names(some)),
                    "the role says that they are busy-polled".into(),
                ),
            }
        }
        Reading::Absent => One::Skip("the kernel does not list NAPI instances".into()),
        other => One::missing(other),
    })
    .at("netdev-genl napi-get")
}

/// Sets all three values if applications busy-poll, otherwise none.
fn set_suspension(context: &Context<'_>, _: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for nic in judged_nics(context) {
        for instance in half_suspended(context, nic) {
            for (field, name, value) in SUSPENDED {
                let wanted = if context.role.is_busy_polling { value } else { "0" };
                let is_so = is_on(instance, field) == context.role.is_busy_polling;
                if is_so || instance.value(field).is_none() {
                    continue;
                }
                proposal = with_value(proposal, nic, instance, (field, name), wanted);
            }
        }
    }
    proposal
}

fn threaded(context: &Context<'_>, _: &Setting) -> Judgement {
    let judge = |mode: &u64| match mode {
        0 => One::Good("0".into()),
        mode => One::Wrong(mode.to_string(), "threads poll the NIC".into()),
    };
    each_nic(context, |nic| {
        One::of(&nic_file(context, nic, "threaded"), "this kernel has no such file", judge)
    })
    .at("/sys/class/net/*/threaded")
}
