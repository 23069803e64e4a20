//! How a Redfish service is reached, and who asks.

use crate::{
    output::{self, Interrupted},
    results, signals,
};
use anyhow::bail;
use clap::Args;
use lowlat_redfish::{
    Client, Credentials, Limits, Options, Origin, RedfishError, Resource, Saved, Trust, ask_password,
};
use lowlat_sys::output::{Access, OutputDirectory, OutputError, OutputFile};
use std::{path::PathBuf, time::Duration};

#[derive(Debug, Args)]
#[command(next_help_heading = "Redfish service")]
pub struct Connection {
    /// Address of the management controller, as https://HOST, https://HOST:PORT or only HOST
    #[arg(long, value_name = "URL")]
    redfish: Option<String>,
    /// Id of the system, needed where the service has several
    #[arg(long, value_name = "ID", requires = "redfish")]
    system: Option<String>,
    /// Name to log in with; the password is asked for on the terminal
    #[arg(long, value_name = "NAME", requires = "redfish")]
    user: Option<String>,
    /// File whose one line is the password; not readable by everybody
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// File with the lines "user: NAME" and "password: PASSWORD"; not readable by everybody
    #[arg(long, value_name = "FILE", requires = "redfish", conflicts_with_all = ["user", "password_file"])]
    credentials_file: Option<PathBuf>,
    /// Certificate, as PEM, of the CA to trust in place of this machine's
    #[arg(long, value_name = "FILE", requires = "redfish", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Do not verify the certificate, and allow http://: whoever sits between can read the password
    #[arg(long, requires = "redfish")]
    insecure: bool,
    /// Time to wait for one answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "redfish",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Keep the service's answers as files in this directory; --file reads them
    #[arg(long, value_name = "DIR", requires = "redfish")]
    save: Option<PathBuf>,
}

/// A conversation with a service.
pub struct Service<'a> {
    pub client: Client,
    connection: &'a Connection,
    files: Vec<(Resource, OutputFile)>,
}

const ALL: [Resource; 4] = [Resource::System, Resource::Bios, Resource::Settings, Resource::Registry];

impl Connection {
    /// Whether a service is named.
    pub fn is_wanted(&self) -> bool {
        self.redfish.is_some()
    }

    /// Refuses options that would go unused: clap does not ask for --redfish beside --file.
    pub fn refuse_unused(&self) -> anyhow::Result<()> {
        let given = [
            ("--system", self.system.is_some()),
            ("--user", self.user.is_some()),
            ("--credentials-file", self.credentials_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--insecure", self.insecure),
            ("--save", self.save.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                bail!("{option} is for a service: name it with --redfish in place of --file")
            }
            None => Ok(()),
        }
    }

    /// Logs in. Everything that can be wrong on this machine is found out before.
    pub fn open(&self) -> anyhow::Result<Service<'_>> {
        let Some(given) = &self.redfish else { bail!("name the service with --redfish") };
        let origin = Origin::parse(given, self.insecure)?;
        let files = self.prepare_files()?;
        if self.insecure {
            output::talk(&format!(
                "warning: --insecure: nothing proves that {} is who it should be; whoever sits between can read the password",
                origin.shown()
            ));
        }
        let trust = match &self.ca {
            Some(path) => Trust::CaFile(path.clone()),
            None if self.insecure => Trust::Anybody,
            None => Trust::System,
        };
        // Before the prompt: from here Ctrl-C ends the session too.
        let stop = signals::stop_flag()?;
        let credentials = self.credentials(&origin).map_err(in_words)?;
        let limits = Limits { request_time: Duration::from_secs(self.timeout), ..Limits::default() };
        let client = Client::open(Options { origin, trust, credentials, limits, stop }).map_err(in_words)?;
        Ok(Service { client, connection: self, files })
    }

    fn credentials(&self, origin: &Origin) -> Result<Option<Credentials>, RedfishError> {
        if let Some(path) = &self.credentials_file {
            return Credentials::from_file(path).map(Some);
        }
        let Some(user) = &self.user else { return Ok(None) };
        if let Some(path) = &self.password_file {
            return Credentials::from_password_file(user, path).map(Some);
        }
        let password = ask_password(&format!("Password of {user} at {}: ", origin.shown()))?;
        Ok(Some(Credentials { user: user.clone(), password }))
    }

    /// The files of --save: none of an earlier run may be among them, since they would be read as one server's.
    fn prepare_files(&self) -> anyhow::Result<Vec<(Resource, OutputFile)>> {
        let Some(dir) = &self.save else { return Ok(Vec::new()) };
        let failed = |error: OutputError| results::in_words(&error, "name another directory with --save");
        let dir = OutputDirectory::create(dir).map_err(failed)?;
        let prepare = |resource: Resource| {
            let file = dir.file(resource.file_name().as_ref(), Access::Shared);
            if file.exists() {
                bail!(
                    "{} is there from an earlier run; name another directory with --save",
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
    /// Reads the server, and keeps the answers when asked.
    pub fn read(&mut self) -> anyhow::Result<Saved> {
        let saved =
            lowlat_redfish::read(&mut self.client, self.connection.system.as_deref()).map_err(in_words)?;
        for (resource, file) in &self.files {
            let answer = saved.answers.iter().find(|(kind, ..)| kind == resource);
            if let Some((_, _, bytes)) = answer {
                file.write_new(bytes)
                    .map_err(|error| results::in_words(&error, "name another directory with --save"))?;
                output::talk(&format!("wrote {}", file.path().display()));
            }
        }
        Ok(saved)
    }

    /// Ends the session; what goes wrong there is no error of the command.
    pub fn close(self) {
        if let Some(problem) = self.client.close() {
            output::talk(&format!("warning: {problem}"));
        }
    }
}

/// The error as the command says it; Ctrl-C has an exit code of its own.
pub fn in_words(error: RedfishError) -> anyhow::Error {
    match error {
        RedfishError::Unknown { .. } if error.is_interrupted() => {
            let what = "changing the settings; the change had been sent and may wait for the next restart: run \
                        `lowlat bios audit` to see";
            Interrupted(what.into()).into()
        }
        _ if error.is_interrupted() => {
            Interrupted("talking to the service; nothing was changed".into()).into()
        }
        other => other.into(),
    }
}
