//! Password prompt on the terminal, without echo.

use crate::{RedfishError, Secret};
use lowlat_host::printable;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
};
use zeroize::Zeroizing;

const BYTES_MAX: usize = 1024;

/// Asks on the terminal of the process, not on stdin, which may be a pipe.
pub fn ask_password(question: &str) -> Result<Secret, RedfishError> {
    let failed = |cause: std::io::Error| no_terminal(&cause.to_string());
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(failed)?;
    let silent = Silent::begin(terminal.try_clone().map_err(failed)?).map_err(failed)?;
    terminal.write_all(printable::line(question).as_bytes()).map_err(failed)?;
    let answer = read_line(&mut terminal);
    drop(silent);
    let _ = terminal.write_all(b"\r\n");
    let password = answer?;
    if password.is_empty() {
        return Err(no_terminal("no password was entered"));
    }
    Ok(Secret::new(password.to_string()))
}

fn no_terminal(cause: &str) -> RedfishError {
    RedfishError::new(format!(
        "cannot ask for the password: no terminal ({cause})\nhint: name a file with --password-file"
    ))
}

/// A terminal without echo, line editing and signals: Ctrl-C arrives as a character, so that the terminal's
/// modes are always restored.
struct Silent {
    terminal: File,
    before: Termios,
}

impl Silent {
    fn begin(terminal: File) -> std::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Reads up to Enter. Backspace deletes a character, Ctrl-U the line, Ctrl-C aborts.
fn read_line(input: &mut impl Read) -> Result<Zeroizing<String>, RedfishError> {
    let mut typed = Zeroizing::new(Vec::with_capacity(BYTES_MAX));
    let mut byte = [0];
    loop {
        let count = input.read(&mut byte).map_err(|error| no_terminal(&error.to_string()))?;
        match byte[0] {
            _ if count == 0 => break,
            b'\r' | b'\n' | 0x04 => break,
            0x03 => return Err(RedfishError::interrupted()),
            0x15 => typed.clear(),
            0x08 | 0x7f => {
                // To the start of a character, not of a byte.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            byte if byte < 0x20 => {}
            byte if typed.len() < BYTES_MAX => typed.push(byte),
            _ => return Err(no_terminal(&format!("the input has more than {BYTES_MAX} bytes"))),
        }
    }
    match std::str::from_utf8(&typed) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(no_terminal("the input is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backspace_and_ctrl_u_edit_the_line() {
        let line = |typed: &[u8]| read_line(&mut &*typed).map(|line| line.to_string());
        assert_eq!(line(b"hunter2\rmore"), Ok("hunter2".into()));
        assert_eq!(line("hü\u{7f}\u{7f}\u{7f}\u{7f}geh\u{8}im\n".as_bytes()), Ok("geim".into()));
        assert_eq!(line(b"wrong\x15ri\x1bght"), Ok("right".into()));
        assert_eq!(line(b"hun\x03"), Err(RedfishError::interrupted()));
        assert!(line(&[b'a'; 2000]).is_err());
        assert!(line(b"\xff\n").is_err());
    }
}
