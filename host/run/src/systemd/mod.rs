//! systemd's manager (org.freedesktop.systemd1(5)): reads the state of units, and starts, stops and enables
//! them.
//!
//! Root connects to systemd's own socket, as systemctl does. It works while the system bus is down, and after
//! a plan has stopped the bus. Other users connect over the bus.

pub(crate) mod connection;
mod error;
mod own_socket;
#[cfg(test)]
mod tests;
mod unit;

pub use error::SystemdError;
pub use unit::Unit;

#[cfg(test)]
use connection::OBJECT;
use connection::Ways;
use std::{fmt, time::Duration};
use zbus::Connection;

/// Time limit for reading a unit. systemd answers nothing while it loads its units again, which takes a busy host
/// longer than the 25 seconds that D-Bus usually allows.
const LOOK: Duration = Duration::from_secs(60);
/// Time limit for a change. systemd gives a service 90 seconds to stop, and the same time again to be killed.
const CHANGE: Duration = Duration::from_secs(240);

/// A client of systemd. Each call opens a new connection, so that a hung call does not affect others.
#[derive(Debug)]
pub struct Systemd {
    ways: Ways,
}

/// The manager of services; tests have their own.
pub trait ServiceManager: fmt::Debug + Send {
    /// Returns the state of a unit by any of its names. systemd loads the unit for this but does not start
    /// it. `None` if it does not exist.
    fn unit(&self, name: &str) -> Result<Option<Unit>, SystemdError>;

    /// Starts a unit and what it needs, and waits until it is up.
    fn start(&self, unit: &str) -> Result<(), SystemdError>;

    /// Stops a unit, and waits until it is down. For a target, everything that is part of it or needs it also
    /// stops, because a target is nothing else. For other units, only those bound to it also stop; other
    /// units that need it stay up.
    fn stop(&self, unit: &str) -> Result<(), SystemdError>;

    /// Creates the links that start a unit at boot, as its file specifies.
    fn enable(&self, unit: &str) -> Result<(), SystemdError>;

    /// Makes systemd read all unit files and links again.
    fn daemon_reload(&self) -> Result<(), SystemdError>;

    /// True if it manages the running host, so that only a writer to the running host may be used with it.
    fn is_live(&self) -> bool;
}

impl ServiceManager for Systemd {
    fn unit(&self, name: &str) -> Result<Option<Unit>, SystemdError> {
        let unit = name.to_owned();
        self.talk(LOOK, format!("read the state of {name}"), async move |connection| {
            unit::read(&connection, &unit).await
        })
    }

    fn start(&self, unit: &str) -> Result<(), SystemdError> {
        self.job("start", "StartUnit", unit, "replace")
    }

    fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        self.ways.keep_the_bus(unit)?;
        let is_target = unit.rsplit_once('.').is_some_and(|(_, kind)| kind == "target");
        self.job("stop", "StopUnit", unit, if is_target { "replace" } else { "ignore-requirements" })
    }

    fn enable(&self, unit: &str) -> Result<(), SystemdError> {
        let name = unit.to_owned();
        self.talk(CHANGE, format!("enable {unit}"), async move |connection| {
            // Permanently, not only until the next boot, and without replacing links of other tools.
            let body = (vec![name.as_str()], false, false);
            connection::call(&connection, "EnableUnitFiles", &body).await.map(|_| ())
        })
    }

    fn daemon_reload(&self) -> Result<(), SystemdError> {
        self.talk(CHANGE, "reload unit files".to_owned(), async |connection| {
            connection::call(&connection, "Reload", &()).await.map(|_| ())
        })
    }

    fn is_live(&self) -> bool {
        true
    }
}

impl Systemd {
    /// systemd of the running host. Nothing is sent before the first call.
    pub fn live() -> Self {
        Self { ways: Ways::live() }
    }

    fn job(
        &self,
        doing: &'static str,
        method: &'static str,
        unit: &str,
        mode: &'static str,
    ) -> Result<(), SystemdError> {
        let name = unit.to_owned();
        let result = self.talk(CHANGE, format!("{doing} {unit}"), async move |connection| {
            unit::run(&connection, method, &name, mode).await
        })?;
        // A job that had nothing to do is "skipped".
        if matches!(result.as_str(), "done" | "skipped") {
            return Ok(());
        }
        let unit = unit.to_owned();
        let state = self.unit(&unit).ok().flatten().map(|unit| format!("{} ({})", unit.active, unit.sub));
        Err(SystemdError::Job { doing, unit, result, state: state.unwrap_or_default() })
    }

    /// Runs a call on a new connection.
    fn talk<T, F>(
        &self,
        patience: Duration,
        doing: String,
        talk: impl FnOnce(Connection) -> F + Send + 'static,
    ) -> Result<T, SystemdError>
    where
        T: Send + 'static,
        F: Future<Output = zbus::Result<T>>,
    {
        let ways = self.ways.clone();
        let said = doing.clone();
        let heard = crate::dbus::within(patience, "systemd", move || {
            zbus::block_on(async {
                let connection = ways.connect(patience).await?;
                talk(connection).await.map_err(|error| SystemdError::of_call(&said, &error))
            })
        });
        heard.unwrap_or_else(|unheard| Err(SystemdError::Unheard { doing, why: unheard.to_string() }))
    }
}
