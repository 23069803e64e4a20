use crate::dbus::{self, Kind};
use std::fmt;
use thiserror::Error;

/// Why systemd did not do something. Every message names the request and what to do.
#[derive(Debug, Error)]
pub enum SystemdError {
    /// Nothing answers as systemd.
    #[error(
        "cannot reach systemd ({tried}): lowlat needs it to manage this host's services, and most containers \
         have none; leave services out of the plan, or run lowlat on the host itself"
    )]
    Absent {
        /// The attempted ways, with the system's errors.
        tried: String,
    },
    /// This user has no permission.
    #[error("systemd denied this user the request to {doing}: {said}; run as root")]
    Denied {
        /// The request.
        doing: String,
        /// The error text.
        said: String,
    },
    /// No answer arrived.
    #[error(
        "no answer from systemd to the request to {doing}: {why}; check with systemctl list-jobs, then \
             try again"
    )]
    Unheard {
        /// The request.
        doing: String,
        /// Why there is no answer.
        why: String,
    },
    /// systemd rejected the request.
    #[error("systemd refused to {doing}: {said}")]
    Refused {
        /// The request.
        doing: String,
        /// The error text, with the name of the error.
        said: String,
    },
    /// systemd tried and failed.
    #[error(
        "systemd could not {doing} {unit}: its job ended with {result:?}, expected \"done\"{}; read \
         journalctl -u {unit}", now(.state)
    )]
    Job {
        /// "start", "stop", "restart".
        doing: &'static str,
        /// The unit.
        unit: String,
        /// Result of the job in systemd's terms: "failed", "timeout", "dependency".
        result: String,
        /// Current state of the unit; empty if it could not be read.
        state: String,
    },
    /// The request would close the only connection to systemd.
    #[error(
        "{unit} is the bus that lowlat uses to reach systemd ({why}), so lowlat could not start it again \
         after stopping it; run as root on the host, or leave it out of the plan"
    )]
    CutsTheWay {
        /// The unit.
        unit: String,
        /// Why there is no other way.
        why: String,
    },
}

fn now(state: &str) -> impl fmt::Display + use<> {
    if state.is_empty() { String::new() } else { format!(", and the unit is now {state}") }
}

impl SystemdError {
    pub(super) fn of_call(doing: &str, error: &zbus::Error) -> Self {
        let (doing, said) = (doing.to_owned(), error.to_string());
        match dbus::kind(error) {
            Kind::Absent => Self::Absent { tried: said },
            Kind::Denied => Self::Denied { doing, said },
            Kind::Other => Self::Refused { doing, said },
        }
    }
}
