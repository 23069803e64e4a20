//! A client for the BIOS settings of a Redfish service (DMTF DSP0266; HPE's iLO 5 and 6 follow it).
//!
//! ```text
//! Client::open   address, trust, credentials: a session, or Basic if the service has none
//! read           service root -> system -> Bios -> settings, registry: the raw answers
//! send           one PATCH, its task, and the settings read back
//! ```
//!
//! [`lowlat_bios`] interprets the answers; this crate only fetches them. Everything that a service sends
//! is untrusted and bounded: sizes, numbers of requests, time, links (which never lead off the host) and texts.

#![forbid(unsafe_code)]

mod address;
mod answer;
mod certificate;
mod client;
mod crawl;
mod credentials;
mod error;
mod failure;
mod pinned;
mod prompt;
mod send;
mod session;
mod trust;

pub use address::Origin;
pub use client::{Client, Options, RedfishLimits};
pub use crawl::{Resource, Saved, read};
pub use credentials::{Credentials, Secret};
pub use error::RedfishError;
pub use prompt::ask_password;
pub use send::{Sent, send};
pub use trust::Trust;
