//! Trust in the certificates of services.

use crate::{
    RedfishError, certificate,
    pinned::{Accepted, Pinned},
};
use rustls::pki_types::CertificateDer;
use std::{fs::File, io::Read, path::PathBuf, sync::Arc};
use ureq::tls::{PemItem, parse_pem};

const CA_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those signed by the CAs that this machine trusts.
    #[default]
    System,
    /// Those signed by a certificate in this PEM file, and these certificates themselves.
    CaFile(PathBuf),
    /// The one with this SHA-256 fingerprint, whatever its names, its version and its age.
    Fingerprint([u8; 32]),
    /// All: an attacker in between can read the credentials.
    Anybody,
}

impl Trust {
    /// The connector that accepts these certificates; `None` without TLS, so that none is loaded.
    pub(crate) fn connector(&self, is_plain: bool) -> Result<Option<Pinned>, RedfishError> {
        if is_plain {
            return Ok(None);
        }
        let accepted = match self {
            Self::System => Accepted::Signed(system_certificates()?),
            Self::CaFile(path) => Accepted::Signed(certificates(path)?),
            Self::Fingerprint(fingerprint) => Accepted::Fingerprint(*fingerprint),
            Self::Anybody => Accepted::All,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let wrong = |why| match self {
            Self::CaFile(path) => RedfishError::file("--ca", path, why),
            _ => RedfishError::new(format!("cannot verify any certificate: {why}")),
        };
        Pinned::new(accepted, provider).map(Some).map_err(wrong)
    }

    /// Parses a certificate's fingerprint: `sha256:` and 64 hexadecimal digits.
    pub fn fingerprint(text: &str) -> Result<Self, String> {
        certificate::parse(text)
            .map(Self::Fingerprint)
            .ok_or_else(|| "expected sha256: and 64 hexadecimal digits".into())
    }
}

/// Loads the distribution's certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR, like OpenSSL.
fn system_certificates() -> Result<Vec<CertificateDer<'static>>, RedfishError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let cause = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(RedfishError::new(format!(
            "cannot verify any certificate: this machine trusts no CA{cause}\nhint: install CA certificates (package \
             ca-certificates), or name one with --ca FILE"
        )));
    }
    Ok(found.certs)
}

fn certificates(path: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, RedfishError> {
    let wrong = |why: String| RedfishError::file("--ca", path, why);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(CA_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > CA_BYTES_MAX {
        return Err(wrong(format!("more than {CA_BYTES_MAX} bytes")));
    }
    let mut found = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(CertificateDer::from(certificate.der().to_vec()));
        }
    }
    if found.is_empty() {
        return Err(wrong("it contains no certificate in PEM format (-----BEGIN CERTIFICATE-----)".into()));
    }
    Ok(found)
}
