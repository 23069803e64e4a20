//! Talking over D-Bus within a time.

use std::{io, sync::mpsc, thread, time::Duration};
use thiserror::Error;
use zbus::fdo::Error as Fdo;

/// Why nothing was heard.
#[derive(Debug, Error)]
pub(crate) enum Unheard {
    /// No thread for the conversation could be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The time was over.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
}

/// Runs a conversation on a thread of its own, so that a bus which accepts and then says nothing cannot hold the
/// caller. Such a thread is left behind, waiting on its socket, until the process ends.
pub(crate) fn within<T: Send + 'static>(
    patience: Duration,
    name: &str,
    conversation: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unheard> {
    let (sender, receiver) = mpsc::channel();
    let talk = move || {
        // Nobody listens any more when the time is over.
        let _ = sender.send(conversation());
    };
    thread::Builder::new().name(name.to_owned()).spawn(talk).map_err(Unheard::Thread)?;
    receiver.recv_timeout(patience).map_err(|_| Unheard::Silent(patience))
}

/// What kind of failure an error of the bus is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nobody is there to answer.
    Absent,
    /// This user may not ask.
    Denied,
    /// Anything else.
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
