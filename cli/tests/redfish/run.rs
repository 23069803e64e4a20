//! Runs lowlat with credentials in a file, and checks that they stay there.

use crate::service::{PASSWORD, USER};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

/// Runs lowlat against a Redfish service, in a private directory with a password file.
pub struct RedfishCaller {
    pub dir: tempfile::TempDir,
    pub url: String,
    password_file: PathBuf,
}

/// Exit code, stdout and stderr.
pub type Said = (i32, String, String);

impl RedfishCaller {
    pub fn new(url: String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let password_file = dir.path().join("password");
        fs::write(&password_file, format!("{PASSWORD}\n")).unwrap();
        fs::set_permissions(&password_file, fs::Permissions::from_mode(0o600)).unwrap();
        Self { dir, url, password_file }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::common::binary());
        command
            .current_dir(self.dir.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .arg("bios")
            .args(arguments);
        command
    }

    /// Runs `lowlat bios` as the operator.
    pub fn bios(&self, arguments: &[&str]) -> Said {
        said(&self.as_operator(arguments).output().unwrap())
    }

    /// Starts it, and does not wait.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.as_operator(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn as_operator(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.args(["--redfish", &self.url, "--user", USER, "--password-file"]).arg(&self.password_file);
        command
    }
}

/// Exit code and output, which must not contain the password in any form.
pub fn said(output: &Output) -> Said {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let (out, talk) = (crate::common::text(&output.stdout), crate::common::text(&output.stderr));
    let packed = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    for secret in [PASSWORD, packed.as_str(), "token-"] {
        assert!(!out.contains(secret) && !talk.contains(secret), "{out}{talk}");
    }
    (output.status.code().unwrap_or(-1), out, talk)
}

pub fn all_of(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}
