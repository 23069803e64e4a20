//! Addresses of services, and which links may be followed.

use crate::{RedfishError, error::Kind};
use std::net::IpAddr;
use ureq::http::Uri;

/// Path of every service root (DSP0266).
pub(crate) const ROOT: &str = "/redfish/v1/";
const LINK_CHARS_MAX: usize = 2048;

/// Scheme, host and port: links may lead only there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl Origin {
    /// Parses the address of a service: `https://bmc`, or only the host. Rejects an address with credentials
    /// without repeating it. http needs this machine as host, or `--insecure`.
    pub fn parse(given: &str, is_insecure: bool) -> Result<Self, RedfishError> {
        if given.contains('@') {
            return Err(RedfishError::new(
                "cannot use the address: it contains an '@', and every user of this machine sees credentials on the \
                 command line\nhint: use --user, and --password-file or the prompt for the password",
            ));
        }
        let wrong = |why| {
            let given = cut(given, 200);
            RedfishError::new(format!(
                "cannot use --redfish {given}: {why}\nhint: expected https://HOST[:PORT], or only HOST"
            ))
        };
        let whole = if given.contains("://") { given.to_owned() } else { format!("https://{given}") };
        let uri: Uri = whole.parse().map_err(|_| wrong("not a service address"))?;
        if !matches!(uri.path().trim_end_matches('/'), "" | "/redfish" | "/redfish/v1")
            || uri.query().is_some()
        {
            return Err(wrong("its path is not the service root /redfish/v1"));
        }
        let origin =
            Self::of(&uri).ok_or_else(|| wrong("its scheme is neither https nor http, or it has no host"))?;
        if origin.scheme == "http" && !is_insecure && !origin.is_loopback() {
            return Err(RedfishError::new(format!(
                "http:// to {} sends the password in clear text\nhint: use https://, or accept it with --insecure",
                origin.host
            )));
        }
        Ok(origin)
    }

    fn of(uri: &Uri) -> Option<Self> {
        let scheme = match uri.scheme_str()?.to_ascii_lowercase().as_str() {
            "https" => "https",
            "http" => "http",
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        Some(Self { scheme, host, port: uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 }) })
    }

    fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Host and port, as shown in errors.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// True if the connection is not encrypted.
    pub fn is_plain(&self) -> bool {
        self.scheme == "http"
    }

    /// Full address of a path on this host.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}:{}{path}", self.scheme, self.host, self.port)
    }

    /// Path of a link that was found in `from`. Behind a tunnel a service names its own address; a path into a service
    /// is then asked here. Another link to another host is an error.
    pub(crate) fn path_of(&self, link: &str, from: &str) -> Result<String, RedfishError> {
        self.path(link, from, true)
    }

    /// Path of a redirect, which must stay on this host.
    pub(crate) fn path_of_redirect(&self, link: &str, from: &str) -> Result<String, RedfishError> {
        self.path(link, from, false)
    }

    fn path(&self, link: &str, from: &str, is_tunnel_possible: bool) -> Result<String, RedfishError> {
        let off_host = || {
            let link = cut(link, 200);
            Kind::Unusable.error(format!(
                    "the link from {from} to {link:?} leaves this service and is not followed\nhint: name that service \
                     with --redfish"
                ))
        };
        let is_plain =
            link.len() <= LINK_CHARS_MAX && link.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        let link = link.split('#').next().unwrap_or_default();
        if !is_plain || link.starts_with("//") {
            return Err(off_host());
        }
        if link.starts_with('/') {
            return Ok(link.to_owned());
        }
        let uri: Uri = link.parse().map_err(|_| off_host())?;
        let is_here =
            |origin: &Self, path: &str| *origin == *self || (is_tunnel_possible && is_service(path));
        match (Self::of(&uri), uri.path_and_query()) {
            (Some(origin), Some(path)) if is_here(&origin, path.path()) => Ok(path.as_str().to_owned()),
            _ => Err(off_host()),
        }
    }
}

/// True for paths below the service root.
fn is_service(path: &str) -> bool {
    path.starts_with(ROOT)
}

/// The start of a foreign text, without characters that control a terminal.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    // Including characters that change the text direction, and line separators.
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut kept: String = text.chars().map(|c| if steers(c) { ' ' } else { c }).take(chars_max).collect();
    if text.chars().nth(chars_max).is_some() {
        kept.push_str("...");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_accepted_in_common_forms() {
        for (given, url) in [
            ("bmc7", "https://bmc7:443/x"),
            ("https://BMC7/", "https://bmc7:443/x"),
            ("https://bmc7:8443/redfish/v1/", "https://bmc7:8443/x"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/x"),
            ("http://[::1]:8000/redfish", "http://[::1]:8000/x"),
            ("http://localhost", "http://localhost:80/x"),
        ] {
            assert_eq!(Origin::parse(given, false).unwrap().url("/x"), url, "{given}");
        }
    }

    #[test]
    fn addresses_that_leak_or_lead_elsewhere_are_refused() {
        let said = |given| Origin::parse(given, false).unwrap_err().to_string();
        assert!(said("http://10.0.0.9").contains("--insecure"));
        assert!(said("http://127.0.0.1.example.org").contains("--insecure"));
        assert!(Origin::parse("http://10.0.0.9", true).is_ok());
        let leak = said("https://admin:hunter2@bmc");
        assert!(leak.contains("--user") && !leak.contains("hunter2"), "{leak}");
        for given in
            ["", "https://", "ftp://bmc", "https://bmc/other", "https://bmc?x", "https://b mc", "/redfish/v1"]
        {
            assert!(said(given).contains("https://"), "{given}: {}", said(given));
        }
    }

    #[test]
    fn links_stay_on_the_host() {
        let origin = Origin::parse("https://bmc:8443", false).unwrap();
        let path = |link| origin.path_of(link, "/redfish/v1/");
        assert_eq!(path("/redfish/v1/Systems#/Members/0").unwrap(), "/redfish/v1/Systems");
        assert_eq!(path("https://bmc:8443/redfish/v1/Systems?a=b").unwrap(), "/redfish/v1/Systems?a=b");
        // Behind a tunnel. Nothing is sent to the host of the link.
        let tunnelled = path("https://10.0.0.7/redfish/v1/SessionService/Sessions/3").unwrap();
        assert_eq!(tunnelled, "/redfish/v1/SessionService/Sessions/3");
        let long = format!("/{}", "a".repeat(5000));
        for link in [
            "https://bmc/redfish",
            "https://elsewhere/redfish/v10/x",
            "http://bmc:8443/redfish",
            "https://evil:8443/x",
            "//evil/x",
            "https://user@evil/x",
            "Systems",
            "",
            "/a b",
            "/a\r\nX: y",
            "/\\evil",
            "/\u{e9}",
            &long,
        ] {
            assert!(path(link).unwrap_err().to_string().contains("leaves this service"), "{link}");
        }
    }
}
