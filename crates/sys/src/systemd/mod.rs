//! systemd's manager (org.freedesktop.systemd1(5)): what a unit is, and starting, stopping, enabling it.
//!
//! As root it is reached over systemd's own socket, as systemctl does, so that it answers while the system's bus is
//! down, and goes on answering when a plan stops the bus. Everybody else goes over the bus.

mod connection;
mod error;
mod jobs;
mod own_socket;
#[cfg(test)]
mod tests;
mod unit;

pub use error::SystemdError;
pub use unit::Unit;

#[cfg(test)]
use connection::OBJECT;
use connection::Ways;
use std::time::Duration;
use zbus::Connection;

/// What looking at a unit may take.
const LOOK: Duration = Duration::from_secs(15);
/// What a change may take. systemd gives a service 90 seconds to stop, and then as long again to be killed.
const CHANGE: Duration = Duration::from_secs(240);

/// The way to systemd. Each call is a connection of its own, so none is lost to a call that hung.
#[derive(Debug)]
pub struct Systemd {
    ways: Ways,
}

impl Systemd {
    /// That of the running host. Nothing is asked before the first call.
    pub fn live() -> Self {
        Self { ways: Ways::live() }
    }

    /// What a unit is now, by any of its names; it is loaded for that, and not started. `None` when there is no such
    /// unit.
    pub fn unit(&self, name: &str) -> Result<Option<Unit>, SystemdError> {
        let unit = name.to_owned();
        self.talk(LOOK, format!("look at {name}"), async move |connection| {
            unit::read(&connection, &unit).await
        })
    }

    /// Starts a unit with what it needs, and waits until it is up.
    pub fn start(&self, unit: &str) -> Result<(), SystemdError> {
        self.job("start", "StartUnit", unit, "replace")
    }

    /// Stops a unit, and waits until it is down. Of a target everything that is part of it or needs it stops too, since
    /// a target is nothing else. Of other units only those stop that are bound to it: the rest of what needs it was not
    /// asked for, and stays up.
    pub fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        self.ways.keep_the_bus(unit)?;
        let is_target = unit.rsplit_once('.').is_some_and(|(_, kind)| kind == "target");
        self.job("stop", "StopUnit", unit, if is_target { "replace" } else { "ignore-requirements" })
    }

    /// Starts a unit, or starts it again when it is up, and waits until it is.
    pub fn restart(&self, unit: &str) -> Result<(), SystemdError> {
        self.job("restart", "RestartUnit", unit, "replace")
    }

    /// Restarts a unit if it is up; does nothing when it is down or not there.
    pub fn try_restart(&self, unit: &str) -> Result<(), SystemdError> {
        match self.unit(unit)? {
            Some(found) if found.is_up() => self.job("restart", "TryRestartUnit", &found.id, "replace"),
            _ => Ok(()),
        }
    }

    /// Makes the links by which a unit is started at boot, as its file asks for.
    pub fn enable(&self, unit: &str) -> Result<(), SystemdError> {
        let name = unit.to_owned();
        self.talk(CHANGE, format!("enable {unit}"), async move |connection| {
            // Not until the next boot only, and no link of somebody else's is replaced.
            let body = (vec![name.as_str()], false, false);
            connection::call(&connection, "EnableUnitFiles", &body).await.map(|_| ())
        })
    }

    /// Has systemd read all unit files and links again.
    pub fn daemon_reload(&self) -> Result<(), SystemdError> {
        self.talk(CHANGE, "reload unit files".to_owned(), async |connection| {
            connection::call(&connection, "Reload", &()).await.map(|_| ())
        })
    }

    fn job(
        &self,
        doing: &'static str,
        method: &'static str,
        unit: &str,
        mode: &'static str,
    ) -> Result<(), SystemdError> {
        let name = unit.to_owned();
        let end = self.talk(CHANGE, format!("{doing} {unit}"), async move |connection| {
            jobs::run(&connection, method, &name, mode).await
        })?;
        if end.is_good() {
            return Ok(());
        }
        let unit = unit.to_owned();
        let state = self.unit(&unit).ok().flatten().map(|unit| format!("{} ({})", unit.active, unit.sub));
        Err(SystemdError::Job { doing, unit, result: end.result, state: state.unwrap_or_default() })
    }

    /// Has a conversation on a new connection.
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
        match heard {
            Ok(answer) => answer,
            Err(unheard) => Err(SystemdError::Unheard { doing, why: unheard.to_string() }),
        }
    }
}
