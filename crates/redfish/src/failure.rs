//! What the network's errors mean to a user.

use crate::{Origin, RedfishError, pinned::is_ca_as_server};
use rustls::CertificateError;
use std::{io, time::Duration};

/// What was asked of whom, for the words of an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub origin: &'a Origin,
    pub method: &'a str,
    pub path: &'a str,
    pub waited: Duration,
}

impl Asked<'_> {
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
            // What getaddrinfo says has no kind of its own.
            _ if cause.contains("lookup address") => RedfishError::NoSuchHost { host: service },
            _ => RedfishError::NotHttp { service, request: self.request(), cause },
        }
    }

    fn tls(&self, error: &rustls::Error) -> RedfishError {
        use rustls::Error as Tls;
        let unknown = "its certificate is signed by itself or by a CA that this machine does not trust";
        let (cause, next) = match error {
            // A bad signature is that of another CA with the same name.
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
            // A certificate that is its own CA and a server's: what many controllers make for themselves.
            error if is_ca_as_server(error) => (
                "its certificate is a CA's own, which is accepted only when it is named".to_owned(),
                "check that it is the controller's and name this certificate with --ca FILE, or accept any with \
                 --insecure",
            ),
            Tls::InvalidCertificate(other) => (
                format!("its certificate is not accepted: {other}"),
                "name its CA with --ca FILE, or accept any certificate with --insecure",
            ),
            Tls::InvalidMessage(_) => (
                "what answers there is not TLS".to_owned(),
                "check the port, or whether the service is http:// only",
            ),
            other => (other.to_string(), "check the controller's TLS settings (1.2 or 1.3 is needed)"),
        };
        RedfishError::Tls { service: self.origin.shown(), cause, next }
    }
}
