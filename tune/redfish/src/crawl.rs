//! From the service root to the answers that an audit needs, following links only.

use crate::{
    Client, RedfishError,
    address::{ROOT, cut},
    answer::{Answer, link},
    error::Kind,
};
use lowlat_bios::{BiosError, BiosFacts, BiosReader};
use serde_json::Value;

/// The kind of resource of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The server's ComputerSystem resource.
    System,
    /// The settings in force.
    Bios,
    Settings,
    /// The registry: accepted values and dependencies.
    Registry,
}

impl Resource {
    /// Name of the file that stores it.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::System => "system.json",
            Self::Bios => "bios.json",
            Self::Settings => "settings.json",
            Self::Registry => "registry.json",
        }
    }
}

/// The raw answers of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// Each resource with its path and bytes.
    pub answers: Vec<(Resource, String, Vec<u8>)>,
    pub warnings: Vec<String>,
    /// Version (ETag) of the settings resource, if the service has one.
    pub(crate) settings_etag: Option<String>,
    /// Path of the Bios resource, if it accepts changes itself.
    writable_bios: Option<String>,
}

impl Saved {
    /// Interprets the answers as facts.
    pub fn facts(&self) -> Result<BiosFacts, BiosError> {
        let mut reader = BiosReader::default();
        for (resource, path, bytes) in &self.answers {
            match resource {
                Resource::Registry => reader.add_registry(path, bytes),
                Resource::Settings => reader.add_settings(path, bytes),
                Resource::System | Resource::Bios => reader.add(path, bytes)?,
            }
        }
        let mut facts = reader.finish()?;
        facts.warnings.splice(0..0, self.warnings.iter().cloned());
        if !self.answers.iter().any(|(resource, ..)| *resource == Resource::Settings) {
            facts.settings_uri = self.writable_bios.clone().or(facts.settings_uri);
        }
        Ok(facts)
    }

    fn keep(&mut self, resource: Resource, answer: Answer) {
        self.answers.push((resource, answer.path, answer.body));
    }
}

/// Reads one server. `wanted` is the id of its system, needed if there are several.
pub fn read(client: &mut Client, wanted: Option<&str>) -> Result<Saved, RedfishError> {
    let mut saved = Saved::default();
    let system_path = system_path(client, wanted)?;
    let answer = client.get(&system_path)?;
    let system = answer.json()?;
    // Without it the server is unknown, which the audit shows.
    if BiosReader::default().add(&answer.path, &answer.body).is_ok() {
        saved.keep(Resource::System, answer);
    }
    let (bios_path, bios) = bios(client, &mut saved, &system, &system_path)?;
    settings(client, &mut saved, &bios, &bios_path)?;
    if let Some(name) = bios.get("AttributeRegistry").and_then(Value::as_str) {
        // Without it the audit shows less, and warns.
        match registry(client, name) {
            Ok(Some(answer)) => saved.keep(Resource::Registry, answer),
            Ok(None) => saved.warnings.push(format!("The service has no registry {:?}.", cut(name, 100))),
            Err(error) if !matches!(error.kind, Kind::Interrupted | Kind::NoAnswer | Kind::TimedOut) => {
                saved
                    .warnings
                    .push(format!("The attribute registry could not be read: {}.", error.without_hint()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(saved)
}

/// Paths of a collection's members, from all its pages.
fn members(client: &mut Client, first: &str) -> Result<Vec<String>, RedfishError> {
    let limit = client.options.limits.members_max;
    let mut paths = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(page) = next.take() {
        let body = client.get(&page)?.json()?;
        let shape = || RedfishError::shape(&page, "Members");
        let members = body.get("Members").and_then(Value::as_array).ok_or_else(shape)?;
        for member in members.iter().take(limit.saturating_sub(paths.len())) {
            let link = member.get("@odata.id").and_then(Value::as_str).ok_or_else(shape)?;
            paths.push(client.options.origin.path_of(link, &page)?);
        }
        let link = body.get("Members@odata.nextLink").and_then(Value::as_str);
        if let Some(link) = link.filter(|_| paths.len() < limit) {
            next = Some(client.options.origin.path_of(link, &page)?);
        }
    }
    Ok(paths)
}

/// Last part of a path: the id of a member.
fn id(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn system_path(client: &mut Client, wanted: Option<&str>) -> Result<String, RedfishError> {
    let systems = link(&client.root, "/Systems");
    let systems = systems.ok_or_else(|| RedfishError::shape(ROOT, "Systems"))?.to_owned();
    let systems = client.options.origin.path_of(&systems, ROOT)?;
    let mut paths = members(client, &systems)?;
    let ids = || {
        let mut ids: Vec<String> = paths.iter().map(|path| cut(id(path), 80)).take(16).collect();
        if paths.len() > ids.len() {
            ids.push("...".into());
        }
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    };
    match wanted {
        Some(wanted) => {
            let is_it = |path: &&String| id(path).eq_ignore_ascii_case(id(wanted));
            let found = paths.iter().find(is_it).cloned();
            found.ok_or_else(|| {
                let (wanted, ids) = (cut(wanted, 80), ids());
                RedfishError::new(format!("the service has no system {wanted:?}; its systems: {ids}"))
            })
        }
        None if paths.len() > 1 => Err(RedfishError::new(format!(
            "the service has {} systems: {}\nhint: choose one with --system ID",
            paths.len(),
            ids()
        ))),
        None => paths.pop().ok_or_else(|| RedfishError::shape(&systems, "system among its Members")),
    }
}

fn bios(
    client: &mut Client,
    saved: &mut Saved,
    system: &Value,
    at: &str,
) -> Result<(String, Value), RedfishError> {
    let product = client.product();
    let none = |cause: &str| {
        let system = cut(id(at), 80);
        RedfishError::new(format!(
            "system {system} of {product} has no Bios resource{cause}: this service does not offer BIOS settings over \
             Redfish"
        ))
    };
    let Some(link) = link(system, "/Bios") else { return Err(none("")) };
    let path = client.options.origin.path_of(link, at)?;
    let answer = match client.get(&path) {
        Err(error) if error.kind == Kind::NotFound => return Err(none(&format!(" ({error})"))),
        other => other?,
    };
    let body = answer.json()?;
    if body.get("Attributes").is_none() {
        return Err(RedfishError::shape(&path, "Attributes"));
    }
    let is_writable = answer.allow.as_deref().is_some_and(|methods| methods.contains("PATCH"));
    saved.writable_bios = is_writable.then(|| path.clone());
    saved.keep(Resource::Bios, answer);
    Ok((path, body))
}

/// The pending settings: at the link in `@Redfish.Settings`, otherwise in one of the usual places.
fn settings(client: &mut Client, saved: &mut Saved, bios: &Value, at: &str) -> Result<(), RedfishError> {
    let at = at.trim_end_matches('/');
    let named = link(bios, "/@Redfish.Settings/SettingsObject");
    let is_hpe = ["Hpe", "Hp"].iter().any(|oem| bios.pointer(&format!("/Oem/{oem}")).is_some());
    let places = match named {
        Some(link) => vec![client.options.origin.path_of(link, at)?],
        None if is_hpe => vec![format!("{at}/settings/")],
        None => ["Settings", "SD", "Pending"].map(|place| format!("{at}/{place}")).to_vec(),
    };
    for path in places.iter().filter(|path| path.trim_end_matches('/') != at) {
        let answer = client.get(path).and_then(|answer| Ok((etag(&answer)?, answer)));
        match answer {
            Err(error) if matches!(error.kind, Kind::Interrupted | Kind::NoAnswer | Kind::TimedOut) => {
                return Err(error);
            }
            // A wrong guess is ignored; a dead link is reported.
            Err(error) => {
                if named.is_some() {
                    let why = error.without_hint();
                    saved.warnings.push(format!("The pending settings could not be read: {why}."));
                }
            }
            Ok((etag, answer)) => {
                saved.settings_etag = etag;
                saved.keep(Resource::Settings, answer);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Version of a resource, from the header or the equivalent annotation.
fn etag(answer: &Answer) -> Result<Option<String>, RedfishError> {
    let body = answer.json()?;
    let annotation = body.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
    // It is sent back in a request header.
    let is_plain = |etag: &String| {
        !etag.is_empty() && etag.len() <= 256 && etag.bytes().all(|b| matches!(b, 0x20..=0x7e))
    };
    Ok(answer.etag.clone().or(annotation).filter(is_plain))
}

/// The registry of this name: the member with this id, otherwise the one that names it, otherwise the only BIOS
/// registry.
fn registry(client: &mut Client, name: &str) -> Result<Option<Answer>, RedfishError> {
    let Some(link) = link(&client.root, "/Registries") else { return Ok(None) };
    let path = client.options.origin.path_of(link, ROOT)?;
    let paths = members(client, &path)?;
    let lower = |text: &str| text.to_ascii_lowercase();
    let name = lower(name);
    let is_bios = |path: &&String| lower(id(path)).starts_with("biosattributeregistry");
    let same = paths.iter().find(|path| lower(id(path)) == name);
    let longer =
        || paths.iter().find(|path| name.starts_with(&lower(id(path))) || lower(id(path)).starts_with(&name));
    let only = || {
        let mut of_a_bios = paths.iter().filter(is_bios);
        of_a_bios.next().filter(|_| of_a_bios.next().is_none())
    };
    let Some(file) = same.or_else(longer).or_else(only) else { return Ok(None) };
    let answer = client.get(file)?;
    let body = answer.json()?;
    if body.get("RegistryEntries").is_some() {
        return Ok(Some(answer));
    }
    let Some(place) = location(&body) else {
        return Err(RedfishError::shape(&answer.path, "Location with a Uri"));
    };
    let path = client.options.origin.path_of(place, &answer.path)?;
    let answer = client.get(&path)?;
    if answer.json()?.get("RegistryEntries").is_none() {
        return Err(RedfishError::shape(&path, "RegistryEntries"));
    }
    Ok(Some(answer))
}

/// Location of the registry in English, otherwise in any language. Old iLOs wrap it in `extref`.
fn location(file: &Value) -> Option<&str> {
    let places = file.get("Location")?.as_array()?;
    let is_english = |place: &&Value| {
        place.get("Language").and_then(Value::as_str).is_some_and(|language| language.starts_with("en"))
    };
    let place = places.iter().find(is_english).or(places.first())?;
    let uri = place.get("Uri")?;
    uri.as_str().or_else(|| uri.get("extref")?.as_str())
}
