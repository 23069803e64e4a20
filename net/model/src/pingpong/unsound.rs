//! Set-ups whose figures mean something else than they seem to.

use super::{EndFacts, Scenario, Waiting};
use crate::words::words;
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Way of the messages between the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// No network: both ends are in one process.
    Local,
    /// Over a NIC, or over a virtual one.
    Nic,
    /// Over `lo`, as a loopback address asks for.
    LoopbackNamed,
    /// Over `lo`, although the address is that of a NIC: it is one of this host's own.
    LoopbackUnnamed,
}

/// Facts about a set-up, known before it is measured.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    pub scenario: &'a Scenario,
    pub client: &'a EndFacts,
    pub server: &'a EndFacts,
    /// The way of the messages.
    pub route: Route,
    /// True if both ends are on one host.
    pub is_same_host: bool,
}

words! {
    /// One end of a run.
    End {
        Client = "client",
        Server = "server",
    }
}

/// Consequence of an unsound set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The results are marked.
    Marked,
    /// Nothing is measured unless the user insists.
    Refused,
}

/// Something that makes a set-up unsound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unsound {
    /// The messages do not pass a NIC.
    Loopback {
        /// True if the address is that of a NIC.
        is_nic_meant: bool,
    },
    /// Both ends share one CPU.
    SharedCpu {
        cpu: CpuId,
        /// True if both spin on it.
        is_spinning: bool,
    },
    /// There are fewer CPUs than spinning threads.
    TooFewCpus {
        /// CPUs that both ends may use.
        cpus: u32,
    },
    /// LD_PRELOAD names a library that the process has not loaded.
    PreloadIgnored { end: End, library: String },
    /// The library is loaded, but the kernel carries the socket.
    NotAccelerated { end: End, library: String },
    /// An end sleeps while it waits, and its CPU may enter idle states.
    IdleStates { end: End },
    /// A mode polls the queue of a NIC, but the socket's messages come from none.
    NoQueueToPoll { end: End, waiting: Waiting },
    /// A mode suspends the interrupts of a queue, but the queue's timeout is 0.
    IrqNotSuspended {
        end: End,
        /// The interface of the queue.
        interface: String,
    },
}

impl Unsound {
    pub fn severity(&self) -> Severity {
        match self {
            Self::Loopback { is_nic_meant: true }
            | Self::SharedCpu { is_spinning: true, .. }
            | Self::TooFewCpus { .. } => Severity::Refused,
            _ => Severity::Marked,
        }
    }
}

impl fmt::Display for Unsound {
    /// Describes the problem in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback { is_nic_meant: true } => f.write_str(
                "The server's address is one of this host's own, so messages go over lo and no NIC is measured.",
            ),
            Self::Loopback { is_nic_meant: false } => {
                f.write_str("Messages go over lo: these are times of the kernel's loopback, not of a NIC.")
            }
            Self::SharedCpu { cpu, is_spinning: true } => {
                write!(f, "Both ends spin on CPU {cpu}: each round trip waits for two time slices.")
            }
            Self::SharedCpu { cpu, .. } => write!(
                f,
                "Both ends run on CPU {cpu}: each message is a context switch there, not a wake-up of another CPU."
            ),
            Self::TooFewCpus { cpus } => {
                write!(f, "Two threads spin, but {cpus} CPU is available to them.")
            }
            Self::PreloadIgnored { end, library } => {
                write!(f, "The {end} ignores LD_PRELOAD={library}: the library is not loaded.")
            }
            Self::NotAccelerated { end, library } => {
                write!(f, "The {end} has loaded {library}, but the kernel carries its socket.")
            }
            Self::IdleStates { end } => {
                write!(f, "The {end}'s CPU may enter idle states while it waits, and leaving one takes time.")
            }
            Self::NoQueueToPoll { end, waiting } => write!(
                f,
                "The {end}'s messages come from no queue that can be polled (NAPI id 0), so {waiting} has no effect there."
            ),
            Self::IrqNotSuspended { end, interface } => write!(
                f,
                "The {end}'s queue never suspends its interrupts, because its irq-suspend-timeout is 0; set it there with \
                 `lowlat net prepare {interface} --for-busy-polling`."
            ),
        }
    }
}

/// Returns everything that makes a set-up unsound, the worst first.
pub fn judge(setup: &Setup<'_>) -> Vec<Unsound> {
    let mut found = Vec::new();
    match setup.route {
        Route::LoopbackNamed => found.push(Unsound::Loopback { is_nic_meant: false }),
        Route::LoopbackUnnamed => found.push(Unsound::Loopback { is_nic_meant: true }),
        Route::Local | Route::Nic => {}
    }
    let is_spinning = setup.scenario.waiting.spins();
    if setup.is_same_host {
        let shared = setup.client.cpu.filter(|cpu| setup.server.cpu == Some(*cpu));
        found.extend(shared.map(|cpu| Unsound::SharedCpu { cpu, is_spinning }));
        let cpus = setup.client.cpus_allowed.max(setup.server.cpus_allowed);
        if is_spinning && cpus < 2 {
            found.push(Unsound::TooFewCpus { cpus });
        }
    }
    for (end, facts) in [(End::Client, setup.client), (End::Server, setup.server)] {
        found.extend(judge_end(end, facts, setup));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.severity()));
    found
}

fn judge_end(end: End, facts: &EndFacts, setup: &Setup<'_>) -> Vec<Unsound> {
    let mut found = Vec::new();
    if let Some(preload) = &facts.preload {
        let library = preload.library.clone();
        if !preload.is_loaded {
            found.push(Unsound::PreloadIgnored { end, library });
        } else if preload.is_accelerated == Some(false) {
            found.push(Unsound::NotAccelerated { end, library });
        }
    }
    let waiting = setup.scenario.waiting;
    if !waiting.spins() && !facts.holds_idle {
        found.push(Unsound::IdleStates { end });
    }
    if waiting.polls_queue() && facts.napi_id == Some(0) {
        found.push(Unsound::NoQueueToPoll { end, waiting });
    }
    if let Some(suspend) = facts.irq_suspend.as_ref().filter(|suspend| suspend.timeout_ns == 0) {
        found.push(Unsound::IrqNotSuspended { end, interface: suspend.interface.clone() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pingpong::Preload;

    fn end(cpu: CpuId) -> EndFacts {
        EndFacts { cpu: Some(cpu), cpus_allowed: 2, holds_idle: true, ..EndFacts::default() }
    }

    fn judged(waiting: Waiting, route: Route, client: &EndFacts, server: &EndFacts) -> Vec<Unsound> {
        let scenario = Scenario { waiting, ..Scenario::default() };
        judge(&Setup { scenario: &scenario, client, server, route, is_same_host: true })
    }

    #[test]
    fn a_sound_set_up_has_no_findings() {
        assert_eq!(judged(Waiting::Spin, Route::Nic, &end(0), &end(1)), []);
        assert_eq!(judged(Waiting::Block, Route::Local, &end(0), &end(1)), []);
    }

    #[test]
    fn loopback_is_refused_only_if_a_nic_was_meant() {
        let of = |route| judged(Waiting::Spin, route, &end(0), &end(1))[0].severity();
        assert_eq!(of(Route::LoopbackNamed), Severity::Marked);
        assert_eq!(of(Route::LoopbackUnnamed), Severity::Refused);
    }

    #[test]
    fn two_spinners_need_two_cpus() {
        let shared = |waiting| judged(waiting, Route::Nic, &end(1), &end(1));
        assert_eq!(shared(Waiting::Spin), [Unsound::SharedCpu { cpu: 1, is_spinning: true }]);
        assert_eq!(shared(Waiting::Spin)[0].severity(), Severity::Refused);
        assert_eq!(shared(Waiting::Block)[0].severity(), Severity::Marked);
        let lonely = EndFacts { cpus_allowed: 1, cpu: None, ..end(0) };
        let found = judged(Waiting::Spin, Route::Nic, &lonely, &lonely);
        assert_eq!(found, [Unsound::TooFewCpus { cpus: 1 }]);
    }

    #[test]
    fn shared_cpus_of_two_hosts_are_no_fault() {
        let scenario = Scenario { waiting: Waiting::Spin, ..Scenario::default() };
        let (client, server) = (end(1), end(1));
        let setup = Setup {
            scenario: &scenario,
            client: &client,
            server: &server,
            route: Route::Nic,
            is_same_host: false,
        };
        assert_eq!(judge(&setup), []);
    }

    #[test]
    fn sleeping_ends_are_marked_and_so_are_queues_that_cannot_be_polled() {
        let sleepy = EndFacts { holds_idle: false, napi_id: Some(0), ..end(0) };
        let found =
            judged(Waiting::BusyPoll, Route::Nic, &sleepy, &EndFacts { napi_id: Some(8_193), ..end(1) });
        let end = End::Client;
        assert_eq!(
            found,
            [Unsound::IdleStates { end }, Unsound::NoQueueToPoll { end, waiting: Waiting::BusyPoll }]
        );
    }

    #[test]
    fn a_queue_that_never_suspends_its_interrupts_is_marked() {
        let with = |timeout_ns| EndFacts {
            irq_suspend: Some(crate::pingpong::IrqSuspend { interface: "eth7".into(), timeout_ns }),
            ..end(0)
        };
        let of = |timeout_ns| judged(Waiting::SuspendedIrq, Route::Nic, &end(1), &with(timeout_ns));
        assert_eq!(of(20_000_000), []);
        let found = of(0);
        assert!(matches!(found[..], [Unsound::IrqNotSuspended { end: End::Server, .. }]), "{found:?}");
        assert_eq!(found[0].severity(), Severity::Marked);
        assert!(found[0].to_string().contains("`lowlat net prepare eth7 --for-busy-polling`"));
    }

    #[test]
    fn a_preload_is_proven_not_assumed() {
        let with = |is_loaded, is_accelerated| EndFacts {
            preload: Some(Preload {
                library: "libonload.so".into(),
                is_loaded,
                is_accelerated,
                variables: Vec::new(),
            }),
            ..end(0)
        };
        let of = |is_loaded, is_accelerated| {
            judged(Waiting::Spin, Route::Nic, &with(is_loaded, is_accelerated), &end(1))
        };
        assert!(matches!(of(false, None)[..], [Unsound::PreloadIgnored { .. }]));
        assert!(matches!(of(true, Some(false))[..], [Unsound::NotAccelerated { .. }]));
        assert_eq!((of(true, Some(true)), of(true, None)), (vec![], vec![]));
    }
}
