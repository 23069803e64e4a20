//! The state of a unit.

use super::connection::{self, BUS_UNITS, MANAGER, SERVICE, UnitRow};
use std::{
    collections::{BTreeSet, HashMap},
    future::poll_fn,
    pin::pin,
};
use zbus::{
    Connection, MatchRule, MessageStream,
    export::futures_core::Stream,
    message::Type,
    wire::{OwnedObjectPath, OwnedVariant},
};

/// Maximum number of units inspected because they stop with another one.
const DEPENDENTS_MAX: usize = 64;

/// Maximum number of services whose name on the bus is read; a large host runs a few hundred.
const SERVICES_MAX: usize = 1_000;

/// A unit as systemd reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unit {
    /// Its primary name, which may differ from the requested one ("chronyd.service" for "chrony.service").
    pub id: String,
    /// LoadState: "loaded", "masked", "error", "bad-setting".
    pub load: String,
    /// ActiveState: "active", "inactive", "failed", "activating", ...
    pub active: String,
    /// SubState: "running", "exited", "dead", ...
    pub sub: String,
    /// Start at boot: "enabled", "disabled", "static", "masked", ... `None` for units without a file, and if systemd
    /// cannot report it.
    pub enablement: Option<String>,
    /// Units that are up and stop when this one is stopped. For the system bus these are all running services
    /// with a name on it: many exit when they lose it, and nothing starts them again.
    pub stops_with_it: Vec<String>,
}

impl Unit {
    /// True if it is running or about to run.
    pub fn is_up(&self) -> bool {
        is_up(&self.active)
    }
}

fn is_up(active: &str) -> bool {
    matches!(active, "active" | "activating" | "reloading" | "refreshing")
}

type Properties = HashMap<String, OwnedVariant>;

pub(super) async fn read(connection: &Connection, name: &str) -> zbus::Result<Option<Unit>> {
    let properties = properties(connection, "LoadUnit", name).await?;
    let text = |name: &str| text(&properties, name);
    let load = text("LoadState");
    if load == "not-found" {
        return Ok(None);
    }
    let id = text("Id");
    let enablement = enablement(connection, &id).await?;
    let mut stops_with_it = stop_with(connection, &id, &properties).await?;
    if BUS_UNITS.contains(&id.as_str()) {
        stops_with_it.extend(on_the_bus(connection).await?);
    }
    Ok(Some(Unit { load, active: text("ActiveState"), sub: text("SubState"), enablement, stops_with_it, id }))
}

/// All properties of a unit, found through `method` by its name.
async fn properties(connection: &Connection, method: &str, name: &str) -> zbus::Result<Properties> {
    let object: OwnedObjectPath = connection::call(connection, method, &name).await?.body().deserialize()?;
    let interface = Some("org.freedesktop.DBus.Properties");
    let body = "org.freedesktop.systemd1.Unit";
    let answer = connection.call_method(Some(SERVICE), &object, interface, "GetAll", &body).await?;
    answer.body().deserialize()
}

fn text(properties: &Properties, name: &str) -> String {
    let value = properties.get(name).and_then(|value| <&str>::try_from(value).ok());
    value.unwrap_or_default().to_owned()
}

fn list(properties: &Properties, name: &str) -> Vec<String> {
    let value = properties.get(name).and_then(|value| value.try_clone().ok());
    value.and_then(|value| Vec::<String>::try_from(value).ok()).unwrap_or_default()
}

/// Queried again, because the unit's own property is from the time when it was loaded.
async fn enablement(connection: &Connection, unit: &str) -> zbus::Result<Option<String>> {
    match connection::call(connection, "GetUnitFileState", &unit).await {
        Ok(answer) => {
            answer.body().deserialize().map(|state: String| Some(state).filter(|state| !state.is_empty()))
        }
        // It has no file, or one that systemd cannot read.
        Err(zbus::Error::MethodError(..) | zbus::Error::FDO(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Units that are up and stop with this one when it is stopped.
async fn stop_with(
    connection: &Connection,
    unit: &str,
    properties: &Properties,
) -> zbus::Result<Vec<String>> {
    let is_target = unit.rsplit_once('.').is_some_and(|(_, kind)| kind == "target");
    let relations: &[&str] = if is_target {
        &["BoundBy", "RequiredBy", "RequisiteOf", "ConsistsOf", "PropagatesStopTo"]
    } else {
        &["BoundBy"]
    };
    let names: BTreeSet<String> = relations.iter().flat_map(|relation| list(properties, relation)).collect();
    let mut up = Vec::new();
    for name in names.into_iter().take(DEPENDENTS_MAX) {
        let found = self::properties(connection, "LoadUnit", &name).await?;
        if is_up(&text(&found, "ActiveState")) {
            up.push(name);
        }
    }
    Ok(up)
}

/// Running services with a name on the bus.
async fn on_the_bus(connection: &Connection) -> zbus::Result<Vec<String>> {
    let patterns = (vec!["active"], vec!["*.service"]);
    let answer = connection::call(connection, "ListUnitsByPatterns", &patterns).await?;
    let rows: Vec<UnitRow> = answer.body().deserialize()?;
    let mut found = Vec::new();
    for (name, .., object, _, _, _) in rows.into_iter().take(SERVICES_MAX) {
        let interface = Some("org.freedesktop.DBus.Properties");
        let property = ("org.freedesktop.systemd1.Service", "BusName");
        let answer = connection.call_method(Some(SERVICE), &object, interface, "Get", &property).await;
        // It may have ended in the meantime.
        let Ok(answer) = answer else { continue };
        let value: OwnedVariant = answer.body().deserialize()?;
        if <&str>::try_from(&value).is_ok_and(|bus_name| !bus_name.is_empty()) {
            found.push(name);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Maximum number of unread job results; those of other clients arrive too.
const WAITING_MAX: usize = 4_096;

/// Calls `method` for a unit, and waits for the end of its job; returns the result of the job.
pub(super) async fn run(
    connection: &Connection,
    method: &str,
    unit: &str,
    mode: &str,
) -> zbus::Result<String> {
    // Otherwise systemd sends no signals over the bus.
    connection::call(connection, "Subscribe", &()).await?;
    let rule = MatchRule::builder().msg_type(Type::Signal).interface(MANAGER).member("JobRemoved").build()?;
    // Before the call, because the job may have ended when the call returns.
    let ends = MessageStream::for_match_rule(rule, connection, WAITING_MAX.try_into().ok()).await?;
    let job: OwnedObjectPath =
        connection::call(connection, method, &(unit, mode)).await?.body().deserialize()?;
    let mut ends = pin!(ends);
    loop {
        let Some(message) = poll_fn(|context| ends.as_mut().poll_next(context)).await else {
            let why = "the connection ended before the job did";
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why).into());
        };
        let message = message?;
        let (_, ended, _, result): (u32, OwnedObjectPath, String, String) = message.body().deserialize()?;
        if ended == job {
            return Ok(result);
        }
    }
}
