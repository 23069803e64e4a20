//! Connections to systemd.

use super::{SystemdError, own_socket};
use crate::dbus::{self, Kind};
use std::{fmt, path::Path, sync::Arc, time::Duration};
use zbus::{
    Connection, Message,
    connection::Builder,
    wire::{self, OwnedObjectPath},
};

pub(super) const SERVICE: &str = "org.freedesktop.systemd1";
pub(super) const OBJECT: &str = "/org/freedesktop/systemd1";
pub(super) const MANAGER: &str = "org.freedesktop.systemd1.Manager";
/// systemd's own socket, for root.
const PRIVATE: &str = "/run/systemd/private";
/// The units of the system bus.
pub(super) const BUS_UNITS: [&str; 5] =
    ["dbus.service", "dbus.socket", "dbus-broker.service", "dbus-daemon.service", "messagebus.service"];

/// One unit of a list: name, description, load state, active state, sub state, followed unit, object, and the queued
/// job's number, type and object.
pub(crate) type UnitRow =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// One way to connect to systemd: its name, and the connection builder.
pub(super) type Way = (String, zbus::Result<Builder<'static>>);

/// The ways to connect to systemd, the best one first.
#[derive(Clone)]
pub(super) struct Ways {
    /// True if systemd's own socket is among them.
    has_own_socket: bool,
    ways: Arc<dyn Fn() -> Vec<Way> + Send + Sync>,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways").field("has_own_socket", &self.has_own_socket).finish_non_exhaustive()
    }
}

impl Ways {
    pub(super) fn live() -> Self {
        let own_socket = || {
            let stream = own_socket::connect(PRIVATE).map_err(|error| zbus::Error::InputOutput(error.into()));
            (PRIVATE.to_owned(), stream.map(|stream| Builder::unix_stream(stream).p2p()))
        };
        let bus = || ("the system bus".to_owned(), Ok(Builder::system()));
        if rustix::process::geteuid().is_root() {
            Self { has_own_socket: true, ways: Arc::new(move || vec![own_socket(), bus()]) }
        } else {
            Self::new(move || vec![bus()])
        }
    }

    pub(super) fn new(ways: impl Fn() -> Vec<Way> + Send + Sync + 'static) -> Self {
        Self { has_own_socket: false, ways: Arc::new(ways) }
    }

    /// Connects in the first way that works.
    pub(super) async fn connect(&self, patience: Duration) -> Result<Connection, SystemdError> {
        let mut tried = Vec::new();
        let mut denied = None;
        for (name, builder) in (self.ways)() {
            let connection = match builder {
                Ok(builder) => builder.method_timeout(patience).build().await,
                Err(error) => Err(error),
            };
            match connection {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    if dbus::kind(&error) == Kind::Denied {
                        denied = Some(format!("{name}: {error}"));
                    }
                    tried.push(format!("{name}: {error}"));
                }
            }
        }
        match denied {
            Some(said) => Err(SystemdError::Denied { doing: "ask".to_owned(), said }),
            None => Err(SystemdError::Absent { tried: tried.join("; ") }),
        }
    }

    /// Rejects stopping the bus if it is the only way.
    pub(super) fn keep_the_bus(&self, unit: &str) -> Result<(), SystemdError> {
        if !BUS_UNITS.contains(&unit) {
            return Ok(());
        }
        let why = match (self.has_own_socket, Path::new(PRIVATE).try_exists()) {
            (true, Ok(true)) => return Ok(()),
            (true, Ok(false)) => format!("{PRIVATE} does not exist"),
            (true, Err(error)) => format!("{PRIVATE}: {error}"),
            (false, _) => format!("only root may use {PRIVATE}"),
        };
        Err(SystemdError::CutsTheWay { unit: unit.to_owned(), why })
    }
}

/// Calls a method of the manager.
pub(crate) async fn call<B>(connection: &Connection, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + wire::DynamicType,
{
    connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), method, body).await
}
