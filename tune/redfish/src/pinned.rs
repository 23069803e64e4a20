//! TLS with a verifier of this crate's own.
//!
//! Many controllers sign their own certificate and mark it as a CA's, which no verifier accepts for a server.
//! If the user named that very certificate, byte for byte, it is accepted for its names and validity period.
//! Certificates of version 1, without names, with another name or expired are common as well. The user can accept
//! one by its fingerprint. In each case the server must prove that it has the key. A refused certificate is
//! reported with its fingerprint.

use crate::certificate::{fingerprint, public_key};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, OtherError,
    RootCertStore, SignatureScheme, StreamOwned,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::ParsedCertificate,
};
use std::{
    fmt,
    io::{Read, Write},
    sync::Arc,
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};
use webpki::RawPublicKeyEntity;

/// The certificates that are accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Those signed by these, and these themselves.
    Signed(Vec<CertificateDer<'static>>),
    /// That with this SHA-256 fingerprint.
    Fingerprint([u8; 32]),
    All,
}

#[derive(Debug)]
struct CertificateVerifier {
    accepted: Accepted,
    /// `None` if certificates are not judged by their issuer.
    usual: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// A refused certificate: why, and its fingerprint.
#[derive(Debug)]
pub(crate) struct Refused {
    pub cause: Error,
    pub fingerprint: [u8; 32],
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl CertificateVerifier {
    fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<(), Error> {
        let (named, usual) = match (&self.accepted, &self.usual) {
            (Accepted::Fingerprint(wanted), _) if fingerprint(end_entity) != *wanted => {
                return Err(CertificateError::ApplicationVerificationFailure.into());
            }
            (Accepted::Signed(named), Some(usual)) => (named, usual),
            _ => return Ok(()),
        };
        match usual.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // webpki checks the validity period before this, and the name after it.
            Err(error) if is_ca_as_server(&error) && named.iter().any(|one| one == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)
            }
            result => result.map(drop),
        }
    }

    /// Checks a signature with the certificate's key. Unlike webpki's reader, this one accepts certificates of
    /// version 1.
    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = Error::InvalidCertificate(CertificateError::BadEncoding);
        let key = public_key(certificate).map(SubjectPublicKeyInfoDer::from).ok_or_else(|| bad.clone())?;
        let key = RawPublicKeyEntity::try_from(&key).map_err(|_| bad)?;
        let mut algorithms = self
            .algorithms
            .mapping
            .iter()
            .filter(|(scheme, _)| *scheme == signature.scheme)
            .flat_map(|(_, of)| *of);
        let is_valid = |algorithm| key.verify_signature(algorithm, message, signature.signature()).is_ok();
        if algorithms.any(|algorithm| is_valid(*algorithm)) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
        }
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = self.judge(end_entity, intermediates, name, ocsp, now);
        judged.map(|()| ServerCertVerified::assertion()).map_err(|cause| {
            Error::Other(OtherError(Arc::new(Refused { cause, fingerprint: fingerprint(end_entity) })))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // TLS 1.3 has no signatures by RSA with PKCS #1 (RFC 8446, section 4.2.3).
        if matches!(
            signature.scheme,
            SignatureScheme::RSA_PKCS1_SHA1
                | SignatureScheme::RSA_PKCS1_SHA256
                | SignatureScheme::RSA_PKCS1_SHA384
                | SignatureScheme::RSA_PKCS1_SHA512
        ) {
            return Err(Error::InvalidCertificate(CertificateError::BadSignature));
        }
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// True if a certificate was rejected only because it is a CA's.
pub(crate) fn is_ca_as_server(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if other.to_string().contains("CaUsedAsEndEntity"))
}

/// Wraps `https://` connections in TLS. ureq's own connector cannot use a custom verifier.
pub(crate) struct Pinned {
    config: Arc<ClientConfig>,
}

impl Pinned {
    pub fn new(accepted: Accepted, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let usual = match &accepted {
            Accepted::Signed(certificates) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates.iter().cloned());
                let builder =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
                Some(builder.build().map_err(|error| error.to_string())?)
            }
            Accepted::Fingerprint(_) | Accepted::All => None,
        };
        let algorithms = provider.signature_verification_algorithms;
        let verifier = CertificateVerifier { accepted, usual, algorithms };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

impl<In: Transport> Connector<In> for Pinned {
    type Out = Either<In, Encrypted>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() {
            return Ok(Some(Either::A(transport)));
        }
        // An IPv6 address has brackets in a URL, and none in a certificate.
        let host =
            details.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|_| ureq::Error::Tls("the host name is invalid"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let mut below = TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        below.set_timeout(details.timeout);
        connection.complete_io(&mut below)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Encrypted { buffers, stream: StreamOwned::new(connection, below) })))
    }
}

pub(crate) struct Encrypted {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted").finish_non_exhaustive()
    }
}

impl Transport for Encrypted {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
