//! Login: with a session if the service supports them, otherwise with Basic. A password is tried once, because
//! controllers lock accounts.

use crate::{
    Client, Credentials, RedfishError, Secret,
    address::ROOT,
    answer::{Answer, link},
    client::Call,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use ureq::http::Method;

#[derive(Debug, Default)]
pub(crate) enum Login {
    #[default]
    Nobody,
    /// Name and password go with each request.
    Basic(Secret),
    Session {
        /// Token sent with each request.
        token: Secret,
        /// Path at which the session is ended.
        path: Option<String>,
        /// The first session expired, and this is the second.
        is_second: bool,
    },
}

impl Login {
    /// Name and value of the authentication header.
    pub fn header(&self) -> Option<(&'static str, &Secret)> {
        match self {
            Self::Nobody => None,
            Self::Basic(value) => Some(("authorization", value)),
            Self::Session { token, .. } => Some(("x-auth-token", token)),
        }
    }
}

impl Client {
    /// Reads the service root and logs in as it describes.
    pub(crate) fn log_in_first(&mut self) -> Result<(), RedfishError> {
        let mut answer = self.exchange(&Call::get(ROOT))?;
        // The root needs no login (DSP0266). If it does, sessions cannot be found.
        if let (401, Some(credentials)) = (answer.status, self.options.credentials.clone()) {
            self.login = basic(&credentials);
            answer = self.exchange(&Call::get(ROOT))?;
            if answer.status == 401 {
                return Err(self.bad_credentials(&answer));
            }
        }
        if !answer.is_success() {
            return Err(self.refusal("GET", &answer));
        }
        self.root = answer.json()?;
        if self.root.get("Systems").is_none() && self.root.get("RedfishVersion").is_none() {
            return Err(RedfishError::shape(&answer.path, "RedfishVersion and Systems"));
        }
        match self.login {
            Login::Nobody => self.log_in(false),
            _ => Ok(()),
        }
    }

    fn log_in(&mut self, is_second: bool) -> Result<(), RedfishError> {
        let Some(credentials) = self.options.credentials.clone() else { return Ok(()) };
        let Some(path) = self.sessions_path()? else {
            self.login = basic(&credentials);
            return Ok(());
        };
        self.login = Login::Nobody;
        let body = json!({ "UserName": credentials.user, "Password": credentials.password.reveal() });
        let call = Call { method: Method::POST, body: Some(&body), ..Call::get(&path) };
        let mut answer = self.exchange(&call)?;
        self.login = match (answer.status, answer.token.take()) {
            (200..300, Some(token)) => {
                let place = answer.location.as_deref().map(|link| self.options.origin.path_of(link, &path));
                Login::Session { token, path: place.and_then(Result::ok), is_second }
            }
            _ if answer.has_message("PasswordChangeRequired") => return Err(self.needs_new_password()),
            // The service rejects sessions, not the user.
            (200..300 | 404 | 405 | 501, _) => basic(&credentials),
            _ if answer.has_message("SessionLimitExceeded") => basic(&credentials),
            (401 | 403, _) => return Err(self.bad_credentials(&answer)),
            // iLO 4 and early iLO 5.
            _ if answer.has_message("UnauthorizedLoginAttempt") => return Err(self.bad_credentials(&answer)),
            _ => return Err(self.refusal("POST", &answer)),
        };
        Ok(())
    }

    /// Path at which sessions are created; `None` if the service names none.
    fn sessions_path(&self) -> Result<Option<String>, RedfishError> {
        let origin = &self.options.origin;
        if let Some(link) = link(&self.root, "/Links/Sessions") {
            return origin.path_of(link, ROOT).map(Some);
        }
        let Some(link) = link(&self.root, "/SessionService") else { return Ok(None) };
        let service = origin.path_of(link, ROOT)?;
        Ok(Some(format!("{}/Sessions", service.trim_end_matches('/'))))
    }

    /// Renews a session that expired with a 401, once. Nothing else is tried twice.
    pub(crate) fn log_in_again(&mut self, answer: &Answer) -> Result<(), RedfishError> {
        match self.login {
            Login::Session { is_second: false, .. } => self.log_in(true),
            Login::Session { .. } => Err(self.session_lost()),
            Login::Basic(_) => Err(self.bad_credentials(answer)),
            Login::Nobody => Err(RedfishError::needs_credentials(&self.options.origin.shown())),
        }
    }

    /// Ends the session, if any. Returns a description of the problem, if any.
    pub(crate) fn log_out(&mut self) -> Option<String> {
        let Login::Session { path, .. } = &self.login else { return None };
        let ended = path.clone().map(|path| self.farewell(&path));
        self.login = Login::Nobody;
        let why = match ended {
            None => "the service did not give its path".to_owned(),
            // An unknown session has already ended.
            Some(Ok(answer)) if answer.is_success() || matches!(answer.status, 401 | 404) => return None,
            Some(Ok(answer)) => format!("status {}", answer.status),
            Some(Err(error)) => self.without_secrets(&error.to_string()),
        };
        Some(format!("cannot end the session ({why}); it ends when the service's idle timeout expires"))
    }

    /// A new or reset account, with which nothing can be done before its password is changed (DSP0266).
    pub(crate) fn needs_new_password(&self) -> RedfishError {
        let (service, user) = (self.options.origin.shown(), self.user());
        RedfishError::new(format!(
            "{service} requires a new password for user {user}\nhint: change it on the controller's own page, then run \
             this again"
        ))
    }

    fn bad_credentials(&self, answer: &Answer) -> RedfishError {
        let (service, user) = (self.options.origin.shown(), self.user());
        let said = self.said(&answer.messages());
        RedfishError::new(format!(
            "{service} rejected user {user}{said}; the login was tried once only, because management controllers lock \
             accounts\nhint: check the name and password"
        ))
    }

    pub(crate) fn session_lost(&self) -> RedfishError {
        let (service, user) = (self.options.origin.shown(), self.user());
        RedfishError::new(format!(
            "{service} ended the session of {user} twice during this run\nhint: check which client ends it, and the \
             session timeout"
        ))
    }
}

fn basic(credentials: &Credentials) -> Login {
    let pair = zeroize::Zeroizing::new(format!("{}:{}", credentials.user, credentials.password.reveal()));
    Login::Basic(Secret::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))))
}
