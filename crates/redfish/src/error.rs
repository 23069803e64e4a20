//! Errors between lowlat and a service. Each suggests a next step; none contains a password or token.

/// Why a service could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedfishError {
    /// The address is invalid.
    #[error("cannot use --redfish {given}: {why}\nhint: expected https://HOST[:PORT], or only HOST")]
    Address {
        /// The address as given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The address contains a name or password. It is not repeated.
    #[error(
        "cannot use the address: it contains an '@', and every user of this machine sees credentials on the command line\nhint: use --user, \
         and --password-file or the prompt for the password"
    )]
    CredentialsInAddress,
    /// Credentials would be readable on the way.
    #[error(
        "http:// to {host} sends the password in clear text\nhint: use https://, or accept it with --insecure"
    )]
    PlainHttp {
        /// The host.
        host: String,
    },
    /// A file named on the command line cannot be used.
    #[error("cannot use {option} {path}: {why}")]
    File {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// The cause.
        why: String,
    },
    /// There is no terminal for the password prompt.
    #[error("cannot ask for the password: no terminal ({cause})\nhint: name a file with --password-file")]
    NoTerminal {
        /// The system's error.
        cause: String,
    },
    /// The service requires credentials.
    #[error("{service} requires credentials\nhint: give --user or --credentials-file")]
    NeedsCredentials {
        /// The host.
        service: String,
    },
    /// The service rejected the name or password.
    #[error(
        "{service} rejected user {user}{said}; the login was tried once only, because \
         management controllers lock accounts\nhint: check the name and password"
    )]
    BadCredentials {
        /// The host.
        service: String,
        /// The user name.
        user: String,
        /// The service's messages.
        said: String,
    },
    /// The session ended, and so did a second one.
    #[error(
        "{service} ended the session of {user} twice during this run\nhint: check which client ends it, and the session timeout"
    )]
    SessionLost {
        /// The host.
        service: String,
        /// The user name.
        user: String,
    },
    /// The user lacks a privilege.
    #[error(
        "{service} refused {request} for user {user}{said}\nhint: give the user the privilege to {needs}"
    )]
    Forbidden {
        /// The host.
        service: String,
        /// The user name.
        user: String,
        /// Method and path.
        request: String,
        /// The service's messages.
        said: String,
        /// What the privilege is needed for.
        needs: &'static str,
    },
    /// The host name cannot be resolved.
    #[error("cannot find host {host}\nhint: check --redfish, or use its IP address")]
    NoSuchHost {
        /// The name.
        host: String,
    },
    /// The connection failed.
    #[error(
        "cannot connect to {service}: {cause}\nhint: check the address, the port, and whether the controller's web service is on"
    )]
    NoConnection {
        /// The host.
        service: String,
        /// The system's error.
        cause: String,
    },
    /// The answer timed out.
    #[error("{service} did not answer {request} in {seconds} s\nhint: raise --timeout SECONDS")]
    TimedOut {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// All requests together took too long.
    #[error(
        "{service} is too slow: all requests together took more than {seconds} s\nhint: try again when it is less busy"
    )]
    TooSlow {
        /// The host.
        service: String,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The connection ended early.
    #[error("{service} closed the connection during {request} ({cause})\nhint: try again")]
    Cut {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// The system's error.
        cause: String,
    },
    /// TLS failed: no trust, or no common version.
    #[error("TLS with {service} failed: {cause}\nhint: {next}")]
    Tls {
        /// The host.
        service: String,
        /// The problem.
        cause: String,
        /// What to do about it.
        next: &'static str,
    },
    /// This machine has no trusted CAs.
    #[error(
        "cannot verify any certificate: this machine trusts no CA{cause}\nhint: install CA certificates (package \
         ca-certificates), or name one with --ca FILE"
    )]
    NoRoots {
        /// Problem of the certificate store.
        cause: String,
    },
    /// The answer is not HTTP.
    #[error(
        "{service} does not speak HTTP on {request}: {cause}\nhint: check that this is a Redfish service"
    )]
    NotHttp {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// The problem.
        cause: String,
    },
    /// The answer is too large.
    #[error(
        "cannot read {path}: it has more than {bytes_max} bytes, and no BIOS resource or registry is that large"
    )]
    TooLarge {
        /// Its path.
        path: String,
        /// The limit.
        bytes_max: usize,
    },
    /// The links lead on without end.
    #[error(
        "cannot read {service}: {requests_max} requests were not enough to follow its links\nhint: save its answers and use --file"
    )]
    TooManyRequests {
        /// The host.
        service: String,
        /// The limit.
        requests_max: usize,
    },
    /// Too many redirects.
    #[error("cannot read {path}: too many redirects\nhint: name the final address with --redfish")]
    Redirected {
        /// Its path.
        path: String,
    },
    /// A link leads to another service.
    #[error(
        "the link from {from} to {link:?} leaves this service and is not followed\nhint: name that service with --redfish"
    )]
    OffHost {
        /// The resource with the link.
        from: String,
        /// The link.
        link: String,
    },
    /// The answer is not JSON.
    #[error(
        "the answer of {path} is not JSON ({cause}); it starts with {begin:?}\nhint: check that this is a Redfish service"
    )]
    NotJson {
        /// Its path.
        path: String,
        /// The parser's error.
        cause: String,
        /// Start of the answer.
        begin: String,
    },
    /// A required part of the answer is missing.
    #[error("the answer of {path} has no {expected}\nhint: check that this is a Redfish service")]
    Shape {
        /// Its path.
        path: String,
        /// The missing part.
        expected: &'static str,
    },
    /// The service is temporarily unavailable.
    #[error("{service} is busy{said}\nhint: {next}")]
    Busy {
        /// The host.
        service: String,
        /// The service's messages.
        said: String,
        /// When to try again.
        next: String,
    },
    /// The resource does not exist.
    #[error("{service} has no {path}{said}")]
    NotFound {
        /// The host.
        service: String,
        /// Its path.
        path: String,
        /// The service's messages.
        said: String,
    },
    /// Any other unsuccessful status.
    #[error("{service} answered {request} with status {status}{said}")]
    Status {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// The status.
        status: u16,
        /// The service's messages.
        said: String,
    },
    /// The service has several systems, and none was chosen.
    #[error("the service has {count} systems: {ids}\nhint: choose one with --system ID")]
    WhichSystem {
        /// Number of systems.
        count: usize,
        /// Their ids.
        ids: String,
    },
    /// The chosen system does not exist.
    #[error("the service has no system {wanted:?}; its systems: {ids}")]
    NoSuchSystem {
        /// The requested id.
        wanted: String,
        /// Their ids.
        ids: String,
    },
    /// The service has no BIOS settings.
    #[error(
        "system {system} of {product} has no Bios resource{cause}: this service does not offer BIOS settings over Redfish"
    )]
    NoBios {
        /// Its id.
        system: String,
        /// The service's name for itself.
        product: String,
        /// The service's error.
        cause: String,
    },
    /// The resources lack what they must contain.
    #[error(transparent)]
    Resources(#[from] lowlat_bios::BiosError),
    /// The service accepts no changes.
    #[error(
        "the Bios resource names no settings resource (@Redfish.Settings): this service accepts no changes"
    )]
    NoSettings,
    /// Another client changed the settings in between.
    #[error(
        "another client changed the pending settings since they were read; nothing was changed\nhint: run it again"
    )]
    ChangedMeanwhile,
    /// The task of the change failed.
    #[error("the service accepted the request, but its task {path} ended as {state}{said}")]
    TaskFailed {
        /// The task.
        path: String,
        /// Its state.
        state: String,
        /// The service's messages.
        said: String,
    },
    /// The service reported success, but the settings do not show the change.
    #[error(
        "the service answered status {status}, but its pending settings differ from the request: {attributes}{said}; \
         nothing more was sent\nhint: run `lowlat bios audit` to list pending settings, and check the service's log"
    )]
    NotApplied {
        /// The status.
        status: u16,
        /// The differing attributes, with requested and current values.
        attributes: String,
        /// The service's messages.
        said: String,
    },
    /// The change was sent, but its outcome is unknown.
    #[error(
        "{}; the change had been sent and may take effect at the next restart\nhint: run `lowlat bios audit` to check", .cause.without_hint()
    )]
    Unknown {
        /// The error after sending.
        cause: Box<RedfishError>,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl RedfishError {
    /// The text without its hint, for use inside another sentence.
    pub fn without_hint(&self) -> String {
        let mut text = self.to_string();
        text.truncate(text.find("\nhint: ").unwrap_or(text.len()));
        text
    }

    /// Whether Ctrl-C caused it.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Unknown { cause } => cause.is_interrupted(),
            _ => false,
        }
    }
}
