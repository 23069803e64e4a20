//! Reaching systemd.

use super::SystemdError;
use crate::dbus::{self, Kind};
use std::{fmt, path::Path, sync::Arc, time::Duration};
use zbus::{Connection, Message, connection::Builder, wire};

pub(super) const SERVICE: &str = "org.freedesktop.systemd1";
pub(super) const OBJECT: &str = "/org/freedesktop/systemd1";
pub(super) const MANAGER: &str = "org.freedesktop.systemd1.Manager";
/// systemd's own socket, for root.
const PRIVATE: &str = "/run/systemd/private";
/// Units that are the system's bus.
const BUS_UNITS: [&str; 5] =
    ["dbus.service", "dbus.socket", "dbus-broker.service", "dbus-daemon.service", "messagebus.service"];

/// One way to reach systemd.
type Way = (&'static str, fn() -> Builder<'static>);

/// The ways to reach systemd, the best one first.
#[derive(Clone)]
pub(super) struct Ways {
    ways: Arc<dyn Fn() -> Vec<(String, Builder<'static>)> + Send + Sync>,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = (self.ways)().into_iter().map(|(name, _)| name).collect();
        f.debug_tuple("Ways").field(&names).finish()
    }
}

impl Ways {
    pub(super) fn live() -> Self {
        const SOCKET: Way = (PRIVATE, || Builder::address("unix:path=/run/systemd/private").p2p());
        const BUS: Way = ("the system bus", Builder::system);
        let is_root = rustix::process::geteuid().is_root();
        Self::new(move || {
            let ways: &[Way] = if is_root { &[SOCKET, BUS] } else { &[BUS] };
            ways.iter().map(|(name, way)| ((*name).to_owned(), way())).collect()
        })
    }

    pub(super) fn new(ways: impl Fn() -> Vec<(String, Builder<'static>)> + Send + Sync + 'static) -> Self {
        Self { ways: Arc::new(ways) }
    }

    /// A connection on the first way that leads there.
    pub(super) async fn connect(&self, patience: Duration) -> Result<Connection, SystemdError> {
        let mut tried = Vec::new();
        let mut denied = None;
        for (name, builder) in (self.ways)() {
            match builder.method_timeout(patience).build().await {
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

    /// Refuses to stop the bus where it is the only way.
    pub(super) fn keep_the_bus(&self, unit: &str) -> Result<(), SystemdError> {
        if !BUS_UNITS.contains(&unit) {
            return Ok(());
        }
        let has_own_socket = (self.ways)().iter().any(|(name, _)| name == PRIVATE);
        let why = match (has_own_socket, Path::new(PRIVATE).try_exists()) {
            (true, Ok(true)) => return Ok(()),
            (true, Ok(false)) => format!("{PRIVATE} is not there"),
            (true, Err(error)) => format!("{PRIVATE}: {error}"),
            (false, _) => format!("{PRIVATE} is for root"),
        };
        Err(SystemdError::CutsTheWay { unit: unit.to_owned(), why })
    }
}

/// Calls a method of the manager.
pub(super) async fn call<B>(connection: &Connection, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + wire::DynamicType,
{
    connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), method, body).await
}
