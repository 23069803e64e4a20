//! Errors of the network as errors of this crate.

use crate::{
    Origin, RedfishError, certificate,
    error::Kind,
    pinned::{Refused, is_ca_as_server},
};
use rustls::CertificateError;
use std::{io, time::Duration};

/// A request as its errors describe it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub origin: &'a Origin,
    pub method: &'a str,
    pub path: &'a str,
    pub waited: Duration,
}

impl RequestContext<'_> {
    pub fn failed(&self, error: ureq::Error) -> RedfishError {
        match error {
            ureq::Error::Timeout(_) => self.timed_out(),
            ureq::Error::HostNotFound => self.no_such_host(),
            ureq::Error::Rustls(error) => self.tls(&error),
            ureq::Error::Tls(cause) => self.tls(&rustls::Error::General(cause.into())),
            ureq::Error::Io(error) => self.io(&error),
            ureq::Error::ConnectionFailed => self.no_connection("no address answers"),
            other => self.not_http(&other.to_string()),
        }
    }

    fn no_such_host(&self) -> RedfishError {
        let host = self.origin.shown();
        RedfishError::new(format!("cannot find host {host}\nhint: check --redfish, or use its IP address"))
    }

    fn no_connection(&self, cause: &str) -> RedfishError {
        RedfishError::new(format!(
            "cannot connect to {}: {cause}\nhint: check the address, the port, and whether the controller's web service \
             is on",
            self.origin.shown()
        ))
    }

    fn not_http(&self, cause: &str) -> RedfishError {
        let (service, request) = (self.origin.shown(), self.request());
        Kind::NoAnswer.error(format!(
            "{service} does not speak HTTP on {request}: {cause}\nhint: check that this is a Redfish service"
        ))
    }

    fn request(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn timed_out(&self) -> RedfishError {
        let (service, request) = (self.origin.shown(), self.request());
        let seconds = self.waited.as_secs() + u64::from(self.waited.subsec_nanos() > 0);
        Kind::TimedOut
            .error(format!("{service} did not answer {request} in {seconds} s\nhint: use a longer --timeout"))
    }

    fn io(&self, error: &io::Error) -> RedfishError {
        use io::ErrorKind as Found;
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return self.tls(error);
        }
        let cause = error.to_string();
        match error.kind() {
            Found::TimedOut | Found::WouldBlock => self.timed_out(),
            Found::UnexpectedEof | Found::ConnectionReset | Found::ConnectionAborted | Found::BrokenPipe => {
                let (service, request) = (self.origin.shown(), self.request());
                Kind::NoAnswer.error(format!(
                    "{service} closed the connection during {request} ({cause})\nhint: try again"
                ))
            }
            Found::ConnectionRefused
            | Found::HostUnreachable
            | Found::NetworkUnreachable
            | Found::AddrNotAvailable
            | Found::PermissionDenied => self.no_connection(&cause),
            // Errors of getaddrinfo have no kind.
            _ if cause.contains("lookup address") => self.no_such_host(),
            _ => self.not_http(&cause),
        }
    }

    fn tls(&self, error: &rustls::Error) -> RedfishError {
        use rustls::Error as Tls;
        let refused = match error {
            Tls::Other(other) => other.0.downcast_ref::<Refused>(),
            _ => None,
        };
        let error = refused.map_or(error, |refused| &refused.cause);
        let unknown = "its certificate is self-signed, or signed by a CA that this machine does not trust";
        let (cause, next) = match error {
            // A bad signature means another CA with the same name.
            Tls::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => (
                unknown.to_owned(),
                "name that CA's certificate with --ca FILE, or accept any certificate with --insecure",
            ),
            Tls::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => (
                format!("its certificate is for another name ({error})"),
                "use the name in the certificate, or accept any certificate with --insecure",
            ),
            Tls::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => (
                "its certificate has expired".to_owned(),
                "renew it, or accept any certificate with --insecure",
            ),
            // A CA certificate used as a server's, as many controllers generate.
            error if is_ca_as_server(error) => (
                "its certificate is a CA certificate, which is accepted only if named".to_owned(),
                "check that it belongs to the controller and name it with --ca FILE, or accept any certificate with \
                 --insecure",
            ),
            Tls::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => (
                "its certificate has another fingerprint than --pin".to_owned(),
                "check that this is the controller, and whether its certificate was renewed",
            ),
            Tls::InvalidCertificate(other) => (
                format!("its certificate is not accepted: {other}"),
                "name its CA with --ca FILE, or accept any certificate with --insecure",
            ),
            Tls::InvalidMessage(_) => (
                "the answer is not TLS".to_owned(),
                "check the port, and whether the service supports only http://",
            ),
            other => (other.to_string(), "check the controller's TLS settings (TLS 1.2 or 1.3 is required)"),
        };
        let service = self.origin.shown();
        let Some(refused) = refused else {
            return RedfishError::new(format!("TLS with {service} failed: {cause}\nhint: {next}"));
        };
        let fingerprint = certificate::shown(&refused.fingerprint);
        RedfishError::new(format!(
            "TLS with {service} failed: {cause}\nits fingerprint is {fingerprint}\nhint: {next}; or compare the \
             fingerprint with the controller's own page and accept it with --pin {fingerprint}"
        ))
    }
}
