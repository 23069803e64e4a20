use crate::dbus::{self, Kind};
use std::fmt;
use thiserror::Error;

/// Error of a request to systemd. Every message names the request and what to do.
#[derive(Debug, Error)]
pub enum SystemdError {
    /// systemd is not running, or not reachable.
    /// - `tried`: the attempted ways, with the system's errors.
    #[error(
        "cannot reach systemd ({tried}): lowlat needs it to manage this host's services, and most containers \
         have none; leave services out of the plan, or run lowlat on the host itself"
    )]
    Absent { tried: String },
    /// This user has no permission.
    #[error("systemd denied this user the request to {doing}: {said}; run as root")]
    Denied { doing: String, said: String },
    /// No answer arrived from systemd.
    #[error(
        "no answer from systemd to the request to {doing}: {why}; check with systemctl list-jobs, then \
             try again"
    )]
    Unheard { doing: String, why: String },
    /// `said`: the error text, with the name of the error.
    #[error("systemd refused to {doing}: {said}")]
    Refused { doing: String, said: String },
    /// systemd's job for the unit failed.
    /// - `doing`: the job: "start", "stop", "restart".
    /// - `result`: result of the job in systemd's terms: "failed", "timeout", "dependency".
    /// - `state`: current state of the unit; empty if it could not be read.
    #[error(
        "systemd could not {doing} {unit}: its job ended with {result:?}, expected \"done\"{}; read \
         journalctl -u {unit}", now(.state)
    )]
    Job { doing: &'static str, unit: String, result: String, state: String },
    /// The request would close the only connection to systemd.
    #[error(
        "{unit} is the bus that lowlat uses to reach systemd ({why}), so lowlat could not start it again \
         after stopping it; run as root on the host, or leave it out of the plan"
    )]
    CutsTheWay { unit: String, why: String },
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
