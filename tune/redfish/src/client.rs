//! Requests, one at a time and bounded, and their session.

use crate::{
    Credentials, Origin, RedfishError, Trust, address::cut, answer::Answer, error::Kind,
    failure::RequestContext, session::Login,
};
use serde_json::Value;
use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use ureq::{
    Agent, Body,
    http::{HeaderValue, Method, Request, Response, header},
    unversioned::{
        resolver::DefaultResolver,
        transport::{Connector, TcpConnector},
    },
};

/// Repetitions of a request that a busy service put off.
const RETRIES_MAX: usize = 3;
/// Longest time that a busy service may ask for.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Time limit for ending a session.
const FAREWELL_TIME: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Options {
    pub origin: Origin,
    pub trust: Trust,
    /// Credentials; `None` if the service needs none.
    pub credentials: Option<Credentials>,
    pub limits: RedfishLimits,
    /// Raised by Ctrl-C: no further request starts.
    pub stop: Arc<AtomicBool>,
}

/// Limits on a service's use of resources. No service is trusted to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedfishLimits {
    /// Time for one request and its answer.
    pub request_time: Duration,
    /// Time for all requests together.
    pub total_time: Duration,
    pub requests_max: usize,
    /// Bytes of one answer, uncompressed.
    pub answer_bytes_max: usize,
    pub members_max: usize,
    pub redirects_max: usize,
    /// Time to wait for a task of the service.
    pub task_time: Duration,
    /// Time within which changed settings must appear in the settings resource.
    pub read_back_time: Duration,
}

impl Default for RedfishLimits {
    fn default() -> Self {
        Self {
            request_time: Duration::from_secs(30),
            total_time: Duration::from_secs(600),
            requests_max: 200,
            answer_bytes_max: lowlat_bios::BYTES_MAX,
            members_max: 512,
            redirects_max: 3,
            task_time: Duration::from_secs(60),
            read_back_time: Duration::from_secs(5),
        }
    }
}

/// A connection to a service. Dropping it ends the session, also after an error.
pub struct Client {
    agent: Agent,
    pub(crate) options: Options,
    pub(crate) login: Login,
    pub(crate) root: Value,
    began: Instant,
    requests: usize,
}

pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<&'a Value>,
    pub if_match: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: None, if_match: None }
    }
}

impl Client {
    /// Reads the service root and logs in.
    pub fn open(options: Options) -> Result<Self, RedfishError> {
        let config = Agent::config_builder()
            // Proxies of the environment must not see a controller's password.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(64 << 10)
            .user_agent(concat!("lowlat/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = match options.trust.connector(options.origin.is_plain())? {
            Some(tls) => {
                Agent::with_parts(config, TcpConnector::default().chain(tls), DefaultResolver::default())
            }
            None => config.into(),
        };
        let mut client = Self {
            agent,
            options,
            login: Login::default(),
            root: Value::Null,
            began: Instant::now(),
            requests: 0,
        };
        client.log_in_first()?;
        Ok(client)
    }

    /// Ends the session. Returns the problem if the service refused.
    pub fn close(mut self) -> Option<String> {
        self.log_out()
    }

    /// The service's name for itself.
    pub fn product(&self) -> String {
        let text = |name: &str| self.root.get(name).and_then(Value::as_str).map(|text| cut(text.trim(), 80));
        let named: Vec<String> =
            ["Vendor", "Product"].into_iter().filter_map(text).filter(|text| !text.is_empty()).collect();
        let name = if named.is_empty() { text("Name").unwrap_or_default() } else { named.join(" ") };
        let host = self.options.origin.shown();
        if name.is_empty() { host } else { format!("{host} ({name})") }
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer, RedfishError> {
        let mut answer = self.request(&Call::get(path))?;
        // A busy controller says when to ask again.
        for _ in 0..RETRIES_MAX {
            let asked = answer.retry_after.as_deref().and_then(|wait| wait.trim().parse().ok());
            let asked = asked.map(Duration::from_secs).filter(|asked| *asked <= RETRY_WAIT_MAX);
            let Some(asked) = asked.filter(|_| matches!(answer.status, 429 | 503)) else {
                break;
            };
            if asked > self.time_left()? {
                break;
            }
            self.wait(asked)?;
            answer = self.request(&Call::get(path))?;
        }
        if answer.is_success() { Ok(answer) } else { Err(self.refusal("GET", &answer)) }
    }

    /// Sends a request. An expired session is renewed once.
    pub(crate) fn request(&mut self, call: &Call<'_>) -> Result<Answer, RedfishError> {
        let answer = self.exchange(call)?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.log_in_again(&answer)?;
        let answer = self.exchange(call)?;
        if answer.status == 401 { Err(self.session_lost()) } else { Ok(answer) }
    }

    /// Sends a request with the current login, and follows redirects on the same host.
    pub(crate) fn exchange(&mut self, call: &Call<'_>) -> Result<Answer, RedfishError> {
        let mut path = call.path.to_owned();
        for _ in 0..=self.options.limits.redirects_max {
            let left = self.admit()?;
            let answer = match self.once(call, &path, left) {
                // The run's limit, not the request's, ended it: a longer --timeout would not help.
                Err(error) if error.kind == Kind::TimedOut && left < self.options.limits.request_time => {
                    return Err(self.too_slow());
                }
                answered => answered?,
            };
            // 307 and 308 keep the method and body, and stay on the same host. Others would turn a change into
            // a GET.
            let is_redirect = matches!(answer.status, 307 | 308)
                || (matches!(answer.status, 301..=303) && call.method == Method::GET);
            match answer.location.as_deref().filter(|_| is_redirect) {
                Some(location) => path = self.options.origin.path_of_redirect(location, &path)?,
                None => return Ok(answer),
            }
        }
        Err(RedfishError::new(format!(
            "cannot read {path}: too many redirects\nhint: name the final address with --redfish"
        )))
    }

    /// Ends the session, even if limits are reached or after Ctrl-C.
    pub(crate) fn farewell(&mut self, path: &str) -> Result<Answer, RedfishError> {
        let time = FAREWELL_TIME.min(self.options.limits.request_time);
        self.once(&Call { method: Method::DELETE, ..Call::get(path) }, path, time)
    }

    /// Returns the time for the next request, or an error if none may start.
    fn admit(&mut self) -> Result<Duration, RedfishError> {
        let left = self.time_left()?;
        let requests_max = self.options.limits.requests_max;
        if self.requests >= requests_max {
            let service = self.options.origin.shown();
            return Err(RedfishError::new(format!(
                "cannot read {service}: {requests_max} requests were not enough to follow its links\nhint: save its \
                 answers and use --file"
            )));
        }
        self.requests += 1;
        Ok(left)
    }

    /// Time for a request, or an error if the run's time is up.
    pub(crate) fn time_left(&self) -> Result<Duration, RedfishError> {
        self.check_stop()?;
        let limits = self.options.limits;
        let left = limits.total_time.saturating_sub(self.began.elapsed());
        if left.is_zero() {
            return Err(self.too_slow());
        }
        Ok(left.min(limits.request_time))
    }

    fn too_slow(&self) -> RedfishError {
        let (service, seconds) = (self.options.origin.shown(), self.options.limits.total_time.as_secs());
        Kind::NoAnswer.error(format!(
                "{service} is too slow: all requests together took more than {seconds} s\nhint: try again when it is \
                 less busy"
            ))
    }

    pub(crate) fn check_stop(&self) -> Result<(), RedfishError> {
        // Relaxed: a lone flag.
        if self.options.stop.load(Ordering::Relaxed) { Err(RedfishError::interrupted()) } else { Ok(()) }
    }

    /// Waits, but no longer than until Ctrl-C.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), RedfishError> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.check_stop()?;
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }

    fn once(&self, call: &Call<'_>, path: &str, time: Duration) -> Result<Answer, RedfishError> {
        let asked =
            RequestContext { origin: &self.options.origin, method: call.method.as_str(), path, waited: time };
        let failed = |error| asked.failed(error);
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(self.options.origin.url(path))
            .header(header::ACCEPT, "application/json")
            .header("OData-Version", "4.0");
        if let Some((name, value)) = self.login.header() {
            let mut value = HeaderValue::from_str(value.reveal())
                .map_err(|error| failed(ureq::Error::Http(error.into())))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        if let Some(etag) = call.if_match {
            request = request.header(header::IF_MATCH, etag);
        }
        let sent = match call.body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
                self.run(request, time)
            }
            None => self.run(request.body(()), time),
        };
        self.read(sent.map_err(failed)?, &asked)
    }

    fn run(
        &self,
        request: Result<Request<impl ureq::AsSendBody>, ureq::http::Error>,
        time: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        self.agent.run(self.agent.configure_request(request?).timeout_global(Some(time)).build())
    }

    /// Reads the answer with its body, within the limits.
    fn read(&self, response: Response<Body>, asked: &RequestContext<'_>) -> Result<Answer, RedfishError> {
        let path = asked.path;
        let (parts, mut body) = response.into_parts();
        let text = |name: &str| parts.headers.get(name)?.to_str().ok().map(|text| cut(text, 2048));
        let bytes_max = self.options.limits.answer_bytes_max;
        let mut bytes = Vec::new();
        let mut reader = body.as_reader();
        let mut chunk = vec![0; 16 << 10];
        loop {
            self.check_stop()?;
            let count = reader.read(&mut chunk).map_err(|error| asked.failed(error.into()))?;
            if count == 0 {
                break;
            }
            if bytes.len() + count > bytes_max {
                return Err(Kind::NoAnswer.error(format!(
                        "cannot read {path}: it has more than {bytes_max} bytes, and no BIOS resource or registry is \
                         that large"
                    )));
            }
            bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
        Ok(Answer {
            path: path.to_owned(),
            status: parts.status.as_u16(),
            etag: text("etag"),
            location: text("location"),
            retry_after: text("retry-after"),
            allow: text("allow"),
            token: text("x-auth-token").map(crate::Secret::new),
            body: bytes,
        })
    }

    /// The service's messages as the end of a sentence, without secrets: a service may echo what it received.
    pub(crate) fn said(&self, messages: &[String]) -> String {
        if messages.is_empty() {
            String::new()
        } else {
            format!(": {}", self.without_secrets(&messages.join(" ")))
        }
    }

    pub(crate) fn without_secrets(&self, text: &str) -> String {
        let password = self.options.credentials.as_ref().map(|credentials| &credentials.password);
        let token = self.login.header().map(|(_, value)| value);
        let secrets = password.into_iter().chain(token).filter(|secret| !secret.reveal().is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.reveal(), "***"))
    }

    /// The error for an unsuccessful status.
    pub(crate) fn refusal(&self, method: &str, answer: &Answer) -> RedfishError {
        let (service, said) = (self.options.origin.shown(), self.said(&answer.messages()));
        let path = &answer.path;
        match answer.status {
            401 if self.options.credentials.is_none() => RedfishError::needs_credentials(&service),
            403 if answer.has_message("PasswordChangeRequired") => self.needs_new_password(),
            403 => {
                let user = self.user();
                let needs = if method == "GET" {
                    "read BIOS settings"
                } else {
                    "change BIOS settings (ConfigureComponents)"
                };
                Kind::Refused.error(format!(
                    "{service} refused {method} {path} for user {user}{said}\nhint: give the user the privilege to {needs}"
                ))
            }
            404 => Kind::NotFound.error(format!("{service} has no {path}{said}")),
            429 | 503 => {
                let next = match answer.retry_after.as_deref().map(|wait| cut(wait, 40)) {
                    Some(wait) if wait.bytes().all(|b| b.is_ascii_digit()) => {
                        format!("try again in {wait} s, as the service asks")
                    }
                    Some(date) => format!("try again at {date}, as the service asks"),
                    None => "try again later".into(),
                };
                RedfishError::new(format!("{service} is busy{said}\nhint: {next}"))
            }
            status => {
                let text = format!("{service} answered {method} {path} with status {status}{said}");
                Kind::Refused.error(text)
            }
        }
    }

    pub(crate) fn user(&self) -> String {
        self.options.credentials.as_ref().map_or_else(|| "nobody".into(), |who| cut(&who.user, 80))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Callers that need the result call close().
        let _ = self.log_out();
    }
}
