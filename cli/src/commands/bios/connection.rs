//! Connection to a Redfish service: address, credentials, certificates.

use crate::{arguments::duration_within, exit::Interrupted, output, results, signals};
use anyhow::bail;
use clap::Args;
use lowlat_bios::without_secrets;
use lowlat_host_run::output::{FileAccess, OutputDirectory, OutputError, OutputFile};
use lowlat_redfish::{
    Client, Credentials, Options, Origin, RedfishError, RedfishLimits, Resource, Saved, Trust, ask_password,
};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Redfish service")]
pub struct Connection {
    /// Connect to this management controller: https://HOST, https://HOST:PORT or HOST
    #[arg(long, value_name = "URL")]
    pub redfish: Option<String>,
    /// Select this system if the service has several
    #[arg(long, value_name = "ID")]
    system: Option<String>,
    /// Log in as this user; the terminal prompts for the password
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Read the password from this file: one line, not world-readable
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Read "user: NAME" and "password: PASSWORD" lines from this file; not world-readable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "password_file"])]
    credentials_file: Option<PathBuf>,
    /// Trust this CA certificate (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Accept only the certificate with this SHA-256 fingerprint, whatever its names and age
    #[arg(long, value_name = "sha256:HEX", conflicts_with_all = ["ca", "insecure"],
          value_parser = Trust::fingerprint)]
    pin: Option<Trust>,
    /// Skip certificate verification and allow http://; anyone in between can read the password
    #[arg(long)]
    insecure: bool,
    /// Wait this long for each response
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = timeout)]
    timeout: Duration,
    /// Save the service's responses in this directory; --file reads them
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

fn timeout(text: &str) -> Result<Duration, String> {
    duration_within(text, Duration::from_secs(1)..=Duration::from_secs(600), "1 s to 10 min")
}

/// A service to connect to.
pub struct ServiceTarget {
    origin: Origin,
    trust: Trust,
    files: Vec<(Resource, OutputFile)>,
}

/// Open connection to a service.
pub struct Service<'a> {
    pub client: Client,
    connection: &'a Connection,
    files: Vec<(Resource, OutputFile)>,
}

const ALL: [Resource; 4] = [Resource::System, Resource::Bios, Resource::Settings, Resource::Registry];

impl Connection {
    /// Refuses options of a service that would be ignored.
    pub fn refuse_unused(&self) -> anyhow::Result<()> {
        let given = [
            ("--system", self.system.is_some()),
            ("--user", self.user.is_some()),
            ("--credentials-file", self.credentials_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--pin", self.pin.is_some()),
            ("--insecure", self.insecure),
            ("--save", self.save.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                bail!(
                    "{option} requires a Redfish service\nhint: name the service with --redfish instead of --file"
                )
            }
            None => Ok(()),
        }
    }

    /// Logs in, after checking everything that can fail on this machine.
    pub fn open(&self) -> anyhow::Result<Service<'_>> {
        let Some(given) = &self.redfish else { bail!("no service named\nhint: name one with --redfish") };
        let target = self.target(given, self.trust(), false)?;
        // Before the prompt: from here on, Ctrl-C also ends the session.
        let stop = signals::stop_flag()?;
        let credentials = self.credentials(&target.origin.shown()).map_err(in_words)?;
        self.connect(target, credentials, stop)
    }

    /// Checks everything about a service that can fail on this machine. With several, `--save` has a directory for
    /// each.
    pub fn target(&self, given: &str, trust: Trust, is_one_of_many: bool) -> anyhow::Result<ServiceTarget> {
        let origin = Origin::parse(given, self.insecure)?;
        let folder = is_one_of_many.then(|| origin.shown().replace(['[', ']', ':'], "-"));
        let files = self.prepare_files(folder.as_deref())?;
        if trust == Trust::Anybody {
            output::talk(&format!(
                "warning: --insecure: the identity of {} is not verified; anyone in between can read the password",
                origin.shown()
            ));
        }
        Ok(ServiceTarget { origin, trust, files })
    }

    /// Logs in.
    pub fn connect(
        &self,
        target: ServiceTarget,
        credentials: Option<Credentials>,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Service<'_>> {
        let ServiceTarget { origin, trust, files } = target;
        let limits = RedfishLimits { request_time: self.timeout, ..RedfishLimits::default() };
        let client = Client::open(Options { origin, trust, credentials, limits, stop }).map_err(in_words)?;
        Ok(Service { client, connection: self, files })
    }

    /// The certificates that the options accept.
    pub fn trust(&self) -> Trust {
        match (&self.ca, &self.pin) {
            (Some(path), _) => Trust::CaFile(path.clone()),
            (None, Some(pin)) => pin.clone(),
            (None, None) if self.insecure => Trust::Anybody,
            (None, None) => Trust::System,
        }
    }

    /// Name and password for what is `named` so in the prompt.
    pub fn credentials(&self, named: &str) -> Result<Option<Credentials>, RedfishError> {
        if let Some(path) = &self.credentials_file {
            return Credentials::from_file(path).map(Some);
        }
        let Some(user) = &self.user else { return Ok(None) };
        if let Some(path) = &self.password_file {
            return Credentials::from_password_file(user, path).map(Some);
        }
        let password = ask_password(&format!("Password for {user} at {named}: "))?;
        Ok(Some(Credentials { user: user.clone(), password }))
    }

    /// Prepares the files of --save. Existing files are refused: a mix of two runs would be read as one server.
    fn prepare_files(&self, folder: Option<&str>) -> anyhow::Result<Vec<(Resource, OutputFile)>> {
        let Some(dir) = &self.save else { return Ok(Vec::new()) };
        let failed = |error: OutputError| results::in_words(&error, "name another directory with --save");
        let dir = folder.map_or_else(|| dir.clone(), |folder| dir.join(folder));
        let dir = OutputDirectory::create(&dir).map_err(failed)?;
        let prepare = |resource: Resource| {
            let file = dir.file(resource.file_name().as_ref(), FileAccess::Private);
            if file.exists() {
                bail!(
                    "{} already exists from an earlier run\nhint: name another directory with --save",
                    file.path().display()
                );
            }
            file.check().map_err(failed)?;
            Ok((resource, file))
        };
        ALL.into_iter().map(prepare).collect()
    }
}

impl Service<'_> {
    /// Reads the server's settings, and saves the responses if requested.
    pub fn read(&mut self) -> anyhow::Result<Saved> {
        let saved =
            lowlat_redfish::read(&mut self.client, self.connection.system.as_deref()).map_err(in_words)?;
        for (resource, file) in &self.files {
            let answer = saved.answers.iter().find(|(kind, ..)| kind == resource);
            if let Some((_, _, bytes)) = answer {
                file.write_new(&without_secrets(bytes))
                    .map_err(|error| results::in_words(&error, "name another directory with --save"))?;
                output::talk(&format!("wrote {}", file.path().display()));
            }
        }
        Ok(saved)
    }

    /// Ends the session. A failure is only a warning.
    pub fn close(self) {
        if let Some(problem) = self.client.close() {
            output::talk(&format!("warning: {problem}"));
        }
    }
}

/// Converts the error for the command line; Ctrl-C has a separate exit code.
pub fn in_words(error: RedfishError) -> anyhow::Error {
    match error {
        _ if error.is_interrupted() && error.is_outcome_unknown() => {
            let what = "changing the settings; the request was sent, so the change may be pending\nhint: check with \
                        `lowlat bios audit`";
            Interrupted(what.into()).into()
        }
        _ if error.is_interrupted() => {
            Interrupted("communicating with the service; nothing was changed".into()).into()
        }
        other => other.into(),
    }
}
