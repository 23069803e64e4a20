//! Names and passwords, from files or a prompt; never from the command line, never shown.

use crate::RedfishError;
use std::{
    fmt,
    fs::File,
    io::Read,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};
use zeroize::Zeroizing;

/// Largest size of a credentials file, in bytes.
const BYTES_MAX: usize = 4096;

/// A text that is never shown, and wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Name and password of a user.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub user: String,
    pub password: Secret,
}

impl Credentials {
    /// Credentials with the given name. The file contains the password in one line; only its owner and group may read
    /// it.
    pub fn from_password_file(user: &str, path: &Path) -> Result<Self, RedfishError> {
        let option = "--password-file";
        let text = read_private(option, path)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let password = checked(option, path, line)?;
        Ok(Self { user: user.to_owned(), password })
    }

    /// Reads name and password from the lines `user: NAME` and `password: PASSWORD` of such a file.
    pub fn from_file(path: &Path) -> Result<Self, RedfishError> {
        let option = "--credentials-file";
        let text = read_private(option, path)?;
        let (mut user, mut password) = (None, None);
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            // Errors never repeat the line: it may be the password.
            let why = format!("line {} is neither \"user: ...\" nor \"password: ...\"", at + 1);
            let wrong = || RedfishError::file(option, path, &why);
            let (key, value) = line.split_once(':').ok_or_else(wrong)?;
            let value = value.strip_prefix(' ').unwrap_or(value);
            let slot = match key.trim() {
                "user" => &mut user,
                "password" => &mut password,
                _ => return Err(wrong()),
            };
            if slot.replace(Zeroizing::new(value.to_owned())).is_some() {
                return Err(wrong());
            }
        }
        let (Some(user), Some(password)) = (user, password) else {
            let why = "expected the two lines \"user: ...\" and \"password: ...\"";
            return Err(RedfishError::file(option, path, why));
        };
        Ok(Self { user: user.trim().to_owned(), password: checked(option, path, &password)? })
    }
}

fn checked(option: &'static str, path: &Path, password: &str) -> Result<Secret, RedfishError> {
    if password.is_empty() || password.contains(char::is_control) {
        let why = "expected the password on one line, without control characters";
        return Err(RedfishError::file(option, path, why));
    }
    Ok(Secret::new(password.to_owned()))
}

/// Reads a file or pipe that is not readable by everyone.
fn read_private(option: &'static str, path: &Path) -> Result<Zeroizing<String>, RedfishError> {
    let failed = |error: std::io::Error| RedfishError::file(option, path, error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() && !metadata.file_type().is_fifo() {
        return Err(RedfishError::file(option, path, "neither a file nor a pipe"));
    }
    // The mode of a pipe does not show who wrote it.
    if metadata.is_file() && metadata.mode() & 0o007 != 0 {
        let why = "every user of this machine can read or change it\nhint: run chmod 600 on it";
        return Err(RedfishError::file(option, path, why));
    }
    // Allocated at full size: a growing string would leave copies in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX + 1));
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > BYTES_MAX {
        return Err(RedfishError::file(option, path, format!("more than {BYTES_MAX} bytes")));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(RedfishError::file(option, path, "not text in UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

    fn file(dir: &tempfile::TempDir, name: &str, mode: u32, content: &[u8]) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_password_is_one_line_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        for content in [&b"hunter2 x:\n"[..], b"hunter2 x:\r\n", b"hunter2 x:"] {
            let read = Credentials::from_password_file("admin", &file(&dir, "p", 0o640, content)).unwrap();
            assert_eq!(read.password.reveal(), "hunter2 x:");
            assert!(!format!("{read:?} {:#?}", read.password).contains("hunter2"), "{read:?}");
        }
        let lines = b"password:  a:b \n\nuser: admin \n";
        let read = Credentials::from_file(&file(&dir, "c", 0o600, lines)).unwrap();
        assert_eq!((read.user.as_str(), read.password.reveal()), ("admin", " a:b "));
    }

    #[test]
    fn unsafe_or_malformed_files_are_refused_without_showing_their_contents() {
        let dir = tempfile::tempdir().unwrap();
        let password = |mode, content: &[u8]| {
            Credentials::from_password_file("admin", &file(&dir, "p", mode, content)).unwrap_err().to_string()
        };
        for mode in [0o644, 0o604, 0o602] {
            assert!(password(mode, b"hunter2\n").contains("chmod 600"));
        }
        for content in [&b""[..], b"\n", b"hunter2\nmore", b"hunter2\0", b"\xffhunter2", &[b'h'; 5000]] {
            let said = password(0o600, content);
            assert!(said.contains("--password-file") && !said.contains("hunter2"), "{said}");
        }
        for content in [
            "hunter2",
            "user: a\nhunter2",
            "user: a",
            "user: a\npassword: hunter2\npassword: x",
            "key: hunter2",
        ] {
            let said =
                Credentials::from_file(&file(&dir, "c", 0o600, content.as_bytes())).unwrap_err().to_string();
            assert!(said.contains("--credentials-file") && !said.contains("hunter2"), "{said}");
        }
        let said = Credentials::from_file(dir.path()).unwrap_err().to_string();
        assert!(said.contains("neither a file nor a pipe"), "{said}");
    }
}
