//! Errors of the network as errors of this crate.

use crate::{Origin, RedfishError, pinned::is_ca_as_server};
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
        let service = self.origin.shown();
        match error {
            ureq::Error::Timeout(_) => self.timed_out(),
            ureq::Error::HostNotFound => RedfishError::NoSuchHost { host: service },
            ureq::Error::Rustls(error) => self.tls(&error),
            ureq::Error::Tls(cause) => self.tls(&rustls::Error::General(cause.into())),
            ureq::Error::Io(error) => self.io(&error),
            ureq::Error::ConnectionFailed => {
                RedfishError::NoConnection { service, cause: "no address answers".into() }
            }
            other => RedfishError::NotHttp { service, request: self.request(), cause: other.to_string() },
        }
    }

    fn request(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn timed_out(&self) -> RedfishError {
        RedfishError::TimedOut {
            service: self.origin.shown(),
            request: self.request(),
            seconds: self.waited.as_secs() + u64::from(self.waited.subsec_nanos() > 0),
        }
    }

    fn io(&self, error: &io::Error) -> RedfishError {
        use io::ErrorKind as Kind;
        let inner = error.get_ref();
        if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return self.tls(error);
        }
        let (service, cause) = (self.origin.shown(), error.to_string());
        match error.kind() {
            Kind::TimedOut | Kind::WouldBlock => self.timed_out(),
            Kind::UnexpectedEof | Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
                RedfishError::Cut { service, request: self.request(), cause }
            }
            Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::AddrNotAvailable
            | Kind::PermissionDenied => RedfishError::NoConnection { service, cause },
            // Errors of getaddrinfo have no kind.
            _ if cause.contains("lookup address") => RedfishError::NoSuchHost { host: service },
            _ => RedfishError::NotHttp { service, request: self.request(), cause },
        }
    }

    fn tls(&self, error: &rustls::Error) -> RedfishError {
        use rustls::Error as Tls;
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
        RedfishError::Tls { service: self.origin.shown(), cause, next }
    }
}
