//! Errors in saved Redfish JSON.

use super::reader::{ATTRIBUTES_MAX, BYTES_MAX, RESOURCES_MAX};

/// Why saved JSON cannot be audited. Every message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BiosError {
    /// The file exceeds the size limit.
    #[error(
        "cannot read {file}: it has more than {BYTES_MAX} bytes, and a Bios resource or registry is smaller\nhint: \
         name the right file"
    )]
    TooLarge {
        /// The file.
        file: String,
    },
    /// Not JSON.
    #[error(
        "cannot parse {file} as JSON: {cause}\nhint: save the unmodified response of GET \
         /redfish/v1/Systems/ID/Bios"
    )]
    NotJson {
        /// The file.
        file: String,
        /// The parser's error, with line and column.
        cause: String,
    },
    /// JSON in another format.
    #[error("cannot parse {file}: found {found} at {path}, expected {expected}")]
    Shape {
        /// The file.
        file: String,
        /// Location, as a JSON path.
        path: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The file contains an error response of the service.
    #[error(
        "cannot use {file}: it contains an error of the service instead of a resource: {message}\nhint: fetch it \
         again with valid credentials"
    )]
    Service {
        /// The file.
        file: String,
        /// The service's message.
        message: String,
    },
    /// More resources, attributes or dependencies than any server has.
    #[error(
        "cannot parse {file}: it has more than {max} {what} at {path}, more than any server\nhint: name the right \
         file"
    )]
    TooMany {
        /// The file.
        file: String,
        /// Location, as a JSON path.
        path: String,
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The files contain no active settings.
    #[error(
        "cannot find an active Bios resource in {files}\nhint: save GET /redfish/v1/Systems/ID/Bios (HPE: \
         /redfish/v1/systems/1/bios/) and name it with --file"
    )]
    NoBios {
        /// The files.
        files: String,
    },
    /// A restore file for another server, or for another BIOS of it.
    #[error(
        "cannot use {file}: it restores another server or BIOS: {why}\nhint: name the file that was written for \
         this one"
    )]
    OtherServer {
        /// The file.
        file: String,
        /// How they differ.
        why: String,
    },
    /// Two resources of the same kind, from two servers.
    #[error(
        "cannot audit several servers at a time: {first} and {second} both contain {what}\nhint: name the files \
         of one server"
    )]
    Twice {
        /// The first place.
        first: String,
        /// The second place.
        second: String,
        /// What both contain.
        what: &'static str,
    },
}

impl BiosError {
    pub(super) fn too_many_resources(file: &str, path: &str) -> Self {
        Self::TooMany { file: file.into(), path: path.into(), what: "resources", max: RESOURCES_MAX }
    }

    pub(super) fn too_many(file: &str, path: &str, what: &'static str) -> Self {
        Self::TooMany { file: file.into(), path: path.into(), what, max: ATTRIBUTES_MAX }
    }
}
