//! What can be wrong with saved Redfish JSON.

use super::reader::{ATTRIBUTES_MAX, BYTES_MAX, RESOURCES_MAX};

/// Why saved JSON cannot be audited. Every text says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BiosError {
    /// More bytes than are read.
    #[error(
        "{file} holds more than {BYTES_MAX} bytes; a Bios resource or registry is smaller: name the right file"
    )]
    TooLarge {
        /// The file.
        file: String,
    },
    /// Not JSON.
    #[error("{file} is not JSON: {cause}; save the answer of GET /redfish/v1/Systems/ID/Bios as it comes")]
    NotJson {
        /// The file.
        file: String,
        /// What the parser says, with line and column.
        cause: String,
    },
    /// JSON of another shape.
    #[error("{file}: at {path} there is {found}, expected {expected}")]
    Shape {
        /// The file.
        file: String,
        /// Where, as a JSON path.
        path: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// The service's own error answer was saved.
    #[error(
        "{file} holds an error of the service and no resource: {message}; fetch it again with valid credentials"
    )]
    Service {
        /// The file.
        file: String,
        /// What the service said.
        message: String,
    },
    /// More resources, attributes or dependencies than any server has.
    #[error("{file}: at {path} there are more than {max} {what}; no server has so many: name the right file")]
    TooMany {
        /// The file.
        file: String,
        /// Where.
        path: String,
        /// What there is too much of.
        what: &'static str,
        /// The most that are read.
        max: usize,
    },
    /// No active settings among the files.
    #[error(
        "no active Bios resource in {files}; save GET /redfish/v1/Systems/ID/Bios (HPE: /redfish/v1/systems/1/bios/) and name it with --file"
    )]
    NoBios {
        /// The files.
        files: String,
    },
    /// A restore for another server, or for another BIOS of it.
    #[error(
        "{file} is the way back of another server or BIOS: {why}; name the file that was written for this one"
    )]
    OtherServer {
        /// The file.
        file: String,
        /// How it shows.
        why: String,
    },
    /// Two resources of a kind: two servers.
    #[error("{first} and {second} both hold {what}; audit one server at a time")]
    Twice {
        /// The first place.
        first: String,
        /// The second place.
        second: String,
        /// What both hold.
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
