use crate::dbus::{self, Kind};
use std::fmt;
use thiserror::Error;

/// Why systemd did not do something. Every text names what was asked and what to do.
#[derive(Debug, Error)]
pub enum SystemdError {
    /// Nobody answers as systemd.
    #[error(
        "there is no systemd to ask ({tried}); expected it to manage this host's services, which it does not in most \
         containers: leave services out of the plan, or run lowlat on the host itself"
    )]
    Absent {
        /// Which ways were tried, with what the system said.
        tried: String,
    },
    /// This user may not.
    #[error("systemd does not let this user {doing}: {said}; run as root")]
    Denied {
        /// What was asked.
        doing: String,
        /// What it said.
        said: String,
    },
    /// No answer came.
    #[error("systemd was asked to {doing}: {why}; look at it with systemctl list-jobs, then try again")]
    Unheard {
        /// What was asked.
        doing: String,
        /// Why nothing was heard.
        why: String,
    },
    /// systemd said no.
    #[error("systemd did not {doing}: {said}")]
    Refused {
        /// What was asked.
        doing: String,
        /// What it said, with the name of its error.
        said: String,
    },
    /// It tried, and failed.
    #[error(
        "systemd could not {doing} {unit}: its job ended with {result:?}, expected \"done\"{}; read \
         journalctl -u {unit}", now(.state)
    )]
    Job {
        /// "start", "stop", "restart".
        doing: &'static str,
        /// The unit.
        unit: String,
        /// How the job ended, as systemd calls it: "failed", "timeout", "dependency".
        result: String,
        /// What the unit is now; empty when that could not be read.
        state: String,
    },
    /// It would cut the only way to systemd.
    #[error(
        "{unit} is the bus over which lowlat talks to systemd ({why}), so stopping it would leave no way to start it \
         again; run as root on the host, or leave it out of the plan"
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
