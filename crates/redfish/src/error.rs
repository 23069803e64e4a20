//! What can go wrong between lowlat and a service. Every text says what to do next; none holds a password or token.

/// Why a service could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedfishError {
    /// The address is none.
    #[error("--redfish {given}: {why}; expected https://HOST[:PORT], or only HOST")]
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name or password in the address. The address is not repeated.
    #[error(
        "the address holds an '@': credentials on the command line are seen by every user of this machine; give --user, \
         and the password by --password-file or at the prompt"
    )]
    CredentialsInAddress,
    /// What is sent could be read on the way.
    #[error(
        "http:// to {host} sends the password in the clear; use https://, or --insecure if you accept it"
    )]
    PlainHttp {
        /// The host.
        host: String,
    },
    /// A file named on the command line cannot be used.
    #[error("{option} {path}: {why}")]
    File {
        /// The option that named it.
        option: &'static str,
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// No terminal to ask on.
    #[error("there is no terminal to ask for the password on ({cause}); name a file with --password-file")]
    NoTerminal {
        /// What the system said.
        cause: String,
    },
    /// The service wants to know who asks.
    #[error("{service} wants credentials: name them with --user or --credentials-file")]
    NeedsCredentials {
        /// The host.
        service: String,
    },
    /// Name or password are not those of the service.
    #[error(
        "{service} refuses user {user}{said}; check name and password: it was tried once and is not tried again, since \
         management controllers lock accounts"
    )]
    BadCredentials {
        /// The host.
        service: String,
        /// The name.
        user: String,
        /// The service's words.
        said: String,
    },
    /// The session ended, and a second log-in did not help.
    #[error(
        "{service} ended the session of {user} twice during this run; see who ends it, or its session time"
    )]
    SessionLost {
        /// The host.
        service: String,
        /// The name.
        user: String,
    },
    /// The user lacks a privilege.
    #[error("{service} does not let {user} {request}{said}; the user needs the privilege to {needs}")]
    Forbidden {
        /// The host.
        service: String,
        /// The name.
        user: String,
        /// Method and path.
        request: String,
        /// The service's words.
        said: String,
        /// What for.
        needs: &'static str,
    },
    /// No host of this name.
    #[error("no host is named {host}: check --redfish, or name its address")]
    NoSuchHost {
        /// The name.
        host: String,
    },
    /// No connection.
    #[error(
        "cannot connect to {service}: {cause}; check address, port, and whether the controller's web service is on"
    )]
    NoConnection {
        /// The host.
        service: String,
        /// What the system said.
        cause: String,
    },
    /// No answer in time.
    #[error("{service} did not answer {request} in {seconds} s; --timeout SECONDS waits longer")]
    TimedOut {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The whole took too long.
    #[error(
        "{service} is too slow: all requests together may take {seconds} s; try again when it is less busy"
    )]
    TooSlow {
        /// The host.
        service: String,
        /// The bound.
        seconds: u64,
    },
    /// The connection ended too early.
    #[error("{service} cut the connection in the middle of {request} ({cause}); try again")]
    Cut {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// What the system said.
        cause: String,
    },
    /// No trust, or no common language.
    #[error("TLS with {service} failed: {cause}; {next}")]
    Tls {
        /// The host.
        service: String,
        /// What was wrong.
        cause: String,
        /// What to do.
        next: &'static str,
    },
    /// Nobody to trust.
    #[error(
        "this machine trusts no CA{cause}, so no certificate can be verified: install its CA certificates (package \
         ca-certificates), or name one with --ca FILE"
    )]
    NoRoots {
        /// What was wrong with the store.
        cause: String,
    },
    /// What came was no HTTP.
    #[error("{service} does not speak HTTP as expected on {request}: {cause}; is this a Redfish service?")]
    NotHttp {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// What was wrong.
        cause: String,
    },
    /// An answer without end.
    #[error("the answer of {path} has more than {bytes_max} bytes; no BIOS resource or registry is so large")]
    TooLarge {
        /// Its path.
        path: String,
        /// The bound.
        bytes_max: usize,
    },
    /// Requests without end.
    #[error(
        "{service} leads from link to link: {requests_max} requests were not enough; save its answers and use --file"
    )]
    TooManyRequests {
        /// The host.
        service: String,
        /// The bound.
        requests_max: usize,
    },
    /// A redirect to a redirect.
    #[error("{path} is redirected again and again; name the address where it ends with --redfish")]
    Redirected {
        /// Its path.
        path: String,
    },
    /// A link that leads away from the service.
    #[error(
        "{from} leads to {link:?}, which is not on this service, and is not followed; name that service with --redfish"
    )]
    OffHost {
        /// Where the link stood.
        from: String,
        /// The link.
        link: String,
    },
    /// No JSON.
    #[error("the answer of {path} is not JSON ({cause}); it begins {begin:?}; is this a Redfish service?")]
    NotJson {
        /// Its path.
        path: String,
        /// What the parser says.
        cause: String,
        /// How the answer begins.
        begin: String,
    },
    /// JSON without what must be there.
    #[error("the answer of {path} has no {expected}; is this a Redfish service?")]
    Shape {
        /// Its path.
        path: String,
        /// What is missing.
        expected: &'static str,
    },
    /// The service is there and cannot answer now.
    #[error("{service} is busy{said}; {next}")]
    Busy {
        /// The host.
        service: String,
        /// The service's words.
        said: String,
        /// When to come back.
        next: String,
    },
    /// Not there.
    #[error("{service} has no {path}{said}")]
    NotFound {
        /// The host.
        service: String,
        /// Its path.
        path: String,
        /// The service's words.
        said: String,
    },
    /// Another refusal.
    #[error("{service} answered {request} with status {status}{said}")]
    Status {
        /// The host.
        service: String,
        /// Method and path.
        request: String,
        /// The status.
        status: u16,
        /// The service's words.
        said: String,
    },
    /// No choice can be made among several systems.
    #[error("the service has {count} systems: {ids}; choose one with --system ID")]
    WhichSystem {
        /// How many.
        count: usize,
        /// Their ids.
        ids: String,
    },
    /// No system of that id.
    #[error("the service has no system {wanted:?}; it has: {ids}")]
    NoSuchSystem {
        /// The id.
        wanted: String,
        /// Their ids.
        ids: String,
    },
    /// This service tells nothing of BIOS settings.
    #[error(
        "system {system} of {product} has no Bios resource{cause}: this service does not offer BIOS settings over Redfish"
    )]
    NoBios {
        /// Its id.
        system: String,
        /// What the service calls itself.
        product: String,
        /// The refusal.
        cause: String,
    },
    /// The resources do not hold what they should.
    #[error(transparent)]
    Resources(#[from] lowlat_model::bios::BiosError),
    /// Changes have no place to go.
    #[error(
        "the Bios resource names no settings resource (@Redfish.Settings): this service takes no changes"
    )]
    NoSettings,
    /// Somebody else changed the settings meanwhile.
    #[error(
        "the pending settings were changed by somebody else since they were read; nothing was changed: run it again"
    )]
    ChangedMeanwhile,
    /// The task that makes the change failed.
    #[error("the service took the request and then failed it: task {path} is {state}{said}")]
    TaskFailed {
        /// The task.
        path: String,
        /// Its state.
        state: String,
        /// The service's words.
        said: String,
    },
    /// The service said yes and did nothing.
    #[error(
        "the service answered status {status}, yet its pending settings do not hold what was sent: {attributes}{said}; \
         nothing more was sent; run `lowlat bios audit` to see what waits, and look into the service's log"
    )]
    NotApplied {
        /// The status.
        status: u16,
        /// Each attribute with what was sent and what stands there.
        attributes: String,
        /// The service's words.
        said: String,
    },
    /// Sent, and nobody knows whether it was taken.
    #[error(
        "{cause}; the change had been sent and may wait for the next restart: run `lowlat bios audit` to see"
    )]
    Unknown {
        /// What went wrong after sending.
        cause: Box<RedfishError>,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl RedfishError {
    /// Whether Ctrl-C ended it.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Unknown { cause } => cause.is_interrupted(),
            _ => false,
        }
    }
}
