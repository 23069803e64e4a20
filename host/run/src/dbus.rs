//! D-Bus calls with a time limit.

use std::{io, sync::mpsc, thread, time::Duration};
use thiserror::Error;
use zbus::fdo::Error as Fdo;

/// Reason why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum Unheard {
    /// The thread for the call could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The time limit was exceeded.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
}

/// Runs a call on a separate thread, so that a bus that accepts the connection but never answers cannot block
/// the caller. Such a thread stays behind, waiting on its socket, until the process ends.
pub(crate) fn within<T: Send + 'static>(
    patience: Duration,
    name: &str,
    conversation: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unheard> {
    let (sender, receiver) = mpsc::channel();
    let talk = move || {
        // After the time limit there is no receiver.
        let _ = sender.send(conversation());
    };
    thread::Builder::new().name(name.to_owned()).spawn(talk).map_err(Unheard::Thread)?;
    receiver.recv_timeout(patience).map_err(|_| Unheard::Silent(patience))
}

/// Kind of failure of an error from the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The service is not running.
    Absent,
    /// This user has no permission.
    Denied,
    Other,
}

pub(crate) fn kind(error: &zbus::Error) -> Kind {
    use io::ErrorKind;
    use zbus::Error;
    match error {
        Error::InputOutput(error) | Error::Connection(error, _) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Kind::Absent,
            ErrorKind::PermissionDenied => Kind::Denied,
            _ => Kind::Other,
        },
        Error::FDO(error) => match **error {
            Fdo::ServiceUnknown(_) | Fdo::NameHasNoOwner(_) => Kind::Absent,
            Fdo::AccessDenied(_) | Fdo::AuthFailed(_) | Fdo::InteractiveAuthorizationRequired(_) => {
                Kind::Denied
            }
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}
