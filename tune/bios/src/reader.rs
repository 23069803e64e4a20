//! Converts saved JSON to facts.

use super::{
    BiosError,
    error::parse,
    facts::{self, Attributes, BiosFacts, Server, untagged},
    registry,
    shape::{Place, described},
    table::{Vendor, rows},
    window::{ApplyTimes, MaintenanceWindow},
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
    warnings: Vec<String>,
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

    /// Adds the content of a file that should hold the registry. Without a registry the audit shows less, so a
    /// file that holds none is a warning.
    pub fn add_registry(&mut self, file: &str, bytes: &[u8]) {
        self.add_or_warn(file, bytes, "attribute registry");
    }

    /// Adds the content of a file that should hold the pending settings. If it does not, they are unknown, which is
    /// a warning.
    pub fn add_settings(&mut self, file: &str, bytes: &[u8]) {
        self.add_or_warn(file, bytes, "resource of the pending settings");
    }

    fn add_or_warn(&mut self, file: &str, bytes: &[u8], what: &str) {
        if let Err(error) = self.add(file, bytes) {
            let cause = error.to_string();
            let cause = cause.lines().next().unwrap_or_default();
            self.warnings.push(format!("The {what} could not be read: {cause}."));
        }
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
            Value::Object(members) => match kind(place.file, members)? {
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
            uri: text(place.value, "@odata.id").or(uri).map(str::to_owned),
            kind,
            body: place.value.clone(),
        });
        Ok(())
    }

    /// Converts everything that was read to facts.
    pub fn finish(self) -> Result<BiosFacts, BiosError> {
        let settings = self.resources.iter().filter(|resource| resource.kind == Kind::Settings);
        let settings_uri = settings.map(|resource| &resource.body).find_map(settings_object);
        let (mut active, mut pending) = (None, None);
        let (mut registry, mut system) = (None, None);
        for resource in &self.resources {
            let (slot, what) = match resource.kind {
                Kind::Registry => (&mut registry, "an attribute registry"),
                Kind::System => (&mut system, "a ComputerSystem resource"),
                Kind::Settings if is_pending(resource, settings_uri.as_deref()) => {
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
        let server = system.map(|system| server(&system.body)).unwrap_or_default();
        let mut facts = facts(active, pending, registry, server, settings_uri)?;
        facts.warnings.splice(0..0, self.warnings);
        Ok(facts)
    }
}

/// Kind of an object; `None` if it is not a relevant resource.
fn kind(file: &str, members: &Map<String, Value>) -> Result<Option<Kind>, BiosError> {
    let odata_type = members.get("@odata.type").and_then(Value::as_str);
    let is_of = |name: &str| odata_type.is_some_and(|kind| kind.starts_with(name));
    if let Some(error) = members.get("error").and_then(Value::as_object) {
        let text = |name| error.get(name).and_then(Value::as_str);
        let message: String =
            text("message").or_else(|| text("code")).unwrap_or("no message").chars().take(200).collect();
        return Err(BiosError(format!(
            "cannot use {file}: it contains an error of the service instead of a resource: {message}\nhint: fetch it again \
             with valid credentials"
        )));
    }
    let has = |name: &str, kind: &str| members.contains_key(name) && (odata_type.is_none() || is_of(kind));
    Ok(if has("RegistryEntries", "#AttributeRegistry.") {
        Some(Kind::Registry)
    } else if has("Attributes", "#Bios.")
        || is_of("#Bios.")
        || has("@odata.id", "") && is_named_pending(members)
    {
        // Without attributes it is a settings resource in which nothing is pending.
        Some(Kind::Settings)
    } else {
        let is_system = is_of("#ComputerSystem.") || has("Manufacturer", "") && has("ProcessorSummary", "");
        is_system.then_some(Kind::System)
    })
}

/// True if the last part of a resource's address is a word such as "settings".
fn is_named_pending(members: &Map<String, Value>) -> bool {
    let uri = members.get("@odata.id").and_then(Value::as_str).unwrap_or_default();
    uri.trim_end_matches('/').rsplit('/').next().is_some_and(is_pending_name)
}

fn is_pending_name(name: &str) -> bool {
    ["settings", "pending", "sd"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// A text member of an object, or the text at a JSON pointer.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    if name.starts_with('/') { value.pointer(name)?.as_str() } else { value.get(name)?.as_str() }
}

/// `@Redfish.Settings.SettingsObject`: the address for changes.
fn settings_object(bios: &Value) -> Option<String> {
    text(bios, "/@Redfish.Settings/SettingsObject/@odata.id").map(str::to_owned)
}

/// True if the resource contains settings that are pending a restart: another one names it as its settings object, or
/// its own address or ID is a word such as "settings", as on iLO.
fn is_pending(resource: &Resource, settings_uri: Option<&str>) -> bool {
    let trimmed = |uri: &str| uri.trim_end_matches('/').to_ascii_lowercase();
    if let Some(uri) = resource.uri.as_deref().map(trimmed) {
        let is_named = settings_uri.map(trimmed).is_some_and(|named| named == uri);
        return is_named || uri.rsplit('/').next().is_some_and(is_pending_name);
    }
    text(&resource.body, "Id").is_some_and(is_pending_name)
}

fn facts(
    active: &Resource,
    pending: Option<&Resource>,
    registry: Option<&Resource>,
    server: Server,
    settings_uri: Option<String>,
) -> Result<BiosFacts, BiosError> {
    let mut unreadable = BTreeMap::new();
    let attributes = attributes(active, &mut unreadable)?;
    if attributes.is_empty() {
        let place = active.place().required("Attributes", "an object of attributes")?;
        return Err(place.wrong("at least one attribute with a value"));
    }
    let mut warnings = Vec::new();
    let registry = registry.map(|resource| registry::read(&resource.place(), &mut warnings)).transpose()?;
    let mut apply_times = ApplyTimes::default();
    [Some(active), pending].into_iter().flatten().for_each(|resource| apply_times.add(&resource.body));
    let mut facts = BiosFacts {
        vendor: vendor(&active.body, &server, &attributes),
        server,
        uri: active.uri.clone(),
        settings_uri: settings_uri.or_else(|| pending.and_then(|resource| resource.uri.clone())),
        apply_times,
        window: pending.and_then(|resource| MaintenanceWindow::of(&resource.body)),
        active: attributes,
        pending: pending.and_then(|resource| pending_attributes(resource, &mut unreadable, &mut warnings)),
        registry_name: text(&active.body, "AttributeRegistry").map(str::to_owned),
        registry: registry.flatten(),
        refused: refused(&active.body),
        labels: BTreeMap::new(),
        unreadable,
        warnings: Vec::new(),
    };
    facts.label();
    // A message about the last change may be on either resource.
    if let Some(resource) = pending {
        facts.refused.extend(refused(&resource.body));
    }
    if facts.settings_uri.is_none() && facts.vendor == Some(Vendor::Hpe) {
        let base = facts.uri.as_deref().unwrap_or("/redfish/v1/systems/1/bios").trim_end_matches('/');
        facts.settings_uri = Some(format!("{base}/settings/"));
    }
    warnings.extend(facts::warnings(&facts));
    facts.warnings = warnings;
    Ok(facts)
}

/// The attributes of a resource. One whose value is no scalar goes to `unreadable`, with what was found.
fn attributes(
    resource: &Resource,
    unreadable: &mut BTreeMap<String, String>,
) -> Result<Attributes, BiosError> {
    let place = resource.place().required("Attributes", "an object of attributes")?;
    let members = place.object("an object of attributes")?;
    place.check_count(members.len(), "attributes")?;
    let mut attributes = Attributes::new();
    for (name, value) in members {
        if value.is_array() || value.is_object() {
            unreadable.insert(name.clone(), described(value));
        } else {
            attributes.insert(name.clone(), value.clone());
        }
    }
    Ok(attributes)
}

/// As [`attributes`], and none if the resource has no such member. `None` if they cannot be read, which is a warning.
fn pending_attributes(
    resource: &Resource,
    unreadable: &mut BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Option<Attributes> {
    match resource.body.get("Attributes") {
        None | Some(Value::Null) => Some(Attributes::new()),
        Some(_) => attributes(resource, unreadable)
            .map_err(|error| warnings.push(format!("The pending settings could not be read: {error}.")))
            .ok(),
    }
}

/// Attributes that the last change named in its messages, except in those that report success or a required
/// restart. iLO spells the member `MessageID`.
fn refused(bios: &Value) -> BTreeMap<String, String> {
    let messages = bios.pointer("/@Redfish.Settings/Messages").and_then(Value::as_array);
    let mut refused = BTreeMap::new();
    for message in messages.into_iter().flatten() {
        let id = text(message, "MessageId").or_else(|| text(message, "MessageID")).unwrap_or_default();
        let id = id.rsplit(['.', ':']).next().unwrap_or_default();
        if id.is_empty() || matches!(id, "Success" | "SystemResetRequired" | "ResetRequired") {
            continue;
        }
        // Some controllers put values among the names, as numbers.
        let arguments = message.get("MessageArgs").and_then(Value::as_array);
        for attribute in arguments.into_iter().flatten().filter_map(Value::as_str) {
            refused.insert(attribute.to_owned(), id.to_owned());
        }
    }
    refused
}

fn server(system: &Value) -> Server {
    let text = |name| text(system, name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Server {
        manufacturer: text("Manufacturer"),
        model: text("Model"),
        bios_version: text("BiosVersion"),
        processor: text("/ProcessorSummary/Model"),
    }
}

/// The vendor of the firmware: according to the resources, otherwise from the existing names.
fn vendor(bios: &Value, server: &Server, attributes: &Attributes) -> Option<Vendor> {
    let oem = bios.get("Oem");
    let says = |vendor: &Vendor| {
        let key = if *vendor == Vendor::Hpe { "Hpe" } else { vendor.word() };
        let maker = server.manufacturer.as_deref().unwrap_or_default().to_ascii_lowercase();
        oem.is_some_and(|oem| oem.get(key).is_some())
            || maker.starts_with(&vendor.word().to_ascii_lowercase())
            || (*vendor == Vendor::Hpe && maker.starts_with("hewlett"))
    };
    if let Some(vendor) = Vendor::ALL.into_iter().find(says) {
        return Some(vendor);
    }
    // The names of another maker are not asked: a server may have AMD's or Intel's.
    if server.manufacturer.is_some() {
        return None;
    }
    let of = |vendor| rows().flat_map(|row| row.names).filter(move |names| names.vendor == Some(vendor));
    let count = |vendor: Vendor| {
        let words = of(vendor).flat_map(|names| names.names);
        words.filter(|name| attributes.contains_key(**name)).count()
            + attributes.keys().filter(|name| is_styled(vendor, name)).count()
    };
    let mut counts = Vendor::ALL.map(|vendor| (count(vendor), vendor));
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let [(most, vendor), (next, _), ..] = counts;
    (most > next).then_some(vendor)
}

/// True if a vendor forms names so.
fn is_styled(vendor: Vendor, name: &str) -> bool {
    const MENUS: [&str; 5] = ["Processors_", "Memory_", "DevicesandIOPorts_", "Power_", "BootModes_"];
    match vendor {
        Vendor::Lenovo => MENUS.iter().any(|menu| name.starts_with(menu)),
        Vendor::Supermicro => untagged(name).is_some(),
        _ => false,
    }
}
