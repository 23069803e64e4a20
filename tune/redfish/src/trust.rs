//! Trust in the certificates of services.

use crate::{RedfishError, pinned::Pinned};
use rustls::pki_types::CertificateDer;
use std::{fs::File, io::Read, path::PathBuf, sync::Arc};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

const CA_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those signed by the CAs that this machine trusts.
    #[default]
    System,
    /// Those signed by a certificate in this PEM file, and these certificates themselves.
    CaFile(PathBuf),
    /// All: an attacker in between can read the credentials.
    Anybody,
}

impl Trust {
    /// The verification. Without TLS, no certificates are loaded.
    pub(crate) fn tls(&self, is_plain: bool) -> Result<TlsConfig, RedfishError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        Ok(match self {
            _ if is_plain => builder,
            Self::System => builder.root_certs(system_certificates()?),
            // [`Trust::pinned`] verifies these.
            Self::CaFile(_) => builder,
            Self::Anybody => builder.disable_verification(true),
        }
        .build())
    }

    /// The connector that trusts the certificates of a file; `None` for other trust, or without TLS.
    pub(crate) fn pinned(&self, is_plain: bool) -> Result<Option<Pinned>, RedfishError> {
        let Self::CaFile(path) = self else { return Ok(None) };
        if is_plain {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let wrong = |why| RedfishError::file("--ca", path, why);
        Pinned::new(certificates(path)?, provider).map(Some).map_err(wrong)
    }
}

/// Loads the distribution's certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR, like OpenSSL.
fn system_certificates() -> Result<RootCerts, RedfishError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let cause = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(RedfishError::new(format!(
            "cannot verify any certificate: this machine trusts no CA{cause}\nhint: install CA certificates (package \
             ca-certificates), or name one with --ca FILE"
        )));
    }
    Ok(found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).into())
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
