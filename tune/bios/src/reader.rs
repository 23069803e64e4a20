//! Converts saved JSON to facts.

use super::{
    BiosError,
    error::parse,
    facts::{Attributes, BiosFacts, Server},
    registry,
    shape::Place,
    table::{Vendor, rows},
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum size of a file in bytes. The largest known registries have about 5 MB.
pub const BYTES_MAX: usize = 32 << 20;
/// Maximum number of attributes of a resource or registry, and of dependencies.
pub(super) const ATTRIBUTES_MAX: usize = 50_000;
/// Maximum number of resources in all files together.
pub(super) const RESOURCES_MAX: usize = 256;
/// Maximum nesting of lists and objects that bundle resources.
const NESTING_MAX: usize = 4;

/// Reads files one after another; [`finish`](Self::finish) converts them to facts.
#[derive(Debug, Default)]
pub struct BiosReader {
    files: Vec<String>,
    resources: Vec<Resource>,
}

#[derive(Debug)]
struct Resource {
    file: String,
    path: String,
    /// Its address on the service.
    uri: Option<String>,
    kind: Kind,
    body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Settings,
    Registry,
    System,
}

impl Resource {
    fn place(&self) -> Place<'_> {
        Place { file: &self.file, path: self.path.clone(), value: &self.body }
    }

    fn shown(&self) -> String {
        if self.path == "$" { self.file.clone() } else { format!("{} at {}", self.file, self.path) }
    }
}

impl BiosReader {
    /// Adds the content of one file; errors name it `file`.
    pub fn add(&mut self, file: &str, bytes: &[u8]) -> Result<(), BiosError> {
        let value = parse(file, bytes)?;
        self.files.push(file.to_owned());
        let before = self.resources.len();
        let place = Place { file, path: "$".into(), value: &value };
        self.collect(&place, None, 0)?;
        if self.resources.len() == before {
            return Err(place.wrong(
                "a Bios resource (\"Attributes\"), an attribute registry (\"RegistryEntries\"), or a list or object of these",
            ));
        }
        Ok(())
    }

    /// Finds the resources in a document; containers are lists, and objects that are not resources
    /// themselves.
    fn collect(&mut self, place: &Place<'_>, uri: Option<&str>, depth: usize) -> Result<(), BiosError> {
        match place.value {
            Value::Array(_) if depth < NESTING_MAX => {
                for item in place.items("a list")? {
                    self.collect(&item, None, depth + 1)?;
                }
            }
            Value::Object(members) => match kind(place, members)? {
                Some(kind) => self.push(place, uri, kind)?,
                None if !members.contains_key("@odata.type") && depth < NESTING_MAX => {
                    for (name, member) in members {
                        let uri = name.starts_with('/').then_some(name.as_str());
                        self.collect(&place.child(name, member), uri, depth + 1)?;
                    }
                }
                None => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, place: &Place<'_>, uri: Option<&str>, kind: Kind) -> Result<(), BiosError> {
        if self.resources.len() >= RESOURCES_MAX {
            return Err(BiosError::too_many(place.file, &place.path, "resources", RESOURCES_MAX));
        }
        self.resources.push(Resource {
            file: place.file.to_owned(),
            path: place.path.clone(),
            uri: place.text_member("@odata.id")?.or(uri).map(str::to_owned),
            kind,
            body: place.value.clone(),
        });
        Ok(())
    }

    /// Converts everything that was read to facts.
    pub fn finish(self) -> Result<BiosFacts, BiosError> {
        let mut settings_uri = None;
        for resource in self.resources.iter().filter(|resource| resource.kind == Kind::Settings) {
            settings_uri = settings_uri.or(settings_object(resource)?);
        }
        let (mut active, mut pending) = (None, None);
        let (mut registry, mut system) = (None, None);
        for resource in &self.resources {
            let (slot, what) = match resource.kind {
                Kind::Registry => (&mut registry, "an attribute registry"),
                Kind::System => (&mut system, "a ComputerSystem resource"),
                Kind::Settings if is_pending(resource, settings_uri.as_deref())? => {
                    (&mut pending, "pending BIOS settings")
                }
                Kind::Settings => (&mut active, "active BIOS settings"),
            };
            if let Some(first) = slot.replace(resource) {
                let (first, second) = (first.shown(), resource.shown());
                return Err(BiosError(format!(
                    "cannot audit several servers at a time: {first} and {second} both contain {what}\nhint: name the files \
                     of one server"
                )));
            }
        }
        let Some(active) = active else {
            return Err(BiosError(format!(
                "cannot find an active Bios resource in {}\nhint: save GET /redfish/v1/Systems/ID/Bios (HPE: \
                 /redfish/v1/systems/1/bios/) and name it with --file",
                self.files.join(", ")
            )));
        };
        let server = system.map(server).transpose()?.unwrap_or_default();
        facts(active, pending, registry, server, settings_uri)
    }
}

/// Kind of an object; `None` if it is not a relevant resource.
fn kind(place: &Place<'_>, members: &Map<String, Value>) -> Result<Option<Kind>, BiosError> {
    let odata_type = place.text_member("@odata.type")?;
    let is_of = |name: &str| odata_type.is_none_or(|kind| kind.starts_with(name));
    if let Some(error) = members.get("error").and_then(Value::as_object) {
        let text = |name| error.get(name).and_then(Value::as_str);
        let message: String =
            text("message").or_else(|| text("code")).unwrap_or("no message").chars().take(200).collect();
        return Err(BiosError(format!(
            "cannot use {}: it contains an error of the service instead of a resource: {message}\nhint: fetch it again with \
             valid credentials",
            place.file
        )));
    }
    Ok(if members.contains_key("RegistryEntries") && is_of("#AttributeRegistry.") {
        Some(Kind::Registry)
    } else if members.contains_key("Attributes") && is_of("#Bios.") {
        Some(Kind::Settings)
    } else if odata_type.is_some_and(|kind| kind.starts_with("#ComputerSystem.")) {
        Some(Kind::System)
    } else {
        None
    })
}

/// `@Redfish.Settings.SettingsObject`: the address for changes.
fn settings_object(resource: &Resource) -> Result<Option<String>, BiosError> {
    let Some(settings) = resource.place().member("@Redfish.Settings") else { return Ok(None) };
    settings.object("an object with SettingsObject")?;
    let Some(object) = settings.member("SettingsObject") else { return Ok(None) };
    let uri = object.required("@odata.id", "the address of the settings resource")?;
    Ok(Some(uri.text("the address of the settings resource")?.to_owned()))
}

/// True if the resource contains settings that are pending a restart: another one names it as its settings object, or
/// its own address or ID is a word such as "settings", as on iLO.
fn is_pending(resource: &Resource, settings_uri: Option<&str>) -> Result<bool, BiosError> {
    let place = resource.place();
    let trimmed = |uri: &str| uri.trim_end_matches('/').to_ascii_lowercase();
    let is_name = |name: &str| matches!(name, "settings" | "pending" | "sd");
    if let Some(uri) = resource.uri.as_deref().map(trimmed) {
        let is_named = settings_uri.map(trimmed).is_some_and(|named| named == uri);
        return Ok(is_named || uri.rsplit('/').next().is_some_and(is_name));
    }
    Ok(place.text_member("Id")?.is_some_and(|id| is_name(&id.to_ascii_lowercase())))
}

fn facts(
    active: &Resource,
    pending: Option<&Resource>,
    registry: Option<&Resource>,
    server: Server,
    settings_uri: Option<String>,
) -> Result<BiosFacts, BiosError> {
    let place = active.place();
    let attributes = attributes(active)?;
    if attributes.is_empty() {
        return Err(place.required("Attributes", "attributes")?.wrong("at least one attribute"));
    }
    let mut facts = BiosFacts {
        vendor: vendor(&place, &server, &attributes),
        server,
        uri: active.uri.clone(),
        settings_uri: settings_uri.or_else(|| pending.and_then(|resource| resource.uri.clone())),
        takes_apply_time: takes_apply_time(&place)?,
        active: attributes,
        pending: pending.map(self::attributes).transpose()?,
        registry_name: place.text_member("AttributeRegistry")?.map(str::to_owned),
        registry: registry.map(|resource| registry::read(&resource.place())).transpose()?,
        refused: refused(&place)?,
        warnings: Vec::new(),
    };
    // A message about the last change may be on either resource.
    if let Some(resource) = pending {
        facts.refused.extend(refused(&resource.place())?);
    }
    if facts.settings_uri.is_none() && facts.vendor == Some(Vendor::Hpe) {
        let base = facts.uri.as_deref().unwrap_or("/redfish/v1/systems/1/bios").trim_end_matches('/');
        facts.settings_uri = Some(format!("{base}/settings/"));
    }
    facts.warnings = warnings(&facts);
    Ok(facts)
}

fn attributes(resource: &Resource) -> Result<Attributes, BiosError> {
    let place = resource.place().required("Attributes", "an object of attributes")?;
    let members = place.object("an object of attributes")?;
    place.check_count(members.len(), "attributes")?;
    let read = |(name, value)| Ok((String::clone(name), place.child(name, value).scalar()?.clone()));
    members.iter().map(read).collect()
}

/// True if `@Redfish.Settings.SupportedApplyTimes` contains OnReset.
fn takes_apply_time(place: &Place<'_>) -> Result<bool, BiosError> {
    let settings = place.member("@Redfish.Settings");
    let Some(times) = settings.and_then(|settings| settings.member("SupportedApplyTimes")) else {
        return Ok(false);
    };
    let times_wanted = "an array of apply times such as OnReset";
    let mut takes = false;
    for time in times.items(times_wanted)? {
        takes |= time.text(times_wanted)? == "OnReset";
    }
    Ok(takes)
}

/// Attributes that the last change named in its messages, except in those that report success or a required
/// restart. iLO spells the member `MessageID`.
fn refused(place: &Place<'_>) -> Result<BTreeMap<String, String>, BiosError> {
    let settings = place.member("@Redfish.Settings");
    let Some(messages) = settings.and_then(|settings| settings.member("Messages")) else {
        return Ok(BTreeMap::new());
    };
    let mut refused = BTreeMap::new();
    for message in messages.items("an array of messages")? {
        message.object("a message with MessageId and MessageArgs")?;
        let id = message.text_member("MessageId")?.or(message.text_member("MessageID")?).unwrap_or_default();
        let id = id.rsplit(['.', ':']).next().unwrap_or_default();
        if id.is_empty() || matches!(id, "Success" | "SystemResetRequired" | "ResetRequired") {
            continue;
        }
        let Some(arguments) = message.member("MessageArgs") else { continue };
        // Some controllers put values among the names, as numbers.
        for attribute in arguments.array("an array of texts")?.iter().filter_map(Value::as_str) {
            refused.insert(attribute.to_owned(), id.to_owned());
        }
    }
    Ok(refused)
}

fn server(resource: &Resource) -> Result<Server, BiosError> {
    let place = resource.place();
    let text = |name| place.text_member(name).map(|text| text.map(|text| text.trim().to_owned()));
    let processors = place.member("ProcessorSummary");
    let processor = processors.map(|summary| summary.text_member("Model").map(|m| m.map(str::to_owned)));
    Ok(Server {
        manufacturer: text("Manufacturer")?,
        model: text("Model")?,
        bios_version: text("BiosVersion")?,
        processor: processor.transpose()?.flatten(),
    })
}

/// The vendor of the firmware: according to the resources, otherwise from the existing names.
fn vendor(place: &Place<'_>, server: &Server, attributes: &Attributes) -> Option<Vendor> {
    let oem = place.member("Oem");
    let maker = server.manufacturer.as_deref().unwrap_or_default();
    let says = |vendor: &Vendor| {
        let key = if *vendor == Vendor::Hpe { "Hpe" } else { vendor.word() };
        oem.as_ref().is_some_and(|oem| oem.member(key).is_some()) || maker.starts_with(vendor.word())
    };
    let count = |vendor: Vendor| {
        let names = rows().flat_map(|row| row.names).filter(|name| name.vendor == vendor);
        names.filter(|name| super::judge::find(attributes, name).is_some()).count()
    };
    if let Some(vendor) = Vendor::ALL.into_iter().find(says) {
        return Some(vendor);
    }
    let mut counts = Vendor::ALL.map(|vendor| (count(vendor), vendor));
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let [(most, vendor), (next, _), ..] = counts;
    (most > next).then_some(vendor)
}

fn warnings(facts: &BiosFacts) -> Vec<String> {
    let mut warnings = Vec::new();
    let ids = facts
        .registry
        .as_ref()
        .and_then(|registry| registry.id.as_deref())
        .zip(facts.registry_name.as_deref());
    if let Some((read, named)) =
        ids.filter(|(read, named)| !read.starts_with(named) && !named.starts_with(read))
    {
        warnings.push(format!(
            "The registry read is {read}, but the Bios resource names {named}: values and dependencies may \
             be those of another BIOS."
        ));
    }
    if facts.registry.is_none() {
        warnings.push(
            "No attribute registry was read: accepted values are not checked, and dependencies only if the \
             vendor documents them."
                .into(),
        );
    }
    if facts.pending.is_none() {
        warnings.push("No settings resource was read: pending changes are unknown.".into());
    }
    let strange =
        facts.pending.iter().flatten().filter(|(name, _)| !facts.active.contains_key(*name)).count();
    if strange > 0 {
        warnings.push(format!(
            "{strange} pending attributes are not among the active ones: the two resources may be of different servers."
        ));
    }
    warnings
}
