//! systemd's own answer over D-Bus: every loaded unit and every unit file (org.freedesktop.systemd1(5)).
//!
//! The first list is in systemd's memory and arrives at once. For the second it reads every unit file of the
//! host, which has taken ten seconds on a slow or busy one. If it does not arrive in time, enablement is read
//! from the files.

use super::{
    is_of_interest, template_of,
    unit_files::{self, UnitFiles},
};
use crate::{
    Root,
    dbus::{self, Kind},
    snapshot::formats,
    systemd::connection::{UnitRow, call},
};
use lowlat_host::{Reading, snapshot::Service};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};
use zbus::connection::Builder;

/// Time limit of all calls together; a host whose bus hangs is read from its files.
const CONVERSATION: Duration = Duration::from_secs(15);
/// Time limit of one call.
const CALL: Duration = Duration::from_secs(10);
/// Maximum number of entries kept of either list; a large host has about a thousand.
const ENTRIES_MAX: usize = 20_000;
const INTERFACE: &str = "systemd-units";

/// systemd's answer, in the format that captures keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct UnitListing {
    loaded: Vec<LoadedUnit>,
    /// `None` if systemd did not list them in time.
    files: Option<Vec<ListedUnitFile>>,
}

/// A unit that systemd has in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LoadedUnit {
    name: String,
    load: String,
    active: String,
    sub: String,
}

/// A unit file and its enablement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ListedUnitFile {
    path: String,
    state: String,
    /// The unit that this file links to, if its name differs ("chrony.service" for "chronyd.service").
    alias_of: Option<String>,
}

/// The units with their states, from the live host or a capture.
pub(super) fn units(root: &Root) -> Reading<BTreeMap<String, Service>> {
    let bytes = root.interface(INTERFACE, || {
        let listing = ask(Builder::system(), CONVERSATION).map(|listing| with_aliases(root, listing));
        listing.map(|listing| serde_json::to_vec(&listing).unwrap_or_default())
    });
    let listing = bytes.and_then(|bytes| formats::from_json(&bytes, INTERFACE, "units as JSON"));
    listing.map(|UnitListing { loaded, files }| {
        let on_disk = files.map(|files| listed(&loaded, &files)).or_else(|| unit_files::read(root));
        with_states(on_disk.unwrap_or_default(), &loaded)
    })
}

fn ask(builder: Builder<'static>, patience: Duration) -> Reading<UnitListing> {
    let failed = |why: &str| Reading::unparsable("systemd over D-Bus", why, "lists of units");
    match dbus::within(patience, "systemd-units", move || zbus::block_on(converse(builder))) {
        Ok(Ok(listing)) => Reading::Known(listing),
        Ok(Err(error)) => match dbus::kind(&error) {
            Kind::Absent => Reading::Absent,
            Kind::Denied => Reading::Denied,
            Kind::Other => failed(&error.to_string()),
        },
        Err(unheard) => failed(&unheard.to_string()),
    }
}

async fn converse(builder: Builder<'static>) -> zbus::Result<UnitListing> {
    let connection = builder.method_timeout(CALL).build().await?;
    let rows: Vec<UnitRow> = call(&connection, "ListUnits", &()).await?.body().deserialize()?;
    let files: Option<Vec<(String, String)>> = match call(&connection, "ListUnitFiles", &()).await {
        Ok(answer) => Some(answer.body().deserialize()?),
        // On any error: current states are worth more than both lists from the same source.
        Err(_) => None,
    };
    let loaded = |(name, _, load, active, sub, ..): UnitRow| LoadedUnit { name, load, active, sub };
    let file = |(path, state)| ListedUnitFile { path, state, alias_of: None };
    let is_kept = |loaded: &LoadedUnit| is_of_interest(&loaded.name);
    Ok(UnitListing {
        loaded: rows.into_iter().map(loaded).filter(is_kept).take(ENTRIES_MAX).collect(),
        files: files.map(|files| files.into_iter().map(file).take(ENTRIES_MAX).collect()),
    })
}

/// Notes which files are links to another unit's file; systemd lists states only under the unit's primary
/// name.
fn with_aliases(root: &Root, mut listing: UnitListing) -> UnitListing {
    for file in listing.files.iter_mut().flatten() {
        let target = root.real_path(&file.path).into_known();
        let target = target.as_deref().map(base_name).filter(|target| is_of_interest(target));
        file.alias_of = target.filter(|target| *target != base_name(&file.path)).map(str::to_owned);
    }
    listing
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Units as in their files, with the states from systemd. A unit that systemd has not loaded is inactive by
/// definition.
fn with_states(files: UnitFiles, loaded: &[LoadedUnit]) -> BTreeMap<String, Service> {
    let UnitFiles { mut units, aliases } = files;
    for service in units.values_mut() {
        (service.active, service.sub) = (Reading::Known("inactive".into()), Reading::Known("dead".into()));
    }
    for unit in existing(loaded) {
        let service = units.entry(unit.name.clone()).or_default();
        (service.active, service.sub) =
            (Reading::Known(unit.active.clone()), Reading::Known(unit.sub.clone()));
    }
    // systemd lists a unit only under its primary name.
    for (name, target) in aliases {
        if let Some(service) = units.get(&target).cloned() {
            units.insert(name, service);
        }
    }
    units
}

/// "not-found" units are only referenced by others; they do not exist.
fn existing(loaded: &[LoadedUnit]) -> impl Iterator<Item = &LoadedUnit> {
    loaded.iter().filter(|unit| unit.load != "not-found" && is_of_interest(&unit.name))
}

/// Units as systemd lists their files; a loaded unit without a file has its template's enablement.
fn listed(loaded: &[LoadedUnit], files: &[ListedUnitFile]) -> UnitFiles {
    let states: BTreeMap<&str, &str> =
        files.iter().map(|file| (base_name(&file.path), file.state.as_str())).collect();
    let service = |unit: &str| {
        let template = template_of(unit).and_then(|template| states.get(template.as_str()).copied());
        let state = states.get(unit).copied().or(template).map(str::to_owned);
        (unit.to_owned(), Service { enablement: Reading::from_option(state), ..Service::default() })
    };
    let own = files.iter().filter(|file| file.alias_of.is_none()).map(|file| base_name(&file.path));
    let in_memory = existing(loaded).map(|unit| unit.name.as_str());
    let alias = |file: &ListedUnitFile| Some((base_name(&file.path).to_owned(), file.alias_of.clone()?));
    UnitFiles {
        units: own.filter(|unit| is_of_interest(unit)).chain(in_memory).map(service).collect(),
        aliases: files.iter().filter_map(alias).collect(),
    }
}

#[cfg(test)]
mod tests;
