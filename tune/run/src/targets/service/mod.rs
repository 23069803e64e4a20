//! Services: run state of a systemd unit, and the links that start it at boot.
//!
//! Links in systemd's directories start a unit at boot. They are removed and restored here, not by systemd,
//! which would create links that differ from the distribution's and drop those that an administrator added.
//! So a state includes the links:
//!
//! ```text
//! active, enabled
//! unit chrony.service
//! link /etc/systemd/system/multi-user.target.wants/chrony.service -> /lib/systemd/system/chrony.service (0:0 at 1700000000.123456789)
//! stops with it: chrony-extra.service
//! ```
//!
//! A plan contains the first line only, and only it is compared ([`Comparison::Service`]). `unit` is present
//! if the requested name is an alias, which may vanish with its links. Units that stop with this one are
//! started with it again.
//!
//! Sockets are stopped before their services, in the plan's order, because a listening socket restarts its
//! service. A rollback reverses the order; a service that needs its socket starts it, and the socket's step
//! finds it started.
//!
//! The enablement survives a reboot, and decides the run state after it.

mod links;
mod state;
#[cfg(test)]
mod tests;

use super::{failed, failed_or_refused, is_live_or, refused};
use links::Link;
use lowlat_host_run::systemd::{ServiceManager, Systemd, SystemdError, Unit};
use lowlat_undo::{Comparison, HostError, State, Target, TargetSpec, Writer};
use state::ServiceState;

/// Units of systemd; the name is the unit's.
#[derive(Debug)]
pub struct Services<M = Systemd> {
    manager: M,
}

impl Services {
    pub const KIND: &str = "service";

    pub fn live() -> Self {
        Self { manager: Systemd::live() }
    }

    /// The unit `name` as a target, with its comparison.
    pub fn spec(name: impl Into<String>) -> TargetSpec {
        TargetSpec { kind: Self::KIND.to_owned(), name: name.into(), comparison: Comparison::Service }
    }
}

impl<M: ServiceManager> Services<M> {
    fn check(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        is_live_or(self.manager.is_live(), writer, spec)?;
        if is_unit_name(&spec.name) {
            return Ok(());
        }
        let why =
            "expected the full name of a unit, such as chronyd.service; this plan is wrong, make a new one";
        Err(failed("use as a unit of systemd", &spec.name, why))
    }

    fn unit(&self, name: &str) -> Result<Option<Unit>, HostError> {
        self.manager.unit(name).map_err(|error| of_systemd("read the unit's state", name, &error))
    }

    fn state(&self, writer: &Writer, name: &str) -> Result<Option<ServiceState>, HostError> {
        let Some(unit) = self.unit(name)? else { return Ok(None) };
        let links = links::of_unit(writer, &unit.id)?;
        Ok(Some(ServiceState {
            active: unit.active,
            enablement: unit.enablement.unwrap_or_default(),
            unit: Some(unit.id).filter(|id| id != name),
            links,
            stops_with_it: unit.stops_with_it,
        }))
    }

    /// Replaces the links by those of `to`, and reloads systemd. When links are restored, links that others added since
    /// stay. Only a mask is removed, because nothing starts under it.
    fn set_links(
        &self,
        writer: &Writer,
        unit: &str,
        present: &[Link],
        to: &ServiceState,
    ) -> Result<(), HostError> {
        let wanted: &[Link] = &to.links;
        let mut is_changed = false;
        let goes = |link: &&Link| wanted.is_empty() || link.is_mask();
        let stays = |link: &Link| wanted.iter().any(|wanted| wanted.path == link.path);
        for link in present.iter().filter(goes).filter(|link| !stays(link)) {
            writer.write_file(&link.path, &State::Absent)?;
            is_changed = true;
        }
        for link in wanted.iter().filter(|link| !present.contains(link)) {
            writer.write_file(&link.path, &link.state())?;
            is_changed = true;
        }
        if is_changed {
            return self.reload(unit);
        }
        Ok(())
    }

    fn reload(&self, unit: &str) -> Result<(), HostError> {
        self.manager.daemon_reload().map_err(|error| of_systemd("reload systemd's units", unit, &error))
    }

    /// Changes the links that start the unit at boot.
    fn set_enablement(
        &self,
        writer: &Writer,
        unit: &str,
        present: &ServiceState,
        to: &ServiceState,
    ) -> Result<(), HostError> {
        let is_plain = to.links.is_empty();
        match to.enablement.as_str() {
            // The wanted state does not include enablement.
            "" => return Ok(()),
            same if is_plain && same == present.enablement => return Ok(()),
            // Requested by a plan, not recorded in the log: systemd knows the links' paths.
            "enabled" if is_plain => {
                self.manager.enable(unit).map_err(|error| of_systemd("enable", unit, &error))?;
                self.reload(unit)?;
            }
            "masked" if is_plain => {
                links::mask(writer, unit)?;
                self.reload(unit)?;
            }
            // An enablement other than disabled or enabled ("static", "indirect", "generated") follows from the unit's
            // file. Links do not matter unless one masks it now.
            _ => self.set_links(writer, unit, &present.links, to)?,
        }
        let now = self.unit(unit)?.and_then(|unit| unit.enablement).unwrap_or_default();
        if now == to.enablement || now.is_empty() {
            return Ok(());
        }
        let why = format!(
            "found {now:?}, expected {:?}; check for links to it in /run/systemd/system and /usr/lib/systemd/system",
            to.enablement
        );
        Err(refused("change what starts the unit at boot", unit, why))
    }

    fn set_run_state(&self, unit: &str, to: &ServiceState) -> Result<(), HostError> {
        let is_up = self.unit(unit)?.is_some_and(|unit| unit.is_up());
        if to.is_up() == is_up {
            return Ok(());
        }
        if !to.is_up() {
            return self.manager.stop(unit).map_err(|error| of_systemd("stop", unit, &error));
        }
        self.manager.start(unit).map_err(|error| of_systemd("start", unit, &error))?;
        for other in &to.stops_with_it {
            if self.unit(other)?.is_some_and(|unit| !unit.is_up()) {
                self.manager.start(other).map_err(|error| of_systemd("start again", other, &error))?;
            }
        }
        Ok(())
    }
}

impl<M: ServiceManager> Target for Services<M> {
    fn kind(&self) -> &'static str {
        Services::KIND
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        self.check(writer, spec)?;
        let state = self.state(writer, &spec.name)?;
        Ok(state.map_or(State::Absent, |state| State::Value(state.to_string())))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        self.check(writer, spec)?;
        let text = spec.wanted_value(to)?;
        let to: ServiceState =
            text.parse().map_err(|why: String| failed("set the state", &spec.name, why))?;
        // An alias may be gone with the links of its unit.
        let name = to.unit.as_deref().unwrap_or(&spec.name);
        let Some(present) = self.state(writer, name)? else {
            let why = "the unit no longer exists; install its package again, or leave this step out";
            return Err(refused("set the state", name, why));
        };
        let unit = present.unit.as_deref().unwrap_or(name);
        if to.is_up() {
            // A masked unit cannot be started.
            self.set_enablement(writer, unit, &present, &to)?;
            self.set_run_state(unit, &to)
        } else {
            self.set_run_state(unit, &to)?;
            self.set_enablement(writer, unit, &present, &to)
        }
    }
}

/// Rejections by systemd are refusals; failures to reach it, or missing permission, are not.
pub(super) fn of_systemd(doing: &'static str, name: &str, error: &SystemdError) -> HostError {
    let is_refusal = match error {
        SystemdError::Refused { .. } | SystemdError::Job { .. } | SystemdError::CutsTheWay { .. } => true,
        SystemdError::Absent { .. } | SystemdError::Denied { .. } | SystemdError::Unheard { .. } => false,
    };
    failed_or_refused(is_refusal, doing, name, error)
}

/// Names that systemd accepts (systemd.unit(5)): no path, no blank, a name and a kind.
pub(super) fn is_unit_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '\\' | '@');
    let parts = name.rsplit_once('.');
    name.len() <= 255
        && name.chars().all(is_letter)
        && parts.is_some_and(|(name, kind)| !name.is_empty() && !kind.is_empty())
}
